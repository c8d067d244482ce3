//! Every message comes back as it was, and bytes that nobody wrote give errors.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::key::Partitioner;

/// Encodes, decodes, compares; and any shorter body is an error, unless the message ends in a rest.
fn check<M: Message + PartialEq + std::fmt::Debug>(message: &M, has_rest: bool) {
    let body = Bytes::from(message.parts().concat());
    assert_eq!(&M::decode(body.clone()).unwrap(), message);
    let shorter = body.slice(..body.len().saturating_sub(1));
    assert!(has_rest || body.is_empty() || M::decode(shorter).is_err());
    let longer = Bytes::from([&body[..], b"x"].concat());
    assert!(has_rest || M::decode(longer).is_err());
}

#[test]
fn the_bytes_of_a_request_are_those_of_the_specification() {
    let produce = Produce {
        topic_id: 7,
        partition: 3,
        producer_id: 258,
        first_sequence: 1,
        count: 2,
        crc: 0x0403_0201,
        codec: 1,
        body: Rest::one(Bytes::from_static(b"records")),
    };
    let expected = [
        &[7, 0, 0, 0, 3, 0, 0, 0][..],
        &[2, 1, 0, 0, 0, 0, 0, 0],
        &[1, 0, 0, 0, 0, 0, 0, 0],
        &[2, 0, 0, 0, 1, 2, 3, 4, 1],
        b"records",
    ];
    assert_eq!(produce.parts().concat(), expected.concat());
    check(&produce, true);
}

#[test]
fn texts_and_lists_have_lengths() {
    let hello = Hello {
        token: "ab".to_owned(),
        client: String::new(),
    };
    assert_eq!(hello.parts().concat(), [2, 0, b'a', b'b', 0, 0]);
    let refused = Committed {
        refused: vec![5, -1],
    };
    assert_eq!(
        refused.parts().concat(),
        [2, 0, 0, 0, 5, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]
    );
}

#[test]
fn a_placement_is_that_of_the_specification() {
    let placement = PlacementIs {
        share: 0,
        topic_id: 7,
        compression: "none".to_owned(),
        all_partitions: 2,
        partitions: vec![PartitionIs {
            partition: 0,
            epoch: 3,
            first_offset: 1,
            next_offset: 2,
            address: "a".to_owned(),
        }],
        elsewhere: vec![ShareIs {
            cluster: "b".to_owned(),
            partitions: vec![1],
            addresses: vec!["c:1".to_owned()],
        }],
        partitioner: Added(Partitioner::Fnv1a),
    };
    let expected = [
        &[
            0, 0, 0, 0, 7, 0, 0, 0, 4, 0, b'n', b'o', b'n', b'e', 2, 0, 0, 0,
        ][..],
        &[1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0],
        &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, b'a'],
        &[1, 0, 0, 0, 1, 0, b'b', 1, 0, 0, 0, 1, 0, 0, 0],
        &[1, 0, 0, 0, 3, 0, b'c', b':', b'1'],
    ];
    assert_eq!(placement.parts().concat(), expected.concat());
    check(&placement, false);
    // Clients that know nothing of partitioners read the former and refuse the latter.
    let placement = PlacementIs {
        partitioner: Added(Partitioner::Murmur2),
        ..placement
    };
    let expected = [&expected.concat()[..], b"\x07\0murmur2"].concat();
    assert_eq!(placement.parts().concat(), expected);
}

#[test]
fn a_partitioner_that_is_not_known_is_refused() {
    let create = CreateTopic {
        topic: "t".to_owned(),
        partitions: 1,
        compression: "none".to_owned(),
        retention_ms: -1,
        retention_bytes: -1,
        partitioner: Added(Partitioner::Murmur2),
    };
    let mut body = create.parts().concat();
    assert_eq!(CreateTopic::decode(Bytes::from(body.clone())), Ok(create));
    let last = body.len() - 1;
    body[last] = b'3';
    let error = CreateTopic::decode(Bytes::from(body)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "CreateTopic: partitioner is not a known partitioner"
    );
}

