//! A one-shot in bytes has a shorter way through a partition. It must come to what the long one
//! comes to: two partitions get the same messages, one in bytes, the other decoded.

use dyno_sim::Random;
use dyno_txn_api::{
    Answer, Change, Key, Operation, Procedures, Request, Scan, TableDef, TableId, Timestamp,
};
use dyno_txn_core::message::{Address, Head, Message};
use dyno_txn_core::record::Record;
use dyno_txn_core::{Config, Effects, Partition, Timestamps, is_direct};

const CLIENT: Address = Address::Client(7);
const OTHER: Address = Address::Client(9);
const TABLE: TableId = TableId(1);

struct Counter(Timestamp);

impl Timestamps for Counter {
    fn next(&mut self) -> Option<Timestamp> {
        self.0 += 1_000;
        Some(self.0)
    }

    fn plausible(&mut self, _: Timestamp) -> bool {
        true
    }
}

/// A partition, and what it has said and logged.
struct One {
    partition: Partition,
    effects: Effects,
    answers: Vec<(u64, Message)>,
    records: Vec<Record>,
}

impl One {
    fn new(partitions: u32) -> One {
        let config = Config::new(0, partitions);
        let mut one = One {
            partition: Partition::new(config, Procedures::new(), Box::new(Counter(0))),
            effects: Effects::default(),
            answers: Vec::new(),
            records: Vec::new(),
        };
        let def = TableDef::hash("rows", 0);
        one.decoded(0, CLIENT, Message::CreateTable { ticket: 0, def });
        one
    }

    fn decoded(&mut self, now: u64, from: Address, message: Message) {
        self.partition.handle(now, from, message, &mut self.effects);
        self.collect();
    }

    fn bytes(&mut self, now: u64, message: &Message) {
        let bytes = encoded(message);
        let taken = self
            .partition
            .handle_bytes(now, CLIENT, &bytes, &mut self.effects);
        taken.expect("what was encoded decodes");
        self.collect();
    }

    fn sync(&mut self, now: u64) {
        let position = self.partition.appended();
        self.partition.durable(now, position, &mut self.effects);
        self.collect();
    }

    fn collect(&mut self) {
        for (client, _, bytes) in self.effects.answers.iter() {
            let message = Message::decode(bytes).expect("an answer is a message");
            self.answers.push((client, message));
        }
        self.effects.answers.clear(0);
        for (to, message) in self.effects.sends.drain(..) {
            if let Address::Client(client) = to {
                self.answers.push((client, message));
            }
        }
        let records = self.effects.records.iter();
        let records = records.map(|bytes| Record::decode(bytes).expect("a record"));
        self.records.extend(records);
        self.effects.records.clear();
    }
}

fn encoded(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

fn shot(ticket: u64, operations: Vec<Operation>) -> Message {
    Message::OneShot {
        ticket,
        timestamp: None,
        priority: 128,
        deadline_ns: 1_000_000_000,
        request: Request::Operations(operations),
    }
}

fn key(number: usize) -> Key {
    // Some lie in their rows, some are too long for that.
    let bytes = if number.is_multiple_of(5) {
        vec![number as u8; 40]
    } else {
        (number as u64).to_be_bytes().to_vec()
    };
    Key::new(TABLE, bytes)
}

fn operation(random: &mut Random) -> Operation {
    let key = key(random.below(12));
    let value = vec![random.bits() as u8; random.below(700)];
    match random.below(9) {
        0..4 => Operation::Get(key),
        4..7 => Operation::Write(key, Change::Put(value)),
        7 => Operation::Write(key, Change::Insert(value)),
        _ => Operation::Write(key, Change::Delete),
    }
}

/// Without their timestamps, which a second try takes anew.
fn without_timestamp(answers: &[(u64, Message)]) -> Vec<(u64, Message)> {
    let mut answers = answers.to_vec();
    for (_, message) in &mut answers {
        if let Message::Done {
            result: Ok(done), ..
        } = message
        {
            done.timestamp = None;
        }
    }
    answers.sort_by_key(|(_, message)| match message {
        Message::Done { ticket, .. } => *ticket,
        _ => 0,
    });
    answers
}

#[test]
fn both_ways_answer_and_log_the_same() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let (mut short, mut long) = (One::new(1), One::new(1));
        for ticket in 1..400u64 {
            let count = random.below(4);
            let message = shot(ticket, (0..count).map(|_| operation(&mut random)).collect());
            assert!(is_direct(&encoded(&message)));
            short.bytes(ticket, &message);
            long.decoded(ticket, CLIENT, message);
            if random.one_in(4) {
                short.sync(ticket);
                long.sync(ticket);
            }
            // What waits for the log waits on both.
            assert_eq!(short.answers.len(), long.answers.len(), "seed {seed}");
        }
        short.sync(400);
        long.sync(400);
        assert_eq!(
            without_timestamp(&short.answers),
            without_timestamp(&long.answers),
            "seed {seed}"
        );
        let writes = |one: &One| -> Vec<_> {
            let writes = one.records.iter().map(|record| match record {
                Record::Commit { writes, .. } => writes.clone(),
                _ => Vec::new(),
            });
            writes.collect()
        };
        assert_eq!(writes(&short), writes(&long), "seed {seed}");
    }
}

