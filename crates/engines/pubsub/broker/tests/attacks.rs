//! Clients that take all they can get: others are served all the same, and the broker stops all the
//! same.

mod served;

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dyno_net::{Head, Stream, encode};
use dyno_pubsub::wire::{
    Added, Client, CreateTopic, Fetch, FromWhere, Heartbeat, Hello, JoinGroup, ListTopics,
    Metadata, Produce, Produced,
};
use dyno_pubsub::{Code, Result, Retry};
use dyno_pubsub_broker::{Broker, Options};
use served::{
    Served, client, fetch, frame, new_producer, produce_of, produced, served, topic_is, until,
    values,
};

/// Far longer than anything here takes on a busy machine, far shorter than the stalls that were.
const SOON: Duration = Duration::from_secs(30);

fn counter(broker: &Broker, name: &str) -> u64 {
    let counters = broker.counters();
    let found = counters.iter().find(|counter| counter.name == name);
    found.unwrap_or_else(|| panic!("no counter {name}")).value
}

fn connect(broker: &Broker) -> Stream {
    Stream::connect(&broker.addresses()[0], SOON).expect("a listener")
}

/// A connection that has said Hello.
fn admitted(broker: &Broker) -> Stream {
    let mut stream = connect(broker);
    let hello = Hello {
        token: String::new(),
        client: "hostile".to_owned(),
    };
    stream.write_all(&frame(&hello, 1, 0)).expect("a broker");
    stream
}

fn started(options: Options, partitions: usize) -> Broker {
    let broker = Broker::start(options).expect("a broker");
    until(|| broker.partitions().len() == partitions);
    broker
}

/// Does something on a thread, and says whether it came to its end soon.
fn soon<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || done.send(what()));
    is_done.recv_timeout(SOON).ok()
}

/// A topic with `megabytes` records of a megabyte that no broker has in memory.
fn history(served: &Served, topic: &str, megabytes: i64) -> i32 {
    let topic_id = served.topic(topic, 1);
    let mut writer = served.broker(&format!("writer-{topic}"), topic_id as usize);
    let client = client(&writer);
    let id = new_producer(&client);
    let value = vec![1; 1 << 20];
    for sequence in 0..megabytes {
        let produce = produce_of(topic_id, 0, id, sequence, &[&value]);
        client.ask(&produce).expect("an acknowledgement");
    }
    writer.stop();
    topic_id
}

#[test]
fn idle_sockets_without_a_hello_keep_nobody_out() {
    let Some(served) = served("idle sockets") else {
        return;
    };
    served.topic("t", 1);
    let mut options = served.options("s");
    options.most_connections = 8;
    options.most_unadmitted = 4;
    let broker = started(options, 1);
    let idle: Vec<Stream> = (0..60).map(|_| connect(&broker)).collect();
    until(|| {
        counter(&broker, "displaced_connections") + counter(&broker, "refused_connections") >= 56
    });
    let client = client(&broker);
    topic_is(&client, "t");
    assert_eq!(counter(&broker, "open_connections"), 1);
    drop(idle);
    until(|| counter(&broker, "unadmitted_connections") == 0);
}

#[test]
fn sequences_beyond_the_last_number_are_refused_and_others_are_served() {
    let Some(served) = served("sequences") else {
        return;
    };
    let topic_id = served.topic("t", 1);
    let broker = started(served.options("s"), 1);
    let client = client(&broker);
    let id = new_producer(&client);
    for first in [i64::MAX, i64::MAX - 1] {
        let produce = produce_of(topic_id, 0, id, first, &[b"a", b"b"]);
        let hostile = client.clone();
        let answer = soon(move || hostile.ask(&produce)).expect("an answer");
        assert_eq!(answer.expect_err("a refusal").code(), "bad-argument");
    }
    let produce = produce_of(topic_id, 0, id, 0, &[b"a", b"b"]);
    assert_eq!(client.ask(&produce).expect("an offset").base_offset, 0);
}

/// What the broker answers two batches that become one append, because the one before them waits
/// for a lock.
fn merged(
    served: &Served,
    client: &Client,
    before: &Produce,
    batches: [Produce; 2],
) -> [Result<Produced>; 2] {
    let mut holder = served.connection();
    let mut held = holder.client().transaction().expect("a transaction");
    held.execute("SELECT FROM pubsub.partitions FOR UPDATE", &[])
        .expect("a lock");
    client.send(before, |_| {});
    let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity \
                  WHERE wait_event_type = 'Lock' AND query LIKE '%append_%')";
    until(|| {
        let row = served.connection().client().query_one(waits, &[]);
        row.expect("an answer").get(0)
    });
    let answers = batches.map(|batch| {
        let (answers, answered) = mpsc::channel();
        client.send(&batch, move |answer| {
            let _ = answers.send(answer);
        });
        answered
    });
    // The broker reads what a client asks in order, so it has both batches when it answers this.
    new_producer(client);
    held.rollback().expect("the lock goes");
    answers.map(|answered| answered.recv_timeout(SOON).expect("an answer"))
}

