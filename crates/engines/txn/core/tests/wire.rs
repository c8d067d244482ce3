//! Messages and records come back from their bytes; hostile bytes are errors; version 1 stays
//! readable.

use dyno_txn_api::{
    Answer, Assignment, Code, Committed, Compare, Error, Filter, Key, Kind, Operation, Page,
    Request, Scan, Table, TableDef, TableId,
};
use dyno_txn_core::message::{Fate, Head, MESSAGE_VERSION, Message, Part};
use dyno_txn_core::record::{Kept, RECORD_VERSION, Record, Redo};
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
    let part = Part {
        answer: Answer::Page(Page::default()),
        places: vec![vec![1]],
    };
    let table = Table {
        id: TableId(3),
        def,
    };
    vec![
        Message::Confirm { head, writes: 3 },
        Message::Executed {
            stamp: 7,
            batch: 2,
            result: Ok(vec![part]),
        },
        Message::Vote {
            stamp: 7,
            result: Err(error),
        },
        Message::Pushed {
            stamp: 7,
            by: 8,
            fate: Fate::Forgotten,
        },
        Message::AddTable { table },
        Message::KeepBound { epoch: 1, bound: 2 },
    ]
}

fn messages() -> Vec<Message> {
    let head = Head {
        stamp: 7,
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
        stamp: Some(3),
        answers: vec![Answer::Done],
        returned: vec![4],
    };
    let shot = |stamp, request| Message::OneShot {
        ticket: 1,
        stamp,
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
        stamp: 7,
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
    let kept = Kept {
        stamp: 5,
        row: redo.clone(),
    };
    vec![
        Record::Commit {
            stamp: 7,
            writes: vec![redo.clone(), gone],
        },
        Record::Prepared {
            head,
            writes: vec![redo.clone()],
        },
        Record::Decided {
            stamp: 7,
            participants: vec![2],
            writes: vec![redo],
        },
        Record::Finalized {
            stamp: 7,
            commit: true,
        },
        Record::Rows { rows: vec![kept] },
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
        stamp: None,
        priority: 0,
        deadline_ns: 0,
        request,
    };
    let refused = Message::decode(&bytes(|out| message.encode(out))).expect_err("too deep");
    assert_eq!(refused.kind(), Code::Damaged);
}

#[test]
fn version_one_stays_readable() {
    // A commit at stamp 7 that wrote [3] under [1, 2] of table 1.
    let old = b"\x01\x01\x07\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\x02\0\0\0\x01\x02\x01\x01\0\0\0\x03";
    let writes = vec![Redo {
        table: TableId(1),
        key: vec![1, 2],
        value: Some(vec![3]),
    }];
    assert_eq!(Record::decode(old), Ok(Record::Commit { stamp: 7, writes }));
    // A finalize of stamp 7, to be kept.
    let old = b"\x01\x10\x07\0\0\0\0\0\0\0\x01";
    assert_eq!(
        Message::decode(old),
        Ok(Message::Finalize {
            stamp: 7,
            commit: true
        })
    );
    let newer = Message::decode(&[MESSAGE_VERSION + 1, 1]).expect_err("a later version");
    assert_eq!(newer.kind(), Code::NewerVersion);
    let newer = Record::decode(&[RECORD_VERSION + 1, 1]).expect_err("a later version");
    assert_eq!(newer.kind(), Code::NewerVersion);
}
