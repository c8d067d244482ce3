//! Clients that run random transactions and write down what they saw.

use std::collections::BTreeMap;
use std::time::Duration;

use dyno_txn_api::{
    Answer, Key, Operation, Operations, Options, Procedures, Request, Result, Retry, Scan, TableId,
    Timestamp,
};
use dyno_txn_core::message::{Address, Message};
use dyno_txn_core::placement::partition_of;
use dyno_txn_core::{Coordinator, Event, Schema};

use crate::cluster::Cluster;

pub const KEYS: usize = 10;

/// How a transaction ended, as far as its client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Committed,
    Aborted,
    Unknown,
}

/// What one operation saw or did.
#[derive(Debug, Clone, PartialEq)]
pub enum Saw {
    Read(Key, Option<Vec<u8>>),
    Wrote(Key, Option<Vec<u8>>),
    Scanned(TableId, Vec<(Vec<u8>, Vec<u8>)>),
}

#[derive(Debug, Clone)]
pub struct Transaction {
    /// None when it came to an end before its client heard of one.
    pub timestamp: Option<Timestamp>,
    /// The newest timestamp that any client had heard of when it began.
    pub after: Timestamp,
    pub saw: Vec<Saw>,
    pub end: End,
}

/// Operations that are sent one batch after the other, then a commit.
struct Interactive {
    coordinator: Coordinator,
    left: Vec<Vec<Operation>>,
    running: Vec<Operation>,
}

enum Doing {
    Nothing,
    Interactive(Box<Interactive>),
    OneShot {
        ticket: u64,
        operations: Vec<Operation>,
        until: u64,
    },
}

pub struct Client {
    id: u64,
    doing: Doing,
    current: Transaction,
    next: u64,
    pub history: Vec<Transaction>,
}

/// `swap KEY KEY VALUE VALUE`, so that a procedure reads and writes several partitions. It returns
/// what it read.
pub fn procedures(tables: [TableId; 2]) -> Procedures {
    let mut procedures = Procedures::new();
    let swap = move |t: &mut dyn Operations, arguments: &[u8]| -> Result<Vec<u8>> {
        let (a, b) = ([arguments[0]], [arguments[1]]);
        let first = t.get(tables[0], &a)?.unwrap_or_default();
        t.put(tables[1], &b, &arguments[2..10])?;
        let second = t.get(tables[1], &b)?.unwrap_or_default();
        assert_eq!(second, &arguments[2..10], "a procedure sees its own writes");
        t.put(tables[0], &a, &arguments[10..18])?;
        Ok(first)
    };
    procedures.add("swap", swap).expect("the first");
    procedures
}

fn nothing() -> Transaction {
    Transaction {
        timestamp: None,
        after: 0,
        saw: Vec::new(),
        end: End::Aborted,
    }
}

impl Client {
    pub fn new(id: u64) -> Self {
        Self {
            id,
            doing: Doing::Nothing,
            current: nothing(),
            next: 0,
            history: Vec::new(),
        }
    }

    pub fn idle(&self) -> bool {
        matches!(self.doing, Doing::Nothing)
    }

    fn value(&mut self) -> Vec<u8> {
        self.next += 1;
        (self.id << 32 | self.next).to_le_bytes().to_vec()
    }

    /// Whether a deletion of unknown outcome was done cannot be seen: with faults there is none.
    fn operation(&mut self, cluster: &mut Cluster, tables: [TableId; 2]) -> Operation {
        let (faulty, random) = (cluster.faulty(), &mut cluster.random);
        let table = tables[random.below(2)];
        let key = Key::new(table, [random.below(KEYS) as u8]);
        match random.below(10) {
            0..4 => Operation::get(key),
            4..8 => Operation::put(key, self.value()),
            8 if !faulty => Operation::delete(key),
            _ if random.one_in(2) => Operation::Scan(Scan::all(tables[1])),
            _ => Operation::Scan(Scan::all(tables[1]).backward().limit(3)),
        }
    }

    /// Begins something.
    pub fn begin(
        &mut self,
        cluster: &mut Cluster,
        schema: &Schema,
        tables: [TableId; 2],
        heard: Timestamp,
    ) {
        self.current = Transaction {
            after: heard,
            ..nothing()
        };
        let now = cluster.shared.now();
        match cluster.random.below(3) {
            0 => self.begin_one_shot(cluster, schema, tables),
            _ if cluster.random.one_in(4) => self.begin_call(cluster, schema, tables),
            _ => {
                let timestamp = cluster.shared.clock.issue(now).expect("no bound");
                self.current.timestamp = Some(timestamp);
                let options = Options {
                    deadline: Duration::from_secs(3),
                    ..Options::default()
                };
                let coordinator =
                    Coordinator::begin(now, timestamp, cluster.partitions(), &options);
                let batches = 1 + cluster.random.below(3);
                let mut left = Vec::new();
                for _ in 0..batches {
                    let count = 1 + cluster.random.below(3);
                    let batch = (0..count).map(|_| self.operation(cluster, tables));
                    left.push(batch.collect());
                }
                let mut interactive = Interactive {
                    coordinator,
                    left,
                    running: Vec::new(),
                };
                self.go_on(cluster, schema, &mut interactive);
                self.doing = Doing::Interactive(Box::new(interactive));
            }
        }
    }