#[test]
fn a_producer_that_the_database_refuses_takes_no_other_producers_records_with_it() {
    let Some(served) = served("producers that are refused") else {
        return;
    };
    let topic_id = served.topic("t", 1);
    let mut options = served.options("s");
    // The lock keeps the broker from renewing it.
    options.lease = Duration::from_secs(60);
    let broker = started(options, 1);
    let client = client(&broker);
    let [first, good, forgotten] = [(); 3].map(|()| new_producer(&client));
    let batch = |id, sequence| produce_of(topic_id, 0, id, sequence, &[b"a"]);
    produced(&client, &batch(forgotten, 0));

    let stranger = 1_000_000;
    let both = [batch(good, 0), batch(stranger, 0)];
    let [kept, refused] = merged(&served, &client, &batch(first, 0), both);
    assert!(kept.is_ok(), "{kept:?}");
    assert_eq!(refused.expect_err("a refusal").kind(), Code::BadArgument);

    // The broker takes the next batch of this producer for the right one, the database does not.
    let forget = "DELETE FROM pubsub.producers WHERE producer_id = $1";
    let deleted = served.connection().client().execute(forget, &[&forgotten]);
    assert_eq!(deleted.expect("a server"), 1);
    let both = [batch(good, 1), batch(forgotten, 1)];
    for answer in merged(&served, &client, &batch(first, 1), both) {
        let error = answer.expect_err("a refusal");
        assert_eq!((error.kind(), error.retry()), (Code::Conflict, Retry::Safe));
    }
    produced(&client, &batch(good, 1));
    let gap = client.ask(&batch(forgotten, 1)).expect_err("a refusal");
    assert_eq!((gap.kind(), gap.retry()), (Code::SequenceGap, Retry::Never));
}

#[test]
fn a_client_that_sends_no_hello_or_another_request_is_ended() {
    let Some(served) = served("no hello") else {
        return;
    };
    let mut options = served.options("s");
    options.hello_wait = Duration::from_millis(300);
    let broker = started(options, 0);
    let mut silent = connect(&broker);
    assert_eq!(silent.read(&mut [0; 16]).unwrap_or(0), 0);
    assert_eq!(counter(&broker, "late_connections"), 1);
    // A request that the broker knows, one that it does not, and a Hello that is longer than any.
    let unknown = {
        let mut bytes = Vec::new();
        let head = Head {
            verb: 200,
            flags: 0,
            request: 1,
        };
        encode(head, b"", &mut bytes).expect("a short frame");
        bytes
    };
    for (bytes, is_answered) in [
        (frame(&ListTopics {}, 14, 1), true),
        (unknown, true),
        (
            vec![0xD1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0xB0, 0, 0, 0, 0, 0],
            false,
        ),
    ] {
        let mut stream = connect(&broker);
        stream.write_all(&bytes).expect("a broker");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert_eq!(!answer.is_empty(), is_answered, "{bytes:?}");
    }
    until(|| counter(&broker, "unadmitted_connections") == 0);
}

#[test]
fn frames_that_are_not_complete_are_inside_the_bound() {
    let Some(served) = served("unfinished frames") else {
        return;
    };
    let topic_id = served.topic("t", 1);
    let mut options = served.options("s");
    options.memory_bytes = 64 << 20;
    options.write_wait = Duration::from_millis(500);
    let broker = started(options, 1);
    let long = produce_of(topic_id, 0, 1, 0, &[&vec![1; 4 << 20][..]]);
    let long = frame(&long, 4, 1);
    let mut halves = Vec::new();
    for _ in 0..12 {
        let mut stream = admitted(&broker);
        let wait = Some(Duration::from_millis(50));
        stream.set_write_timeout(wait).expect("a socket");
        // What the broker has no room for stays with the client.
        let _ = stream.write_all(&long[..long.len() - 1]);
        halves.push(stream);
        assert!(counter(&broker, "queued_bytes") <= 16 << 20);
    }
    // One that sends its frame whole is served, since those that stand still give way.
    let client = client(&broker);
    let id = new_producer(&client);
    let value = vec![2; 4 << 20];
    let sent = soon(move || {
        client
            .ask(&produce_of(topic_id, 0, id, 0, &[&value]))
            .map(drop)
    });
    assert!(sent.is_some_and(|sent| sent.is_ok()));
    drop(halves);
    until(|| counter(&broker, "queued_bytes") == 0);
}

