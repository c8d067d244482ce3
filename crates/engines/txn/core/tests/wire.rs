//! Messages and records come back from their bytes; hostile bytes are errors; version 1 stays
//! readable.

use dyno_txn_api::{
    Answer, Assignment, Code, Committed, Compare, Continuation, Error, Filter, Key, Kind,
    Operation, Page, Request, Scan, ScanRow, Table, TableDef, TableId, Value,
};
use dyno_txn_core::message::{Fate, Head, MESSAGE_VERSION, Message, PartialAnswer};
use dyno_txn_core::record::{RECORD_VERSION, Record, Redo, RowVersion};
use proptest::prelude::*;

fn operations(key: &Key) -> Vec<Operation> {
    let filter = Filter::And(vec![
        Filter::compare(1, Compare::Less, 3.5),
        Filter::Not(Box::new(Filter::Or(vec![
            Filter::IsNull(0),
            Filter::Prefix(2, vec![9]),
        ]))),
    ]);
    let scan = Scan::prefix(TableId(2), vec![1])
        .backward()
        .index(0)
        .filter(filter)
        .columns(&[1]);
    let set = vec![Assignment::set(0, "x"), Assignment::add(1, -1i64)];
    vec![
        Operation::get(key.clone()),
        Operation::put(key.clone(), "v"),
        Operation::insert(key.clone(), "v"),
        Operation::update(key.clone(), set),
        Operation::delete(key.clone()),
        Operation::Scan(scan),
    ]
}

fn def() -> TableDef {
    let def = TableDef::hash("t", 8)
        .column("a", Kind::U64)
        .nullable("b", Kind::Text);
    def.index("i", &["a"], 8).expect("it is there")
}

fn between_partitions(head: Head, def: TableDef) -> Vec<Message> {
    let error = Error::new(Code::Conflict, "in the way");
    let part = PartialAnswer {
        answer: Answer::Page(Page::default()),
        index_keys: vec![vec![1]],
    };
    let table = Table {
        id: TableId(3),
        def,
    };
    vec![
        Message::Confirm { head, writes: 3 },
        Message::Executed {
            timestamp: 7,
            batch: 2,
            result: Ok(vec![part]),
        },
        Message::Vote {
            timestamp: 7,
            result: Err(error),
        },
        Message::Pushed {
            timestamp: 7,
            by: 8,
            fate: Fate::Forgotten,
        },
        Message::AddTable { table },
        Message::KeepBound { epoch: 1, bound: 2 },
    ]
}

fn messages() -> Vec<Message> {
    let head = Head {
        timestamp: 7,
        holder: 1,
        priority: 128,
    };
    let key = Key::new(TableId(2), "key");
    let (operations, def) = (operations(&key), def());
    let error = Error::new(Code::Conflict, "in the way");
    let (procedure, arguments) = ("p".to_owned(), vec![1]);
    let call = Request::Call {
        procedure,
        arguments,
        home: Some(key),
    };
    let committed = Committed {
        timestamp: Some(3),
        answers: vec![Answer::Done],
        returned: vec![4],
    };
    let shot = |timestamp, request| Message::OneShot {
        ticket: 1,
        timestamp,
        priority: 1,
        deadline_ns: 2,
        request,
    };
    let mut all = between_partitions(head, def.clone());
    all.extend([
        shot(None, Request::Operations(operations.clone())),
        shot(Some(9), call),
        Message::Done {
            ticket: 1,
            result: Ok(committed),
        },
        Message::Done {
            ticket: 1,
            result: Err(error),
        },
        Message::Execute {
            head,
            batch: 2,
            after: 1,
            deadline_ns: 3,
            operations,
        },
        Message::Commit {
            head,
            writes: vec![(1, 2), (3, 4)],
        },
        Message::CreateTable { ticket: 1, def },
    ]);
    all
}

