//! What deleted rows cost a scan, what it must know of them all the same, and what old versions
//! cost memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dyno_txn_api::{
    Answer, Code, Key, Operation, Page, Procedures, Request, Result, Scan, TableDef, TableId,
    Timestamp,
};
use dyno_txn_core::message::{Address, Head, Message};
use dyno_txn_core::{Config, Effects, Partition, Timestamps};

const CLIENT: Address = Address::Client(7);
const TABLE: TableId = TableId(1);
/// Bytes of a key that rows are spread by.
const PREFIX: u16 = 8;
/// What lies between two timestamps.
const STEP: Timestamp = 1_000;

/// Gives timestamps that the test can see.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Timestamps for Clock {
    fn next(&mut self) -> Option<Timestamp> {
        let before = self.0.fetch_add(STEP, Ordering::Relaxed);
        Some(before + STEP)
    }

    fn plausible(&mut self, _: Timestamp) -> bool {
        true
    }
}

struct One {
    partition: Partition,
    clock: Clock,
    effects: Effects,
}

impl One {
    fn new(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(0, 1);
        config.log = false;
        change(&mut config);
        let clock = Clock::default();
        let partition = Partition::new(config, Procedures::new(), Box::new(clock.clone()));
        let effects = Effects::default();
        let mut one = Self {
            partition,
            clock,
            effects,
        };
        let def = TableDef::hash("queue", PREFIX);
        one.say(Message::CreateTable { ticket: 0, def });
        one.make_durable();
        one
    }

    fn say(&mut self, message: Message) -> Vec<Message> {
        self.partition.handle(0, CLIENT, message, &mut self.effects);
        self.said()
    }

    fn make_durable(&mut self) -> Vec<Message> {
        let appended = self.partition.appended();
        self.partition.durable(0, appended, &mut self.effects);
        self.said()
    }

    fn said(&mut self) -> Vec<Message> {
        self.effects.records.clear();
        let sends = self.effects.sends.drain(..);
        sends.map(|(_, message)| message).collect()
    }

    fn shot(&mut self, operations: Vec<Operation>) -> Vec<Message> {
        self.say(Message::OneShot {
            ticket: 1,
            timestamp: None,
            priority: 128,
            deadline_ns: u64::MAX,
            request: Request::Operations(operations),
        })
    }

    fn done(&mut self, operations: Vec<Operation>) -> Vec<Answer> {
        answers(self.shot(operations)).expect("it commits")
    }

    /// A page, and the rows that were looked at for it.
    fn page(&mut self, scan: Scan) -> (Page, u64) {
        let before = self.partition.counters().scanned;
        let answers = self.done(vec![Operation::Scan(scan)]);
        let looked_at = self.partition.counters().scanned - before;
        match answers.into_iter().next() {
            Some(Answer::Page(page)) => (page, looked_at),
            other => panic!("{other:?} is not a page"),
        }
    }

    /// The operations of an interactive transaction that began at this timestamp.
    fn at(&mut self, timestamp: Timestamp, batch: u32, operations: Vec<Operation>) -> Vec<Message> {
        let head = Head {
            timestamp,
            holder: 0,
            priority: 128,
        };
        self.say(Message::Execute {
            head,
            batch,
            after: 0,
            deadline_ns: u64::MAX,
            operations,
        })
    }
}

fn answers(said: Vec<Message>) -> Result<Vec<Answer>> {
    match said.into_iter().next() {
        Some(Message::Done { result, .. }) => result.map(|done| done.answers),
        other => panic!("{other:?} is not an answer to a one-shot"),
    }
}

fn code(said: Vec<Message>) -> Code {
    match said.into_iter().next() {
        Some(Message::Executed {
            result: Err(error), ..
        }) => error.kind(),
        Some(Message::Done {
            result: Err(error), ..
        }) => error.kind(),
        other => panic!("{other:?} is not a refusal"),
    }
}

fn key(number: u64) -> Key {
    Key::new(TABLE, [[0; 8], number.to_be_bytes()].concat())
}

fn queue() -> Scan {
    Scan::prefix(TABLE, vec![0; 8])
}

#[test]
fn a_scan_does_not_visit_a_million_deleted_rows_before_the_first_living_one() {
    const ROWS: u64 = 1_000_000;
    let mut one = One::new(|config| {
        config.memory_bytes = 8 << 30;
        // All of them are kept for older snapshots while the test runs.
        config.retention_ns = u64::MAX;
    });
    for first in (0..ROWS).step_by(500) {
        let put = |number| Operation::put(key(number), number.to_be_bytes());
        one.done((first..first + 500).map(put).collect());
    }
    let before = one.clock.clone().next().expect("a timestamp");
    for first in (0..ROWS).step_by(500) {
        let delete = |number| Operation::delete(key(number));
        one.done((first..first + 500).map(delete).collect());
    }
    let (page, looked_at) = one.page(queue());
    assert_eq!((page.rows.len(), looked_at), (0, 0));
    one.done(vec![Operation::put(key(ROWS), "the oldest that waits")]);
    for scan in [
        queue().limit(1),
        queue(),
        queue().backward(),
        queue().limit(1).backward(),
    ] {
        let (page, looked_at) = one.page(scan);
        assert_eq!((page.rows.len(), page.next.is_none()), (1, true));
        assert_eq!(looked_at, 1);
    }
    // An older snapshot has them all still, and pays for those that it gets.
    let scanned = one.partition.counters().scanned;
    let said = one.at(before, 0, vec![Operation::Scan(queue().limit(10))]);
    let Some(Message::Executed {
        result: Ok(parts), ..
    }) = said.into_iter().next()
    else {
        panic!("the snapshot cannot be read");
    };
    let Some(Answer::Page(page)) = parts.into_iter().next().map(|part| part.answer) else {
        panic!("not a page");
    };
    let keys: Vec<Vec<u8>> = page.rows.into_iter().map(|row| row.key).collect();
    assert_eq!(
        keys,
        (0..10).map(|number| key(number).bytes).collect::<Vec<_>>()
    );
    assert_eq!(one.partition.counters().scanned - scanned, 10);
}

