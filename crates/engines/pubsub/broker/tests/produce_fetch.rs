//! Records in and out.

mod served;

use std::sync::mpsc;
use std::time::{Duration, Instant};

use dyno_pubsub::wire::{Client, ClientOptions, DeleteRecords, Fetch, FromWhere, ListOffsets};
use dyno_pubsub::{Code, Retry};
use dyno_pubsub_broker::Broker;
use dyno_serve::Token;
use served::{client, fetch, new_producer, produce_of, produced, read_all, served, until, values};

#[test]
fn what_is_acknowledged_is_in_the_log_and_is_fetched() {
    let Some(served) = served("broker") else {
        return;
    };
    let topic_id = served.topic("t", 2);
    let broker = served.broker("s", 2);
    let client = client(&broker);
    let id = new_producer(&client);
    let first = produced(&client, &produce_of(topic_id, 1, id, 0, &[b"a", b"b"]));
    let second = produced(&client, &produce_of(topic_id, 1, id, 2, &[b"c"]));
    assert_eq!((first.base_offset, second.base_offset), (0, 2));
    let fetched = fetch(&client, topic_id, 1, 1, 0).unwrap();
    assert_eq!(
        values(&fetched, 1),
        [(1, b"b".to_vec()), (2, b"c".to_vec())]
    );
    assert_eq!((fetched.first_offset, fetched.next_offset), (0, 3));
    let rows = served
        .connection()
        .client()
        .query(
            "SELECT message_offset, value FROM pubsub.messages('t', 1, 0, 10)",
            &[],
        )
        .unwrap();
    let stored: Vec<(i64, Vec<u8>)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(
        stored,
        [(0, b"a".to_vec()), (1, b"b".to_vec()), (2, b"c".to_vec())]
    );
}

/// Two appends whose answers were lost are committed behind what the broker knows as the end of the
/// partition. A repetition of the first one still gets its offset.
#[test]
fn a_repetition_is_found_behind_the_end_that_the_broker_knows() {
    let Some(served) = served("broker") else {
        return;
    };
    let topic_id = served.topic("t", 1);
    let broker = served.broker("s", 1);
    let client = client(&broker);
    let id = new_producer(&client);
    let mut connection = served.connection();
    for sequence in 0..3_i64 {
        let value = format!("{sequence}").into_bytes();
        let sent = connection.client().query_one(
            "SELECT first_offset FROM pubsub.send_batch('t', $1, NULL, NULL, 0, $2, $3)",
            &[&vec![value], &id, &sequence],
        );
        assert_eq!(sent.unwrap().get::<_, i64>(0), sequence);
    }
    for sequence in 0..3_i64 {
        let value = format!("{sequence}").into_bytes();
        let again = produced(&client, &produce_of(topic_id, 0, id, sequence, &[&value]));
        assert!(again.duplicate);
        assert_eq!(again.base_offset, sequence);
    }
}

