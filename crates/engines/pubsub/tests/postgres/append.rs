use std::thread;

use dyno_pubsub::{Appended, Retry, TopicOptions, TopicPartition};

use super::server::Server;
use super::{base, batch, read_all};

#[test]
fn offsets_have_no_gaps_under_eight_writers() {
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions {
        range_records: 1000,
        ..TopicOptions::default()
    });
    thread::scope(|scope| {
        for writer in 0..8_i64 {
            let mut connection = server.connect();
            scope.spawn(move || {
                let producer = connection.new_producer().unwrap();
                for turn in 0..40 {
                    let value = format!("{writer}:{turn}");
                    let values = vec![value.as_bytes(); 13];
                    let mut batch = batch(producer, turn * 13, &values);
                    base(connection.append(topic_id, 0, 0, &mut batch).unwrap());
                }
            });
        }
    });
    let read = read_all(&mut server.connect(), topic_id, 0, 0);
    assert_eq!(read.len(), 8 * 40 * 13);
    assert!(
        (0..)
            .zip(&read)
            .all(|(expected, (offset, _))| *offset == expected)
    );
    for writer in 0..8 {
        let prefix = format!("{writer}:").into_bytes();
        let turns: Vec<u32> = read
            .iter()
            .filter_map(|(_, record)| record.value.strip_prefix(&prefix[..]))
            .map(|turn| String::from_utf8_lossy(turn).parse().unwrap())
            .collect();
        assert_eq!(turns.len(), 40 * 13);
        assert!(turns.is_sorted());
    }
}

#[test]
fn a_repetition_appends_nothing_and_gets_its_offset() {
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    let producer = connection.new_producer().unwrap();
    for turn in 0..3 {
        let mut batch = batch(producer, turn * 2, &[b"a", b"b"]);
        assert_eq!(
            base(connection.append(topic_id, 0, 0, &mut batch).unwrap()),
            turn * 2
        );
    }
    for (first, count) in [(4, 2), (2, 2), (0, 2), (5, 1), (0, 6)] {
        let values = vec![&b"a"[..]; count];
        let mut again = batch(producer, first, &values);
        let known = Appended::Known {
            offsets: vec![Some(first)],
        };
        assert_eq!(
            connection.append(topic_id, 0, 0, &mut again).unwrap(),
            known
        );
    }
    let mut gap = batch(producer, 7, &[b"c"]);
    let refused = connection.append(topic_id, 0, 0, &mut gap).unwrap_err();
    assert_eq!(
        (refused.code(), refused.retry()),
        ("sequence-gap", Retry::Never)
    );
    let mut overlap = batch(producer, 5, &[b"c", b"d"]);
    assert_eq!(
        connection
            .append(topic_id, 0, 0, &mut overlap)
            .unwrap_err()
            .code(),
        "sequence-gap"
    );
    assert_eq!(read_all(&mut connection, topic_id, 0, 0).len(), 6);
}

#[test]
fn a_batch_of_several_producers_is_appended_whole_or_not_at_all() {
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    let (one, two) = (
        connection.new_producer().unwrap(),
        connection.new_producer().unwrap(),
    );
    let merged = |first_of_two: i64| {
        let mut merged = batch(one, 0, &[b"a", b"b"]);
        let mut body = Vec::new();
        dyno_pubsub::record::encode(&mut body, 5, Some(b"k"), &[], b"c").unwrap();
        let run = dyno_pubsub::record::Run {
            producer_id: two,
            first_sequence: first_of_two,
        };
        merged.push(run, &body).unwrap();
        merged
    };
    assert_eq!(
        base(connection.append(topic_id, 0, 0, &mut merged(0)).unwrap()),
        0
    );
    let known = |second| Appended::Known {
        offsets: vec![Some(0), second],
    };
    assert_eq!(
        connection.append(topic_id, 0, 0, &mut merged(0)).unwrap(),
        known(Some(2))
    );
    assert_eq!(
        connection.append(topic_id, 0, 0, &mut merged(1)).unwrap(),
        known(None)
    );
    assert_eq!(read_all(&mut connection, topic_id, 0, 0).len(), 3);
    let runs: Vec<i64> = connection
        .client()
        .query_one(&format!("SELECT runs FROM pubsub.log_{topic_id}_0"), &[])
        .unwrap()
        .get(0);
    assert_eq!(runs, [one, 0, 2, two, 0, 1]);
}