fn records() -> Vec<Record> {
    let head = Head {
        timestamp: 7,
        holder: 1,
        priority: 128,
    };
    let redo = Redo {
        table: TableId(1),
        key: vec![1, 2],
        value: Some(vec![3]),
    };
    let gone = Redo {
        value: None,
        ..redo.clone()
    };
    let version = RowVersion {
        timestamp: 5,
        row: redo.clone(),
    };
    vec![
        Record::Commit {
            timestamp: 7,
            writes: vec![redo.clone(), gone],
        },
        Record::Prepared {
            head,
            writes: vec![redo.clone()],
        },
        Record::Decided {
            timestamp: 7,
            participants: vec![2],
            writes: vec![redo],
        },
        Record::Finalized {
            timestamp: 7,
            commit: true,
        },
        Record::Rows {
            rows: vec![version],
        },
    ]
}

fn bytes(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes);
    bytes
}

#[test]
fn they_come_back_and_cut_ones_do_not() {
    for message in messages() {
        let bytes = bytes(|out| message.encode(out));
        assert_eq!(Message::decode(&bytes), Ok(message));
        for length in 0..bytes.len() {
            assert!(Message::decode(&bytes[..length]).is_err());
        }
    }
    for record in records() {
        let bytes = bytes(|out| record.encode(out));
        assert_eq!(Record::decode(&bytes), Ok(record));
        for length in 0..bytes.len() {
            assert!(Record::decode(&bytes[..length]).is_err());
        }
    }
}

proptest! {
    #[test]
    fn hostile_bytes_are_errors(
        which: prop::sample::Index,
        at: prop::sample::Index,
        new: u8,
        random: Vec<u8>,
    ) {
        let mut of = bytes(|out| which.get(&messages()).encode(out));
        let place = at.index(of.len());
        of[place] = new;
        let _ = Message::decode(&of);
        let mut of = bytes(|out| which.get(&records()).encode(out));
        let place = at.index(of.len());
        of[place] = new;
        let _ = Record::decode(&of);
        let _ = Message::decode(&random);
    }
}

#[test]
fn nesting_has_a_limit() {
    let mut filter = Filter::IsNull(0);
    for _ in 0..1000 {
        filter = Filter::Not(Box::new(filter));
    }
    let operations = vec![Operation::Scan(Scan::all(TableId(1)).filter(filter))];
    let request = Request::Operations(operations);
    let message = Message::OneShot {
        ticket: 1,
        timestamp: None,
        priority: 0,
        deadline_ns: 0,
        request,
    };
    let refused = Message::decode(&bytes(|out| message.encode(out))).expect_err("too deep");
    assert_eq!(refused.kind(), Code::Damaged);
}

#[test]
fn version_one_stays_readable() {
    // A commit at timestamp 7 that wrote [3] under [1, 2] of table 1.
    let old = b"\x01\x01\x07\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\x02\0\0\0\x01\x02\x01\x01\0\0\0\x03";
    let writes = vec![Redo {
        table: TableId(1),
        key: vec![1, 2],
        value: Some(vec![3]),
    }];
    assert_eq!(
        Record::decode(old),
        Ok(Record::Commit {
            timestamp: 7,
            writes
        })
    );
    // A finalize of timestamp 7, to be kept.
    let old = b"\x01\x10\x07\0\0\0\0\0\0\0\x01";
    assert_eq!(
        Message::decode(old),
        Ok(Message::Finalize {
            timestamp: 7,
            commit: true
        })
    );
    let newer = Message::decode(&[MESSAGE_VERSION + 1, 1]).expect_err("a later version");
    assert_eq!(newer.kind(), Code::NewerVersion);
    let newer = Record::decode(&[RECORD_VERSION + 1, 1]).expect_err("a later version");
    assert_eq!(newer.kind(), Code::NewerVersion);
}