#[test]
fn many_producers_are_merged_and_every_record_comes_once_in_its_producers_order() {
    let Some(served) = served("broker") else {
        return;
    };
    let topic_id = served.topic("t", 2);
    let broker = served.broker("s", 2);
    let producers = 6;
    let each = 300_i64;
    std::thread::scope(|scope| {
        for _ in 0..producers {
            let client = client(&broker);
            scope.spawn(move || {
                let id = new_producer(&client);
                let (acks, acked) = mpsc::channel();
                for sequence in 0..each {
                    for partition in 0..2 {
                        let value = format!("{id} {sequence} {}", "x".repeat(900));
                        let produce =
                            produce_of(topic_id, partition, id, sequence, &[value.as_bytes()]);
                        let acks = acks.clone();
                        client.send(&produce, move |ack| {
                            acks.send((partition, sequence, ack.unwrap())).unwrap()
                        });
                    }
                }
                drop(acks);
                let mut offsets = [Vec::new(), Vec::new()];
                for (partition, sequence, ack) in acked {
                    assert!(!ack.duplicate);
                    offsets[partition as usize].push((sequence, ack.base_offset));
                }
                for of_partition in offsets {
                    assert_eq!(of_partition.len() as i64, each);
                    assert!(of_partition.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
                }
            });
        }
    });
    let client = client(&broker);
    for partition in 0..2 {
        let all = read_all(&client, topic_id, partition, 0, producers * each);
        let offsets: Vec<i64> = all.iter().map(|(offset, _)| *offset).collect();
        assert_eq!(offsets, (0..producers * each).collect::<Vec<_>>());
        let mut next = std::collections::HashMap::new();
        for (_, value) in all {
            let text = String::from_utf8(value).unwrap();
            let mut words = text.split(' ');
            let id = words.next().unwrap().to_owned();
            let sequence: i64 = words.next().unwrap().parse().unwrap();
            let expected = next.entry(id).or_insert(0);
            assert_eq!(sequence, *expected);
            *expected += 1;
        }
    }
    let counters = broker.counters();
    let counter = |name: &str| counters.iter().find(|c| c.name == name).unwrap().value;
    assert_eq!(counter("appended_records"), 2 * (producers * each) as u64);
    assert!(
        counter("appends") < counter("appended_records") / 2,
        "{counters:?}"
    );
}

#[test]
fn a_repetition_is_acknowledged_with_its_offset_and_not_appended() {
    let Some(served) = served("broker") else {
        return;
    };
    let topic_id = served.topic("t", 1);
    let mut broker = served.broker("s", 1);
    let client_a = client(&broker);
    let id = new_producer(&client_a);
    let requests = [
        produce_of(topic_id, 0, id, 0, &[b"a", b"b"]),
        produce_of(topic_id, 0, id, 2, &[b"c"]),
        produce_of(topic_id, 0, id, 3, &[b"d"]),
    ];
    for request in &requests {
        assert!(!produced(&client_a, request).duplicate);
    }
    let again = |client: &Client| {
        for (request, offset) in requests.iter().zip([0, 2, 3]) {
            let ack = produced(client, request);
            assert_eq!((ack.base_offset, ack.duplicate), (offset, true));
        }
    };
    again(&client_a);
    // A broker that knows nothing asks the database.
    broker.stop();
    let broker = served.broker("s2", 1);
    let client_b = client(&broker);
    again(&client_b);
    let gap = client_b
        .ask(&produce_of(topic_id, 0, id, 5, &[b"x"]))
        .unwrap_err();
    assert_eq!((gap.kind(), gap.retry()), (Code::SequenceGap, Retry::Never));
    assert_eq!(
        produced(&client_b, &produce_of(topic_id, 0, id, 4, &[b"e"])).base_offset,
        4
    );
}

#[test]
fn a_fetch_at_the_end_waits_for_the_next_commit() {
    let Some(served) = served("broker") else {
        return;
    };
    let topic_id = served.topic("t", 1);
    let broker = served.broker("s", 1);
    let client = client(&broker);
    let began = Instant::now();
    let empty = fetch(&client, topic_id, 0, 0, 100).unwrap();
    assert!(values(&empty, 0).is_empty());
    assert!(began.elapsed() >= Duration::from_millis(100));
    let (answers, answered) = mpsc::channel();
    let waiting = Fetch {
        topic_id,
        partition: 0,
        offset: 0,
        most_bytes: 1000,
        least_bytes: 1,
        wait_ms: 20_000,
    };
    client.send(&waiting, move |answer| {
        answers.send(answer.unwrap()).unwrap()
    });
    let id = new_producer(&client);
    produced(&client, &produce_of(topic_id, 0, id, 0, &[b"a"]));
    let fetched = answered.recv_timeout(Duration::from_secs(5)).unwrap();
    assert_eq!(values(&fetched, 0), [(0, b"a".to_vec())]);
}

#[test]
fn records_appended_without_the_broker_are_found() {
    let Some(served) = served("broker") else {
        return;
    };
    let topic_id = served.topic("t", 1);
    let broker = served.broker("s", 1);
    let client = client(&broker);
    let id = new_producer(&client);
    produced(&client, &produce_of(topic_id, 0, id, 0, &[b"a"]));
    let send = || {
        let mut connection = served.connection();
        connection
            .client()
            .execute("SELECT pubsub.send('t', 'b'::bytea)", &[])
            .unwrap();
    };
    send();
    assert_eq!(read_all(&client, topic_id, 0, 0, 2).len(), 2);
    produced(&client, &produce_of(topic_id, 0, id, 1, &[b"c"]));
    send();
    let all = read_all(&client, topic_id, 0, 0, 4);
    let values: Vec<&[u8]> = all.iter().map(|(_, value)| &value[..]).collect();
    assert_eq!(values, [b"a", b"b", b"c", b"b"]);
}

/// The rows of an answer reach the end that the broker knows, and the log goes on behind them: a
/// consumer that was told the old end would stop there.
#[test]
fn an_answer_of_rows_says_how_far_the_log_goes() {
    let Some(served) = served("broker") else {
        return;
    };
    let topic_id = served.topic("t", 1);
    let send = |count: i32| {
        let mut connection = served.connection();
        let sends = "SELECT pubsub.send('t', 'b'::bytea) FROM generate_series(1, $1)";
        connection.client().execute(sends, &[&count]).unwrap();
    };
    send(100);
    let broker = served.broker("s", 1);
    send(60);
    let client = client(&broker);
    let fetched = fetch(&client, topic_id, 0, 0, 0).unwrap();
    assert!(values(&fetched, 0).len() >= 100);
    assert_eq!(fetched.next_offset, 160);
    // A consumer that goes on exactly where the broker takes the end to be.
    send(60);
    let fetched = fetch(&client, topic_id, 0, 160, 0).unwrap();
    assert_eq!(values(&fetched, 160).len(), 60);
}

#[test]
fn consumers_that_are_behind_read_the_database() {
    let Some(served) = served("broker") else {
        return;
    };
    let topic_id = served.topic("t", 1);
    let mut first = served.broker("s", 1);
    let before = client(&first);
    let id = new_producer(&before);
    let value = vec![7; 3000];
    for sequence in 0..100 {
        produced(&before, &produce_of(topic_id, 0, id, sequence, &[&value]));
    }
    first.stop();
    let broker = served.broker("s2", 1);
    let after = client(&broker);
    assert_eq!(read_all(&after, topic_id, 0, 0, 100).len(), 100);
    assert_eq!(read_all(&after, topic_id, 0, 57, 100)[0].0, 57);
    let counters = broker.counters();
    assert!(
        counters
            .iter()
            .any(|c| c.name == "fetches_behind" && c.value >= 2)
    );
    let beyond = fetch(&after, topic_id, 0, 101, 0).unwrap_err();
    assert_eq!(beyond.kind(), Code::OffsetOutOfRange);
}

#[test]
fn bad_requests_are_refused_by_name_and_the_connection_goes_on() {
    let Some(served) = served("broker") else {
        return;
    };
    let topic_id = served.topic("t", 1);
    let broker = served.broker("s", 1);
    let client = client(&broker);
    let id = new_producer(&client);
    let good = produce_of(topic_id, 0, id, 0, &[b"a"]);
    let code = |produce| client.ask(&produce).map(|_| ()).unwrap_err().code();
    let changed = |change: fn(&mut dyno_pubsub::wire::Produce)| {
        let mut produce = good.clone();
        change(&mut produce);
        produce
    };
    assert_eq!(code(changed(|p| p.partition = 9)), "fenced");
    assert_eq!(code(changed(|p| p.crc ^= 1)), "damaged");
    assert_eq!(code(changed(|p| p.count = 2)), "bad-argument");
    assert_eq!(code(changed(|p| p.producer_id = 0)), "bad-argument");
    assert_eq!(code(changed(|p| p.codec = 7)), "damaged");
    assert_eq!(code(changed(|p| p.first_sequence = 3)), "sequence-gap");
    let topic = "nosuch".to_owned();
    let unknown = client
        .ask(&dyno_pubsub::wire::Metadata { topic })
        .unwrap_err();
    assert_eq!(unknown.code(), "unknown-topic");
    assert_eq!(produced(&client, &good).base_offset, 0);
}

#[test]
fn a_token_is_asked_for() {
    let Some(served) = served("broker") else {
        return;
    };
    let mut options = served.options("s");
    let secret = "a-secret-of-the-test";
    options.token = Some(Token::new(secret).unwrap());
    let broker = Broker::start(options.clone()).unwrap();
    let address = broker.addresses()[0].to_string();
    let with = |token: &str| {
        let options = ClientOptions {
            token: token.to_owned(),
            ..ClientOptions::default()
        };
        Client::connect(&address, &options)
    };
    for wrong in [
        "",
        "a-secret-of-the-tes",
        "a-secret-of-the-test2",
        "A-secret-of-the-test",
    ] {
        assert_eq!(with(wrong).map(|_| ()).unwrap_err().code(), "denied");
    }
    with(secret).unwrap();
    options.token = None;
    options.listen = vec!["0.0.0.0:0".parse().unwrap()];
    let error = Broker::start(options).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("give clients a secret"), "{error}");
}