#[test]
fn one_that_meets_an_intent_waits_for_it_and_leaves_nothing_behind() {
    let mut one = One::new(1);
    let head = Head {
        timestamp: 500,
        holder: 0,
        priority: 128,
    };
    let execute = Message::Execute {
        head,
        batch: 1,
        after: 0,
        deadline_ns: 1_000_000_000,
        operations: vec![Operation::put(key(1), "undecided")],
    };
    one.decoded(1, OTHER, execute);
    one.sync(1);
    one.answers.clear();
    // The first of its writes was done when the second met the intent.
    let operations = vec![
        Operation::put(key(2), "mine"),
        Operation::Get(key(1)),
        Operation::put(key(1), "mine"),
    ];
    one.bytes(2, &shot(1, operations));
    one.sync(2);
    assert_eq!(one.answers, []);
    one.bytes(3, &shot(2, vec![Operation::Get(key(2))]));
    one.sync(3);
    let of = |one: &One, wanted: u64| {
        let done = one.answers.iter().find_map(|(_, message)| match message {
            Message::Done { ticket, result } if *ticket == wanted => Some(result.clone()),
            _ => None,
        });
        done.map(|result| result.expect("it commits").answers)
    };
    assert_eq!(of(&one, 2), Some(vec![Answer::Value(None)]));
    one.decoded(
        4,
        OTHER,
        Message::Commit {
            head,
            writes: vec![(0, 1)],
        },
    );
    one.sync(4);
    let read = Answer::Value(Some(b"undecided".to_vec()));
    assert_eq!(of(&one, 1), Some(vec![Answer::Done, read, Answer::Done]));
}

#[test]
fn what_it_does_not_know_goes_the_long_way_and_damage_is_refused() {
    let scan = Operation::Scan(Scan::all(TABLE));
    let with_timestamp = |message| match message {
        Message::OneShot {
            ticket,
            priority,
            deadline_ns,
            request,
            ..
        } => Message::OneShot {
            ticket,
            timestamp: Some(5),
            priority,
            deadline_ns,
            request,
        },
        other => other,
    };
    let get = || shot(1, vec![Operation::Get(key(1))]);
    for message in [
        shot(1, vec![scan]),
        with_timestamp(get()),
        Message::Heartbeat { timestamp: 1 },
    ] {
        assert!(!is_direct(&encoded(&message)), "{message:?}");
    }
    let mut one = One::new(1);
    one.sync(1);
    one.answers.clear();
    let whole = encoded(&shot(
        1,
        vec![Operation::put(key(1), "x"), Operation::Get(key(1))],
    ));
    assert!(is_direct(&whole));
    for end in 0..whole.len() {
        let cut = &whole[..end];
        assert!(!is_direct(cut));
        let taken = one.partition.handle_bytes(2, CLIENT, cut, &mut one.effects);
        assert!(taken.is_err(), "{end} bytes of it");
    }
    let mut longer = whole.clone();
    longer.push(0);
    assert!(!is_direct(&longer));
    one.collect();
    one.sync(2);
    assert_eq!((one.answers.len(), one.records.len()), (0, 1));
}

#[test]
fn rows_of_other_partitions_are_fetched() {
    let mut one = One::new(2);
    let mut random = Random::new(1);
    let mut asked = 0;
    for ticket in 0..40 {
        let operations = vec![Operation::Get(key(random.below(1000) * 5 + 1))];
        let bytes = encoded(&shot(ticket, operations));
        let taken = one
            .partition
            .handle_bytes(ticket, CLIENT, &bytes, &mut one.effects);
        taken.expect("a message");
        let elsewhere = |to: &(Address, Message)| matches!(to.0, Address::Partition(1));
        asked += one.effects.sends.iter().filter(|to| elsewhere(to)).count();
        one.collect();
    }
    assert!((5..35).contains(&asked), "{asked} of 40");
}
