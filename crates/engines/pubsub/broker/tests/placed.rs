//! A topic whose partitions lie on two servers, each with a broker of its own.

mod served;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use dyno_pubsub::{
    Consumer, ConsumerOptions, NamedCluster, Producer, ProducerOptions, Start, TopicOptions,
};
use served::{Served, client, served};

const TOPIC: &str = "orders";

/// The home and another cluster, whose topic has partitions 0 and 2 at home.
fn two() -> Option<(Served, Served)> {
    let home = served("a topic on two clusters")?;
    let b = served("a topic on two clusters")?;
    let options = TopicOptions {
        partitions: 4,
        ..TopicOptions::default()
    };
    let cluster = NamedCluster {
        name: "b".to_owned(),
        dsn: b.dsn().text(),
    };
    home.connection()
        .create_placed_topic(TOPIC, &options, &[cluster])
        .expect("a topic");
    Some((home, b))
}

fn address(served: &Served, socket: &str) -> String {
    format!("unix:{}", served.socket(socket).display())
}

#[test]
fn who_does_not_know_of_placement_is_refused() {
    let Some((home, b)) = two() else { return };
    let broker = home.broker("s", 2);
    let asked = client(&broker).ask(&dyno_pubsub::wire::Metadata {
        topic: TOPIC.to_owned(),
    });
    assert_eq!(asked.expect_err("a refusal").code(), "placed-elsewhere");
    let _other = b.broker("s", 2);
    let share = Producer::open(&address(&b, "s")[..], TOPIC, ProducerOptions::default());
    let error = share.err().expect("a refusal");
    assert_eq!(error.code(), "placed-elsewhere");
    assert!(error.text().contains("home"), "{error}");
}

#[test]
fn both_clusters_are_served_and_a_dead_one_comes_back() {
    let Some((home, mut b)) = two() else { return };
    let _at_home = home.broker("s", 2);
    let mut at_b = b.broker("first", 2);
    let from = address(&home, "s");
    let producer =
        Producer::open(&from[..], TOPIC, ProducerOptions::default()).expect("a producer");
    let options = ConsumerOptions {
        start: Start::Earliest,
        lease: Duration::from_millis(1500),
        ..ConsumerOptions::default()
    };
    let mut consumer = Consumer::open(&from[..], TOPIC, "g", options).expect("a consumer");
    let mut sent = 0_u64;
    let mut receipts = Vec::new();
    let mut send = |count: u64| {
        for _ in 0..count {
            let partition = Some((sent % 4) as u32);
            let sending = producer.send_with(None, &sent.to_be_bytes(), &[], partition);
            receipts.push(sending.expect("room"));
            sent += 1;
        }
        receipts.len()
    };
    send(400);
    // The server dies under its broker, and what is at home goes on.
    b.cluster.kill_all().expect("a dead server");
    send(400);
    let mut seen: HashMap<u64, u32> = HashMap::new();
    read(&mut consumer, &mut seen, |seen| {
        seen.keys().filter(|n| *n % 2 == 0).count() == 400
    });
    b.cluster.restart().expect("a server");
    send(400);
    // Then its broker moves to another address, which only the home's broker can tell.
    at_b.stop();
    drop(at_b);
    let _again = b.broker("second", 2);
    let all = send(400);
    read(&mut consumer, &mut seen, |seen| seen.len() == all);
    producer.flush().expect("acknowledgements");
    assert!(receipts.iter().all(|receipt| receipt.wait().is_ok()));
    let lags = home.connection().group_lag(TOPIC, "g").expect("a lag");
    assert_eq!(lags.len(), 4);
    let twice: u32 = seen.values().map(|count| count - 1).sum();
    let allowed: i64 = lags.iter().map(|lag| lag.redelivered).sum();
    assert!(
        i64::from(twice) <= allowed,
        "{twice} came twice, {allowed} may"
    );
    let stored: i64 = lags.iter().map(|lag| lag.next_offset).sum();
    assert_eq!(stored, all as i64);
}

fn read(
    consumer: &mut Consumer,
    seen: &mut HashMap<u64, u32>,
    enough: impl Fn(&HashMap<u64, u32>) -> bool,
) {
    let end = Instant::now() + Duration::from_secs(90);
    let mut last = String::new();
    while !enough(seen) {
        assert!(
            Instant::now() < end,
            "{} came; the last error: {last}",
            seen.len()
        );
        match consumer.poll(Duration::from_millis(100)) {
            Ok(messages) => {
                for message in messages {
                    let number =
                        u64::from_be_bytes(message.value[..].try_into().expect("a number"));
                    *seen.entry(number).or_insert(0) += 1;
                }
            }
            Err(error) => last = error.to_string(),
        }
        // What cannot be committed now comes again, and is counted.
        consumer.commit().ok();
    }
}