#[test]
fn large_records_pass_and_larger_ones_do_not() {
    let Some(served) = served("broker") else {
        return;
    };
    let topic_id = served.topic("t", 1);
    let broker = served.broker("s", 1);
    let client = client(&broker);
    let id = new_producer(&client);
    let value = vec![5; 8 << 20];
    let largest = &value[..(8 << 20) - 14];
    assert_eq!(
        produced(&client, &produce_of(topic_id, 0, id, 0, &[largest])).base_offset,
        0
    );
    assert_eq!(
        produced(&client, &produce_of(topic_id, 0, id, 1, &[b"small"])).base_offset,
        1
    );
    assert_eq!(
        read_all(&client, topic_id, 0, 0, 2)[0].1.len(),
        largest.len()
    );
    until(|| {
        broker
            .counters()
            .iter()
            .any(|c| c.name == "queued_bytes" && c.value == 0)
    });
}

/// The broker has the records in memory when they are deleted, and refuses them all the same.
#[test]
fn deleted_records_are_not_read_from_memory() {
    let Some(served) = served("broker") else {
        return;
    };
    let topic_id = served.topic("t", 1);
    let broker = served.broker("s", 1);
    let client = client(&broker);
    let id = new_producer(&client);
    let all = produce_of(topic_id, 0, id, 0, &[b"a", b"b", b"c", b"d"]);
    produced(&client, &all);
    let delete = |before| {
        let ask = DeleteRecords {
            topic_id,
            partition: 0,
            before,
        };
        client.ask(&ask).map(|deleted| deleted.first_offset)
    };
    assert_eq!(delete(2).unwrap(), 2);
    assert_eq!(
        fetch(&client, topic_id, 0, 1, 0).unwrap_err().code(),
        "offset-out-of-range"
    );
    let fetched = fetch(&client, topic_id, 0, 2, 0).unwrap();
    assert_eq!(fetched.first_offset, 2);
    let left = [(2, b"c".to_vec()), (3, b"d".to_vec())];
    assert_eq!(values(&fetched, 2), left);
    let earliest = ListOffsets {
        topic: "t".to_owned(),
        partition: 0,
        from: FromWhere::Earliest,
    };
    assert_eq!(client.ask(&earliest).unwrap().offset, 2);
    assert_eq!(delete(5).unwrap_err().code(), "offset-out-of-range");
    assert_eq!(delete(-1).unwrap(), 4);
    assert_eq!(client.ask(&earliest).unwrap().offset, 4);
    // A partition that another broker has, or none, is not this one's to delete from.
    let elsewhere = DeleteRecords {
        topic_id,
        partition: 1,
        before: 0,
    };
    assert_eq!(client.ask(&elsewhere).unwrap_err().code(), "fenced");
}
