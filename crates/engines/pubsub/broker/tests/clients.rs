//! The library's producer and consumer over a broker.

mod served;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_pubsub::wire::{Client, CreateTopic, ListTopics};
use dyno_pubsub::{
    Address, Consumer, ConsumerOptions, Partitioner, Producer, ProducerOptions, Result, Start,
    TopicOptions, TopicState,
};
use dyno_pubsub_broker::Broker;
use served::{client, served};

fn address(broker: &Broker) -> Address {
    Address::Broker(broker.addresses()[0].to_string())
}

fn consumer(broker: &Broker, group: &str) -> Result<Consumer> {
    let options = ConsumerOptions {
        start: Start::Earliest,
        lease: Duration::from_secs(2),
        ..ConsumerOptions::default()
    };
    Consumer::open(address(broker), "t", group, options)
}

/// Polls and commits until `count` different values have come; how many came altogether is the
/// second answer.
fn consume(consumer: &mut Consumer, count: usize) -> (HashSet<Vec<u8>>, usize) {
    let (mut found, mut all) = (HashSet::new(), 0);
    for _ in 0..400 {
        let messages = consumer.poll(Duration::from_millis(500)).expect("messages");
        all += messages.len();
        found.extend(messages.into_iter().map(|message| message.value.to_vec()));
        consumer.commit().expect("a commit");
        if found.len() >= count {
            return (found, all);
        }
    }
    panic!("{} of {count} values came", found.len());
}

#[test]
fn a_producer_and_a_consumer_find_each_other() {
    let Some(served) = served("broker") else {
        return;
    };
    served.topic("t", 3);
    let broker = served.broker("s", 3);
    let producer = Producer::open(address(&broker), "t", ProducerOptions::default()).unwrap();
    let receipts: Vec<_> = (0..2000)
        .map(|n: u32| {
            producer
                .send(Some(&n.to_be_bytes()), format!("value {n}").as_bytes())
                .unwrap()
        })
        .collect();
    producer.flush().unwrap();
    let places: HashSet<_> = receipts
        .iter()
        .map(|receipt| receipt.wait().unwrap())
        .collect();
    assert_eq!(places.len(), 2000);
    let (found, all) = consume(&mut consumer(&broker, "g").unwrap(), 2000);
    assert_eq!((found.len(), all), (2000, 2000));
}

#[test]
fn a_group_goes_on_where_it_committed_and_shares_its_partitions() {
    let Some(served) = served("broker") else {
        return;
    };
    served.topic("t", 4);
    let broker = served.broker("s", 4);
    let producer = Producer::open(address(&broker), "t", ProducerOptions::default()).unwrap();
    let send = |from: u32| {
        for n in from..from + 500 {
            producer
                .send(Some(&n.to_be_bytes()), &n.to_be_bytes())
                .unwrap();
        }
        producer.flush().unwrap();
    };
    send(0);
    let mut first = consumer(&broker, "g").unwrap();
    assert_eq!(consume(&mut first, 500).1, 500);
    first.close().unwrap();
    send(500);
    let mut second = consumer(&broker, "g").unwrap();
    assert_eq!(consume(&mut second, 500).1, 500);
    let mut third = consumer(&broker, "g").unwrap();
    for _ in 0..100 {
        second.poll(Duration::from_millis(20)).unwrap();
        third.poll(Duration::from_millis(20)).unwrap();
        if second.assigned().len() == 2 && third.assigned().len() == 2 {
            return;
        }
    }
    panic!(
        "{:?} and {:?} do not share",
        second.assigned(),
        third.assigned()
    );
}