#[test]
fn slow_readers_of_history_do_not_stop_the_others() {
    let Some(served) = served("slow readers") else {
        return;
    };
    let large = history(&served, "large", 24);
    let other = history(&served, "other", 2);
    let mut options = served.options("s");
    options.memory_bytes = 64 << 20;
    options.write_wait = Duration::from_secs(1);
    options.least_rate = 256 << 10;
    let broker = started(options, 2);
    let stop = Arc::new(AtomicBool::new(false));
    let mut slow: Vec<JoinHandle<()>> = Vec::new();
    for _ in 0..17 {
        let mut stream = admitted(&broker);
        for request in 1..5 {
            let fetch = Fetch {
                topic_id: large,
                partition: 0,
                offset: i64::from(request),
                most_bytes: 8 << 20,
                least_bytes: 1,
                wait_ms: 60_000,
            };
            stream
                .write_all(&frame(&fetch, 5, request))
                .expect("a broker");
        }
        let stop = Arc::clone(&stop);
        slow.push(thread::spawn(move || {
            let mut some = [0; 2048];
            while !stop.load(Ordering::Relaxed) && stream.read(&mut some).is_ok_and(|n| n > 0) {
                thread::sleep(Duration::from_millis(100));
            }
        }));
    }
    until(|| counter(&broker, "behind_bytes") > 8 << 20);
    let client = client(&broker);
    let read = soon(move || {
        // Until there is room for it a consumer is told that there is none, and may ask again.
        loop {
            match fetch(&client, other, 0, 0, 1000) {
                Ok(fetched) => return values(&fetched, 0).len(),
                Err(error) => assert_eq!(error.code(), "overloaded"),
            }
        }
    });
    assert!(read.is_some_and(|records| records >= 1));
    // The bound, and beyond it no more than a row for each of the two that read the database.
    assert!(counter(&broker, "behind_bytes") <= 19 << 20);
    until(|| counter(&broker, "slow_connections") >= 17);
    stop.store(true, Ordering::Relaxed);
    for thread in slow {
        thread.join().expect("a reader");
    }
}

/// A connection that asks for all topics as fast as it can, and reads nothing.
fn flood(broker: &Broker) -> (Stream, JoinHandle<()>) {
    let stream = admitted(broker);
    let mut writing = stream.try_clone().expect("a socket");
    let thread = thread::spawn(move || {
        let asked: Vec<u8> = (1..500)
            .flat_map(|n| frame(&ListTopics {}, 14, n))
            .collect();
        for _ in 0..40 {
            if writing.write_all(&asked).is_err() {
                return;
            }
        }
    });
    (stream, thread)
}

#[test]
fn a_flood_of_one_client_stops_neither_metadata_nor_heartbeats_nor_the_stop() {
    let Some(served) = served("a flood of requests") else {
        return;
    };
    for topic in 0..12 {
        served.topic(&format!("t{topic}"), 2);
    }
    let mut broker = started(served.options("s"), 24);
    let client = client(&broker);
    let joined = client
        .ask(&JoinGroup {
            topic: "t0".to_owned(),
            group: "g".to_owned(),
            member: "m".to_owned(),
            lease_ms: 10_000,
            start: FromWhere::Earliest,
            when_lost: "skip".to_owned(),
        })
        .expect("a group");
    let floods: Vec<_> = (0..2).map(|_| flood(&broker)).collect();
    // Statements of the flood are under way when the others ask.
    let mut looking = served.connection();
    let statements = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_total_relation_size%' AND pid <> pg_backend_pid()";
    let seen = Instant::now();
    while looking
        .client()
        .query_one(statements, &[])
        .expect("a server")
        .get::<_, i64>(0)
        == 0
    {
        assert!(seen.elapsed() < SOON);
    }
    let answered = soon(move || {
        for _ in 0..5 {
            let topic = "t1".to_owned();
            client.ask(&Metadata { topic }).expect("metadata");
            let beat = Heartbeat {
                group_id: joined.group_id,
                member: "m".to_owned(),
                released: Vec::new(),
            };
            client.ask(&beat).expect("a heartbeat");
        }
    });
    assert!(answered.is_some());
    let stopped = soon(move || broker.stop());
    assert!(stopped.is_some());
    for (stream, thread) in floods {
        stream.shutdown();
        thread.join().expect("a flood");
    }
}

#[test]
fn what_a_client_that_has_gone_asked_for_is_not_done() {
    let Some(served) = served("requests of the dead") else {
        return;
    };
    served.topic("t", 1);
    let broker = started(served.options("s"), 1);
    let mut blocker = served.connection();
    // A request that makes a topic waits until the lock goes.
    let lock = "BEGIN; LOCK TABLE pubsub.topics IN ACCESS EXCLUSIVE MODE";
    blocker.client().batch_execute(lock).expect("a lock");
    for number in 0..20 {
        let mut gone = admitted(&broker);
        let create = CreateTopic {
            topic: format!("never{number}"),
            partitions: 1,
            compression: "none".to_owned(),
            retention_ms: -1,
            retention_bytes: -1,
            partitioner: Added::default(),
        };
        // The first of all waits for the lock, the others for the first.
        gone.write_all(&frame(&create, 11, 1)).expect("a broker");
    }
    until(|| counter(&broker, "connections") == 20);
    until(|| counter(&broker, "open_connections") == 0);
    blocker.client().batch_execute("COMMIT").expect("a server");
    let client = client(&broker);
    topic_is(&client, "t");
    let topics = served.connection().topics().expect("topics");
    assert!(topics.len() <= 2, "{topics:?}");
}