    fn begin_one_shot(&mut self, cluster: &mut Cluster, schema: &Schema, tables: [TableId; 2]) {
        let count = 1 + cluster.random.below(4);
        let operations: Vec<_> = (0..count)
            .map(|_| self.operation(cluster, tables))
            .collect();
        self.send_one_shot(
            cluster,
            schema,
            Request::Operations(operations.clone()),
            operations,
        );
    }

    fn begin_call(&mut self, cluster: &mut Cluster, schema: &Schema, tables: [TableId; 2]) {
        let (a, b) = (
            cluster.random.below(KEYS) as u8,
            cluster.random.below(KEYS) as u8,
        );
        let (x, y) = (self.value(), self.value());
        let arguments = [&[a, b], &x[..], &y[..]].concat();
        let operations = vec![
            Operation::get(Key::new(tables[0], [a])),
            Operation::put(Key::new(tables[1], [b]), x),
            Operation::put(Key::new(tables[0], [a]), y),
        ];
        let procedure = "swap".to_owned();
        let request = Request::Call {
            procedure,
            arguments,
            home: None,
        };
        self.send_one_shot(cluster, schema, request, operations);
    }

    fn send_one_shot(
        &mut self,
        cluster: &mut Cluster,
        schema: &Schema,
        request: Request,
        operations: Vec<Operation>,
    ) {
        self.next += 1;
        let (ticket, now) = (self.next, cluster.shared.now());
        // A transaction of unknown outcome can be placed when its timestamp is known.
        let given = cluster.faulty() || cluster.random.one_in(2);
        let timestamp = given.then(|| cluster.shared.clock.issue(now).expect("no bound"));
        self.current.timestamp = timestamp;
        let to = match &operations[0] {
            Operation::Get(key) | Operation::Write(key, _) => {
                let def = schema.table(key.table).expect("made before");
                partition_of(def, cluster.partitions(), &key.bytes)
            }
            Operation::Scan(_) => cluster.random.below(cluster.partitions() as usize) as u32,
        };
        let one_shot = Message::OneShot {
            ticket,
            timestamp,
            priority: 128,
            deadline_ns: 3_000_000_000,
            request,
        };
        cluster.send(Address::Client(self.id), Address::Partition(to), one_shot);
        self.doing = Doing::OneShot {
            ticket,
            operations,
            until: now + 5_000_000_000,
        };
    }

    /// The next batch, or the commit.
    fn go_on(&mut self, cluster: &mut Cluster, schema: &Schema, doing: &mut Interactive) {
        let (now, mut sends) = (cluster.shared.now(), Vec::new());
        let mut event = None;
        match doing.left.pop() {
            Some(batch) => {
                doing.running = batch.clone();
                let run = doing.coordinator.run(now, schema, batch, &mut sends);
                run.expect("tables are there");
            }
            None => event = doing.coordinator.commit(now, &mut sends),
        }
        self.dispatch(cluster, sends);
        if let Some(Event::Ended(result)) = event {
            self.end(result);
        }
    }

    fn dispatch(&mut self, cluster: &mut Cluster, sends: Vec<(u32, Message)>) {
        for (to, message) in sends {
            cluster.send(Address::Client(self.id), Address::Partition(to), message);
        }
    }

    fn end(&mut self, result: Result<()>) {
        self.current.end = match result {
            Ok(()) => End::Committed,
            Err(error) if error.retry() == Retry::Unknown => End::Unknown,
            Err(_) => End::Aborted,
        };
        self.history
            .push(std::mem::replace(&mut self.current, nothing()));
        self.doing = Doing::Nothing;
    }