#[test]
fn a_partition_that_moved_is_sent_to_again_while_others_are_busy() {
    let Some(served) = served("broker") else {
        return;
    };
    let topic_id = served.topic("t", 9);
    // With commits that do not wait for the disk, some batch is due at every moment.
    let quick = "ALTER DATABASE postgres SET synchronous_commit = off";
    served.connection().client().execute(quick, &[]).unwrap();
    let broker = served.broker("s", 9);
    let producer = Producer::open(address(&broker), "t", ProducerOptions::default()).unwrap();
    let send = |partition| {
        let sent = producer.send_with(None, b"x", &[], Some(partition));
        sent.unwrap()
    };
    send(0).wait().unwrap();
    // As if another broker had taken the partition and given it back.
    let moved = "UPDATE pubsub.partitions SET epoch = epoch + 1, broker = NULL, \
                 broker_address = NULL WHERE topic_id = $1 AND partition = 0";
    let mut connection = served.connection();
    connection.client().execute(moved, &[&topic_id]).unwrap();
    let done = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        for at in 0..64 {
            let (send, done) = (&send, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    send(1 + at % 8).wait().unwrap();
                }
            });
        }
        let outcome = send(0).wait_for(Duration::from_secs(20));
        done.store(true, Ordering::Relaxed);
        outcome
    });
    assert_eq!(outcome.unwrap().offset, 1);
}

#[test]
fn nothing_is_lost_or_doubled_when_the_broker_stops_and_another_takes_over() {
    let Some(served) = served("broker") else {
        return;
    };
    served.topic("t", 2);
    let mut first = served.broker("s", 2);
    let second = Broker::start(served.options("s2")).unwrap();
    let producer = Producer::open(address(&second), "t", ProducerOptions::default()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            first.stop();
        });
        for n in 0..3000_u32 {
            producer
                .send(Some(&n.to_be_bytes()), &n.to_be_bytes())
                .unwrap();
            if n % 10 == 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    });
    producer.flush().unwrap();
    let (found, all) = consume(&mut consumer(&second, "g").unwrap(), 3000);
    assert_eq!((found.len(), all), (3000, 3000));
}

#[test]
fn nothing_is_lost_or_doubled_when_the_database_is_killed() {
    let Some(mut served) = served("broker") else {
        return;
    };
    served.topic("t", 2);
    let broker = served.broker("s", 2);
    let producer = Producer::open(address(&broker), "t", ProducerOptions::default()).unwrap();
    for round in 0..3_u32 {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..1000_u32 {
                    let value = (round * 1000 + n).to_be_bytes();
                    producer.send(Some(&value), &value).unwrap();
                    if n % 10 == 0 {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                }
            });
            std::thread::sleep(Duration::from_millis(100));
            served.cluster.kill_all().unwrap();
            served.cluster.restart().unwrap();
        });
    }
    producer.flush().unwrap();
    let (found, all) = consume(&mut consumer(&broker, "g").unwrap(), 3000);
    assert_eq!((found.len(), all), (3000, 3000));
}

/// A topic that is made and listed through a broker has the partitioner that was asked for, and
/// keys go where SQL sends them.
#[test]
fn a_broker_creates_and_lists_topics_with_their_partitioner() {
    let Some(served) = served("broker") else {
        return;
    };
    served.topic("t", 1);
    let broker = served.broker("s", 1);
    let client = client(&broker);
    let names = |client: &Client| -> Vec<(String, Partitioner)> {
        let topics = client.ask(&ListTopics {}).unwrap().read().unwrap();
        let of = |state: TopicState| (state.topic.name, state.topic.options.partitioner);
        topics.into_iter().map(of).collect()
    };
    let plain = ("t".to_owned(), Partitioner::Fnv1a);
    assert_eq!(names(&client), std::slice::from_ref(&plain));
    let options = TopicOptions {
        partitions: 7,
        partitioner: Partitioner::Murmur2,
        ..TopicOptions::default()
    };
    client.ask(&CreateTopic::new("shared", &options)).unwrap();
    let shared = ("shared".to_owned(), Partitioner::Murmur2);
    assert_eq!(names(&client), [shared, plain]);

    let producer = Producer::open(address(&broker), "shared", ProducerOptions::default()).unwrap();
    let mut sql = served.connection();
    let query = "SELECT partition FROM pubsub.send('shared', 'x', key => convert_to($1, 'UTF8'))";
    for n in 0..50 {
        let key = format!("customer-{n}");
        let receipt = producer.send(Some(key.as_bytes()), b"x").unwrap();
        let in_sql: i32 = sql.client().query_one(query, &[&key]).unwrap().get(0);
        assert_eq!(receipt.wait().unwrap().partition, in_sql, "{key}");
        assert_eq!(producer.partition_of(key.as_bytes()).cast_signed(), in_sql);
    }
}