#[test]
fn what_is_wrong_is_named() {
    let of = |bytes: &'static [u8]| {
        Hello::decode(Bytes::from_static(bytes))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(of(b"\x05\0ab"), "Hello: the body ends inside token");
    assert_eq!(of(b"\x01\0\xFF\0\0"), "Hello: token is not UTF-8");
    assert_eq!(of(b"\0\0\0\0more"), "Hello: 4 bytes after the last field");
    let many = Bytes::from_static(&[0xFF, 0xFF, 0xFF, 0xFF, 1]);
    assert_eq!(
        Committed::decode(many).unwrap_err().to_string(),
        "Committed: the body ends inside refused"
    );
    let twice = Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 0, 2]);
    let error = Produced::decode(twice).unwrap_err().to_string();
    assert_eq!(error, "Produced: duplicate is neither 0 nor 1");
}

#[test]
fn a_text_that_is_too_long_is_cut_at_a_character() {
    let failed = Failed {
        code: "x".to_owned(),
        retry: 0,
        text: "\u{e9}".repeat(40_000),
    };
    let found = Failed::decode(Bytes::from(failed.parts().concat())).unwrap();
    assert_eq!(found.text, "\u{e9}".repeat(32_767));
}

#[test]
fn verbs_have_their_numbers() {
    for number in 0..=255 {
        if let Some(verb) = Verb::from_number(number) {
            assert_eq!(verb as u8, number);
        }
    }
    assert_eq!(Verb::from_number(4), Some(Verb::Produce));
    assert_eq!(Verb::from_number(19), Some(Verb::ListQueues));
    assert_eq!(Verb::from_number(23), Some(Verb::DropGroup));
    assert_eq!(Verb::from_number(24), Some(Verb::DeleteRecords));
    assert_eq!(Verb::from_number(25), None);
}

fn row() -> impl Strategy<Value = (RowHead, Vec<u8>)> {
    let head = (any::<i64>(), any::<u32>(), any::<i64>(), any::<i64>());
    let more = (any::<Option<u32>>(), 0_u8..3, vec(any::<u8>(), 0..50));
    (head, more).prop_map(|((base_offset, count, first, last), (crc, codec, body))| {
        let head = RowHead {
            base_offset,
            count,
            bytes: body.len() as u32,
            first_time_us: first,
            last_time_us: last,
            appended_at_us: first,
            crc,
            codec,
        };
        (head, body)
    })
}

fn from_where() -> impl Strategy<Value = FromWhere> {
    prop_oneof![
        Just(FromWhere::Earliest),
        Just(FromWhere::Latest),
        any::<i64>().prop_map(FromWhere::Offset),
        any::<i64>().prop_map(FromWhere::TimeUs),
    ]
}

proptest! {
    #[test]
    fn rows_come_back(rows in vec(row(), 0..6), group in 1_usize..4, cut in any::<prop::sample::Index>()) {
        let mut bytes = Vec::new();
        for group in rows.chunks(group) {
            bytes.extend_from_slice(&Rows::group(group.len()));
            group.iter().for_each(|(head, _)| bytes.extend_from_slice(&head.encode()));
            group.iter().for_each(|(_, body)| bytes.extend_from_slice(body));
        }
        let found: Result<Vec<_>, _> = Rows::new(Bytes::from(bytes.clone())).collect();
        let expected: Vec<_> = rows.into_iter().map(|(head, body)| (head, Bytes::from(body))).collect();
        prop_assert_eq!(found.unwrap(), expected.clone());
        bytes.truncate(cut.index(bytes.len() + 1));
        let found: Vec<_> = Rows::new(Bytes::from(bytes)).collect();
        for (row, expected) in found.iter().filter_map(|row| row.as_ref().ok()).zip(&expected) {
            prop_assert_eq!(row, expected);
        }
    }

    #[test]
    fn joins_and_places_come_back(
        topic in ".{0,40}", group in ".{0,40}", member in ".{0,40}", start in from_where(), lease_ms: u32,
    ) {
        check(&JoinGroup { topic: topic.clone(), group, member, start, lease_ms, when_lost: String::new() }, false);
        check(&ListOffsets { topic, partition: 1, from: start }, false);
    }

    #[test]
    fn assignments_come_back(values in vec((any::<i32>(), any::<i64>(), any::<i64>(), any::<bool>()), 0..9)) {
        let assigned = values
            .into_iter()
            .map(|(partition, generation, committed, wanted)| Assigned {
                partition, generation, committed, wanted,
            })
            .collect();
        check(&Assignments { assigned }, false);
    }
}