#[test]
fn a_queue_costs_the_same_however_long_it_has_been_served() {
    let mut one = One::new(|config| config.retention_ns = 200 * STEP);
    let mut costs = Vec::new();
    for number in 0..4_000u64 {
        one.done(vec![Operation::put(key(number), "waits")]);
        let (page, looked_at) = one.page(queue().limit(1));
        costs.push((page.rows.len(), looked_at));
        one.done(vec![Operation::delete(key(number))]);
    }
    assert!(costs.iter().all(|cost| *cost == (1, 1)), "{costs:?}");
}

#[test]
fn who_passes_over_a_deletion_is_told_when_the_deletion_is_durable() {
    let mut one = One::new(|config| config.log = true);
    one.shot(vec![Operation::put(key(1), "there")]);
    one.make_durable();
    assert!(one.shot(vec![Operation::delete(key(1))]).is_empty());
    let scan = Operation::Scan(queue());
    // A crash could bring the row back now, so nothing is said of its absence.
    assert!(one.shot(vec![scan.clone()]).is_empty());
    assert_eq!(one.make_durable().len(), 2);
    let answers = answers(one.shot(vec![scan])).expect("it commits");
    assert_eq!(answers, [Answer::Page(Page::default())]);
}

#[test]
fn nothing_is_put_below_a_scan_where_it_passed_over_a_deleted_row() {
    let mut one = One::new(|_| {});
    one.done(vec![Operation::put(key(1), "there")]);
    one.done(vec![Operation::delete(key(1))]);
    let older = one.clock.next().expect("a timestamp");
    let (page, looked_at) = one.page(queue());
    assert_eq!((page.rows.len(), looked_at), (0, 0));
    let put = Operation::put(key(1), "a phantom");
    assert_eq!(code(one.at(older, 0, vec![put.clone()])), Code::Conflict);
    one.done(vec![put]);
}

#[test]
fn a_read_of_a_deleted_row_is_known_when_the_row_has_gone() {
    let mut one = One::new(|config| config.retention_ns = 1_000 * STEP);
    one.done(vec![Operation::put(key(1), "there")]);
    one.done(vec![Operation::delete(key(1))]);
    let full = one.partition.memory_bytes();
    for _ in 0..900 {
        one.done(vec![Operation::get(key(1))]);
    }
    let older = one.clock.next().expect("a timestamp");
    one.done(vec![Operation::get(key(1))]);
    // The row goes although a snapshot that is still allowed has read it; the read must not go with
    // it.
    for _ in 0..300 {
        one.done(vec![Operation::get(key(2))]);
    }
    assert!(one.partition.memory_bytes() < full);
    let put = Operation::put(key(1), "below a read");
    assert_eq!(code(one.at(older, 0, vec![put])), Code::Conflict);
}

#[test]
fn memory_is_level_whatever_a_message_writes() {
    const ROWS: u64 = 50_000;
    for (each, turns) in [(1u64, 200_000u64), (25, 10_000), (500, 2_000)] {
        let mut one = One::new(|config| config.retention_ns = 100 * STEP);
        let mut most = [0; 2];
        for turn in 0..turns {
            let write = |at| Operation::put(key((turn * each + at) % ROWS), [7; 100]);
            one.done((0..each).map(write).collect());
            let most = &mut most[usize::from(turn >= turns / 2)];
            *most = one.partition.memory_bytes().max(*most);
        }
        let [first, second] = most;
        assert!(
            second <= first,
            "{each} rows a message: {first}, then {second} bytes"
        );
    }
}

#[test]
fn work_that_waited_until_its_snapshot_was_forgotten_is_refused() {
    let mut one = One::new(|config| config.retention_ns = 100 * STEP);
    one.done(vec![
        Operation::put(key(1), "first"),
        Operation::put(key(2), "first"),
    ]);
    let (owner, waiter) = (one.clock.next(), one.clock.next());
    let (owner, waiter) = (owner.expect("one"), waiter.expect("another"));
    one.at(owner, 0, vec![Operation::put(key(1), "undecided")]);
    let reads = vec![Operation::get(key(1)), Operation::get(key(2))];
    assert!(one.at(waiter, 0, reads).is_empty());
    for _ in 0..500 {
        one.done(vec![Operation::put(key(2), "later")]);
    }
    let head = Head {
        timestamp: owner,
        holder: 0,
        priority: 128,
    };
    // What it would have seen of the second row is not there any more.
    let said = one.say(Message::Abort { head });
    let said = said.into_iter();
    let executed = said.filter(|said| matches!(said, Message::Executed { .. }));
    assert_eq!(code(executed.collect()), Code::TooOld);
}
