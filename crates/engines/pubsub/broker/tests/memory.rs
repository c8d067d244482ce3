//! The bound on memory, held under consumers that do not read and a database that does not answer.

mod served;

use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use dyno_net::Stream;
use dyno_pubsub::wire::{Fetch, Hello};
use dyno_pubsub_broker::Broker;
use served::{client, frame, new_producer, produce_of, served, until};

const BOUND_BYTES: usize = 64 << 20;

fn counter(broker: &Broker, name: &str) -> usize {
    let counters = broker.counters();
    let found = counters.iter().find(|counter| counter.name == name);
    found.map_or(0, |counter| counter.value as usize)
}

#[test]
fn slow_consumers_do_not_break_the_bound_or_stop_producers() {
    let Some(served) = served("broker") else {
        return;
    };
    let topic_id = served.topic("t", 2);
    let mut options = served.options("s");
    options.memory_bytes = BOUND_BYTES;
    options.write_wait = Duration::from_secs(60);
    let broker = Broker::start(options).unwrap();
    until(|| broker.partitions().len() == 2);
    // They ask for everything from the start on, and read nothing.
    let mut stuck = Vec::new();
    for _ in 0..6 {
        let mut stream = Stream::connect(&broker.addresses()[0], Duration::from_secs(1)).unwrap();
        let hello = Hello {
            token: String::new(),
            client: "stuck".to_owned(),
        };
        stream.write_all(&frame(&hello, 1, 0)).unwrap();
        for request in 1..200 {
            let fetch = Fetch {
                topic_id,
                partition: (request % 2) as i32,
                offset: i64::from(request) * 10,
                most_bytes: 4 << 20,
                least_bytes: 1,
                wait_ms: 60_000,
            };
            stream.write_all(&frame(&fetch, 5, request)).unwrap();
        }
        stuck.push(stream);
    }
    let client = client(&broker);
    let id = new_producer(&client);
    let value = vec![1; 100_000];
    let mut most = 0;
    for sequence in 0..500 {
        for partition in 0..2 {
            let produce = produce_of(topic_id, partition, id, sequence * 4, &[&value[..]; 4]);
            client.ask(&produce).unwrap();
        }
        most = most.max(counter(&broker, "memory_bytes"));
    }
    assert_eq!(counter(&broker, "appended_records"), 4000);
    assert!(most <= BOUND_BYTES, "{most}");
    drop(stuck);
    until(|| counter(&broker, "memory_bytes") <= BOUND_BYTES / 8 * 3);
}

#[test]
fn producers_are_held_back_while_the_database_does_not_append() {
    let Some(served) = served("broker") else {
        return;
    };
    let topic_id = served.topic("t", 1);
    let mut options = served.options("s");
    options.memory_bytes = BOUND_BYTES;
    options.lease = Duration::from_secs(60);
    let broker = Broker::start(options).unwrap();
    until(|| broker.partitions().len() == 1);
    let client = client(&broker);
    let id = new_producer(&client);
    let mut blocker = served.connection();
    let lock = "BEGIN; SELECT FROM pubsub.partitions FOR UPDATE";
    blocker.client().batch_execute(lock).unwrap();
    let value = Bytes::from(vec![1; 1 << 20]);
    let (answers, answered) = std::sync::mpsc::channel();
    let sender = std::thread::spawn(move || {
        for sequence in 0..60 {
            let answers = answers.clone();
            let produce = produce_of(topic_id, 0, id, sequence, &[&value]);
            client.send(&produce, move |answer| {
                answers.send(answer.unwrap().base_offset).unwrap()
            });
        }
        client
    });
    until(|| counter(&broker, "queued_bytes") > BOUND_BYTES / 4 - (2 << 20));
    std::thread::sleep(Duration::from_millis(300));
    assert!(counter(&broker, "queued_bytes") <= BOUND_BYTES / 4);
    assert!(counter(&broker, "memory_bytes") <= BOUND_BYTES);
    blocker.client().batch_execute("COMMIT").unwrap();
    let mut offsets: Vec<i64> = answered.iter().take(60).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, (0..60).collect::<Vec<_>>());
    drop(sender.join());
}