/// Messages with every variant of the types that `messages` has one of.
fn every_variant() -> Vec<Message> {
    let compares = [
        Compare::Equal,
        Compare::NotEqual,
        Compare::Less,
        Compare::LessOrEqual,
        Compare::Greater,
        Compare::GreaterOrEqual,
    ];
    let values = [
        Value::Null,
        Value::U64(1),
        Value::I64(-2),
        Value::F64(0.5),
        Value::Text("text".to_owned()),
        Value::Bytes(vec![6, 7]),
    ];
    let filters = compares.into_iter().zip(values);
    let filters = filters.map(|(compare, value)| Filter::Column {
        column: 3,
        compare,
        value,
    });
    let scan = Scan::all(TableId(1)).filter(Filter::And(filters.collect()));
    let kinds = [Kind::U64, Kind::I64, Kind::F64, Kind::Text, Kind::Bytes];
    let mut def = TableDef::range("t", vec![vec![1], vec![2, 3]]);
    for (at, kind) in kinds.into_iter().enumerate() {
        def = def.column(&at.to_string(), kind);
    }
    let page = Page {
        rows: vec![ScanRow {
            key: vec![1],
            value: vec![2, 3],
        }],
        next: Some(Continuation(vec![4])),
    };
    let answers = vec![
        Answer::Value(None),
        Answer::Value(Some(vec![5])),
        Answer::Done,
        Answer::Page(page),
    ];
    let result = Ok(Committed {
        timestamp: None,
        answers,
        returned: Vec::new(),
    });
    let errors = [Code::OutcomeUnknown, Code::TooLarge, Code::Denied]
        .map(|code| Err(Error::new(code, "because")));
    let mut all = vec![
        Message::OneShot {
            ticket: 1,
            timestamp: None,
            priority: 2,
            deadline_ns: 3,
            request: Request::Operations(vec![Operation::Scan(scan)]),
        },
        Message::CreateTable { ticket: 2, def },
        Message::Done { ticket: 3, result },
    ];
    all.extend(errors.map(|result| Message::Timestamps { ticket: 4, result }));
    for fate in [Fate::Open, Fate::Committed, Fate::Aborted, Fate::Forgotten] {
        all.push(Message::Pushed {
            timestamp: 5,
            by: 6,
            fate,
        });
    }
    all
}

/// The checksums of what version 1 writes, so that no change of the code changes a byte.
#[test]
fn version_one_writes_the_bytes_that_it_always_wrote() {
    let checksums = |encoded: Vec<Vec<u8>>| -> Vec<u32> {
        let bytes = encoded.iter();
        bytes.map(|bytes| dyno_checksum::crc32c(bytes)).collect()
    };
    let encoded = |messages: Vec<Message>| {
        let encoded = messages
            .iter()
            .map(|message| bytes(|out| message.encode(out)));
        checksums(encoded.collect())
    };
    let encoded_records = records();
    let encoded_records = encoded_records
        .iter()
        .map(|record| bytes(|out| record.encode(out)));
    assert_eq!(
        [
            encoded(messages()),
            encoded(every_variant()),
            checksums(encoded_records.collect())
        ],
        [&MESSAGES[..], &VARIANTS, &RECORDS]
    );
}

const MESSAGES: [u32; 13] = [
    0x2657fe6b, 0x74e45208, 0x6dcad6b8, 0x6a8e5e3c, 0x695f2c2a, 0x011fe7de, 0x5e3da82a, 0x25e4ad07,
    0xf1d7c353, 0x21a1a552, 0xbffe3ded, 0xe5c6ebf8, 0x4d8178af,
];
const VARIANTS: [u32; 10] = [
    0x26c96123, 0x70e6d4b1, 0xcfabd798, 0x357f7ea3, 0x477c2674, 0x8723daa3, 0x4d3affb3, 0xbf517cb0,
    0xac018f44, 0x5e6a0c47,
];
const RECORDS: [u32; 5] = [0x603b0d74, 0xa47e74ba, 0x1e03865f, 0x2bc679a7, 0x6df53c03];