    /// Something came.
    pub fn hear(
        &mut self,
        cluster: &mut Cluster,
        schema: &Schema,
        from: Address,
        message: Message,
    ) {
        let Address::Partition(from) = from else {
            return;
        };
        match (std::mem::replace(&mut self.doing, Doing::Nothing), message) {
            (Doing::Interactive(mut doing), message) => {
                let timestamp = doing.coordinator.timestamp();
                let mine = match &message {
                    Message::Executed { timestamp: of, .. }
                    | Message::Ended { timestamp: of, .. }
                    | Message::FateAnswer { timestamp: of, .. } => *of == timestamp,
                    _ => false,
                };
                let mut sends = Vec::new();
                let event = if mine {
                    doing.coordinator.handle(from, message, &mut sends)
                } else {
                    None
                };
                self.dispatch(cluster, sends);
                self.happened(cluster, schema, doing, event);
            }
            (
                Doing::OneShot {
                    ticket,
                    operations,
                    until,
                },
                Message::Done { ticket: of, result },
            ) => {
                if of != ticket {
                    self.doing = Doing::OneShot {
                        ticket,
                        operations,
                        until,
                    };
                    return;
                }
                let result = result.map(|done| {
                    self.current.timestamp = done.timestamp;
                    if done.answers.is_empty() {
                        let read = (!done.returned.is_empty()).then_some(done.returned);
                        let answers = vec![Answer::Value(read), Answer::Done, Answer::Done];
                        self.note(&operations, answers);
                    } else {
                        self.note(&operations, done.answers)
                    }
                });
                if result.is_err() {
                    self.note_writes(&operations);
                }
                self.end(result);
            }
            (doing, _) => self.doing = doing,
        }
    }

    fn happened(
        &mut self,
        cluster: &mut Cluster,
        schema: &Schema,
        mut doing: Box<Interactive>,
        event: Option<Event>,
    ) {
        match event {
            None => self.doing = Doing::Interactive(doing),
            Some(Event::Ended(result)) => self.end(result),
            Some(Event::Batch {
                result: Ok(answers),
                ..
            }) => {
                let operations = std::mem::take(&mut doing.running);
                self.note(&operations, answers);
                self.doing = Doing::Nothing;
                self.go_on(cluster, schema, &mut doing);
                if self.current.timestamp.is_some() {
                    self.doing = Doing::Interactive(doing);
                }
            }
            Some(Event::Batch {
                result: Err(error), ..
            }) => {
                let mut sends = Vec::new();
                doing.coordinator.rollback(&mut sends);
                self.dispatch(cluster, sends);
                self.end(Err(error));
            }
        }
    }

    fn note_writes(&mut self, operations: &[Operation]) {
        for operation in operations {
            if let Operation::Write(..) = operation {
                self.note(std::slice::from_ref(operation), vec![Answer::Done]);
            }
        }
    }

    fn note(&mut self, operations: &[Operation], answers: Vec<Answer>) {
        assert_eq!(operations.len(), answers.len());
        for (operation, answer) in operations.iter().zip(answers) {
            self.current.saw.push(match (operation, answer) {
                (Operation::Get(key), Answer::Value(value)) => Saw::Read(key.clone(), value),
                (Operation::Write(key, dyno_txn_api::Change::Put(value)), _) => {
                    Saw::Wrote(key.clone(), Some(value.clone()))
                }
                (Operation::Write(key, _), _) => Saw::Wrote(key.clone(), None),
                (Operation::Scan(scan), Answer::Page(page)) => {
                    // A page that was cut is judged by what it has: clients here only use the
                    // first.
                    let rows = page.rows.into_iter().map(|row| (row.key, row.value));
                    let mut rows: Vec<_> = rows.collect();
                    if scan.limit <= 3 {
                        rows.push((b"first three from the end".to_vec(), Vec::new()));
                    }
                    Saw::Scanned(scan.table, rows)
                }
                other => panic!("an answer of another kind: {other:?}"),
            });
        }
    }

    /// Time passes.
    pub fn tick(&mut self, cluster: &mut Cluster) {
        let now = cluster.shared.now();
        match &mut self.doing {
            Doing::Interactive(doing) if doing.coordinator.wake_at() <= now => {
                let mut sends = Vec::new();
                let event = doing.coordinator.tick(now, &mut sends);
                let running = std::mem::take(&mut doing.running);
                doing.running = running;
                self.dispatch(cluster, sends);
                if let Some(Event::Ended(result)) = event {
                    self.end(result);
                }
            }
            Doing::OneShot {
                operations, until, ..
            } if *until <= now => {
                let operations = std::mem::take(operations);
                self.note_writes(&operations);
                let text = "no answer came";
                let error = dyno_txn_api::Error::new(dyno_txn_api::Code::OutcomeUnknown, text);
                self.end(Err(error));
            }
            _ => {}
        }
    }
}

/// All rows, by a transaction of its own once nothing else goes on.
pub type State = BTreeMap<(TableId, Vec<u8>), Vec<u8>>;