#[test]
fn a_raised_epoch_shuts_the_former_broker_out() {
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    connection
        .client()
        .execute(
            "UPDATE pubsub.partitions SET epoch = 4 WHERE topic_id = $1",
            &[&topic_id],
        )
        .unwrap();
    let refused = connection
        .append(topic_id, 0, 3, &mut batch(0, 0, &[b"a"]))
        .unwrap_err();
    assert_eq!((refused.code(), refused.retry()), ("fenced", Retry::Never));
    assert_eq!(
        base(
            connection
                .append(topic_id, 0, 4, &mut batch(0, 0, &[b"a"]))
                .unwrap()
        ),
        0
    );
    let gone = connection
        .append(topic_id, 1, 4, &mut batch(0, 0, &[b"a"]))
        .unwrap_err();
    assert_eq!(gone.code(), "unknown-topic");
}

#[test]
fn records_up_to_eight_mebibytes() {
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    let largest = vec![7_u8; dyno_pubsub::record::RECORD_BYTES_MAX - 14];
    for turn in 0..3 {
        let offset = base(
            connection
                .append(topic_id, 0, 0, &mut batch(0, 0, &[&largest]))
                .unwrap(),
        );
        assert_eq!(offset, turn);
    }
    // One at a time, however many there are: the bound is on bytes.
    let fetched = connection.fetch(topic_id, 0, 0, 1 << 20).unwrap();
    assert_eq!((fetched.rows.len(), fetched.next_offset), (1, 1));
    let fetched = connection.fetch(topic_id, 0, 1, 17 << 20).unwrap();
    assert_eq!((fetched.rows.len(), fetched.next_offset), (2, 3));
    let too_large = vec![7_u8; dyno_pubsub::record::RECORD_BYTES_MAX - 13];
    let refused =
        dyno_pubsub::record::encode(&mut Vec::new(), 0, None, &[], &too_large).unwrap_err();
    assert_eq!(
        (refused.code(), refused.retry()),
        ("record-too-large", Retry::Never)
    );
}

#[test]
fn several_partitions_in_one_transaction() {
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions {
        partitions: 2,
        ..TopicOptions::default()
    });
    let mut connection = server.connect();
    let mut batches = (batch(0, 0, &[b"a"]), batch(0, 0, &[b"b", b"c"]));
    let key = |partition| TopicPartition {
        topic_id,
        partition,
    };
    let done = connection
        .append_all(&mut [(key(0), 0, &mut batches.0), (key(1), 0, &mut batches.1)])
        .unwrap();
    let new = |done: &Appended| matches!(done, Appended::New { base_offset: 0, .. });
    assert!(done.len() == 2 && done.iter().all(new), "{done:?}");
    let partitions = connection.partitions(topic_id).unwrap();
    assert_eq!(
        partitions.iter().map(|p| p.next_offset).collect::<Vec<_>>(),
        [1, 2]
    );
}

#[test]
fn a_producer_that_raises_its_epoch_counts_again_and_its_earlier_records_are_refused() {
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    let producer = connection.new_producer().unwrap();
    let in_epoch = |epoch: i64, sequence: i64| (epoch << dyno_pubsub::EPOCH_SHIFT) + sequence;
    let mut append = |first: i64, values: &[&[u8]]| {
        connection.append(topic_id, 0, 0, &mut batch(producer, first, values))
    };
    assert_eq!(base(append(0, &[b"a", b"b"]).unwrap()), 0);
    // An epoch begins at its first record.
    let error = append(in_epoch(1, 3), &[b"x"]).unwrap_err();
    assert_eq!(error.code(), "sequence-gap", "{error}");
    assert_eq!(base(append(in_epoch(2, 0), &[b"c"]).unwrap()), 2);
    assert_eq!(base(append(in_epoch(2, 1), &[b"d"]).unwrap()), 3);
    let known = Appended::Known {
        offsets: vec![Some(2)],
    };
    assert_eq!(append(in_epoch(2, 0), &[b"c"]).unwrap(), known);
    for late in [0, 2, in_epoch(1, 0)] {
        let error = append(late, &[b"late"]).unwrap_err();
        assert_eq!(error.code(), "sequence-gap", "{late}: {error}");
    }
    assert_eq!(read_all(&mut connection, topic_id, 0, 0).len(), 4);
}
