//! A session runs one transaction after the other, in any of the three ways, and records what it
//! saw.

use std::time::Duration;

use dyno_sim::Random;
use dyno_txn_api::{
    Answer, Change, Committed, Error, Operation, Options, Request, Result, Retry, Timestamp,
};
use dyno_txn_core::message::{Address, Fate, Message, PartitionId};
use dyno_txn_core::{Coordinator, Event};

use super::cluster::{Cluster, Timer};
use super::known_answers::KnownAnswers;
use crate::drive::{Way, answered, one_shot};
use crate::history::{Op, Outcome, Transaction};
use crate::workload::{self, PROCEDURE, PlannedTransaction, Session as Noted, Step};

/// How often a client asks for the outcome of a request.
const ASKS_MAX: u8 = 3;

pub(super) struct Session {
    pub client: usize,
    random: Random,
    doing: Doing,
    planned: PlannedTransaction,
    way: Way,
    recorded: Option<Transaction>,
    /// Counts what the session waits for, so that late timers and late answers are recognised.
    turn: u64,
    /// The outcome of its last transaction.
    pub last: Option<Outcome>,
}

enum Doing {
    Nothing,
    AwaitingTimestamp,
    Interactive(Box<Interactive>),
    OneShot {
        to: PartitionId,
        ops: Vec<Op>,
        asks: u8,
    },
}

struct Interactive {
    coordinator: Coordinator,
    answers: Vec<Result<Vec<Answer>>>,
    waits_for: Option<u32>,
    /// The transaction is abandoned without a word after this many answers.
    leave_after: Option<usize>,
}

impl Session {
    pub fn new(client: usize, random: Random) -> Self {
        Self {
            client,
            random,
            doing: Doing::Nothing,
            planned: PlannedTransaction {
                by: 0,
                steps: Vec::new(),
            },
            way: Way::Interactive,
            recorded: None,
            turn: 0,
            last: None,
        }
    }

    pub fn is_idle(&self) -> bool {
        matches!(self.doing, Doing::Nothing)
    }
}

impl Cluster {
    /// Begins a transaction that the session chooses at random.
    pub(super) fn begin_any(&mut self, session: usize) {
        let by = self.next_id();
        let (shape, mix) = (self.chosen.shape, self.chosen.mix);
        let random = &mut self.sessions[session].random;
        let planned = shape.plan(mix, random, by);
        let way = [Way::Interactive, Way::Call, Way::Operations][random.below(3)];
        self.begin(session, planned, way);
    }

    pub(super) fn begin(&mut self, session: usize, planned: PlannedTransaction, way: Way) {
        let way = match (way, one_shot(self.tables, &planned)) {
            (Way::Operations, None) => Way::Interactive,
            _ => way,
        };
        let begin_ns = self.world.now_ns();
        let doing = &mut self.sessions[session];
        doing.recorded = Some(Transaction {
            id: planned.by,
            process: session as u32,
            begin_ns,
            end_ns: None,
            outcome: Outcome::Unknown,
            timestamp: None,
            ops: planned.intended(),
        });
        (doing.planned, doing.way) = (planned, way);
        doing.turn += 1;
        if self.chosen.in_process && way != Way::Interactive {
            return self.send_one_shot(session, None);
        }
        doing.doing = Doing::AwaitingTimestamp;
        let client = doing.client;
        self.want_timestamp(client, session);
    }

    /// Continues with a timestamp, or ends without one.
    pub(super) fn timestamp_arrived(&mut self, session: usize, result: Result<Timestamp>) {
        if !matches!(self.sessions[session].doing, Doing::AwaitingTimestamp) {
            return;
        }
        let Ok(timestamp) = result else {
            return self.end(session, Outcome::Fail);
        };
        let now = self.mono(self.node_of(session));
        let chosen = self.chosen;
        let doing = &mut self.sessions[session];
        if let Some(recorded) = &mut doing.recorded {
            recorded.timestamp = Some(timestamp);
        }
        if doing.way != Way::Interactive {
            return self.send_one_shot(session, Some(timestamp));
        }
        let options = Options {
            deadline: Duration::from_nanos(chosen.deadline_ns),
            priority: 127 + doing.random.below(3) as u8,
            ..Options::default()
        };
        let leaves = chosen.abandon_one_in > 0 && doing.random.one_in(chosen.abandon_one_in);
        doing.doing = Doing::Interactive(Box::new(Interactive {
            coordinator: Coordinator::begin(now, timestamp, chosen.partitions(), &options),
            answers: Vec::new(),
            waits_for: None,
            leave_after: leaves.then(|| doing.random.below(4)),
        }));
        self.go_on(session);
    }

    /// Runs the transaction's code with the answers that are there, and sends what it requests
    /// next.
    fn go_on(&mut self, session: usize) {
        let now = self.mono(self.node_of(session));
        let mut sends = Vec::new();
        let mut ended = None;
        let doing = &mut self.sessions[session];
        let Doing::Interactive(running) = &mut doing.doing else {
            return;
        };
        loop {
            let mut answers = KnownAnswers::new(&running.answers, &self.schema);
            let mut noted = Noted::new(&mut answers, self.tables, doing.planned.by);
            let worked = doing.planned.run(&mut noted);
            let ops = noted.into_ops();
            let missing = answers.missing;
            if let Some(recorded) = &mut doing.recorded {
                recorded.ops = ops;
            }
            // An abandoned transaction never sends its commit, so it is known to fail. Its intents
            // stay until recovery removes them.
            if running
                .leave_after
                .is_some_and(|after| running.answers.len() > after)
            {
                return self.end(session, Outcome::Fail);
            }
            match (missing, worked) {
                (Some(operations), _) => {
                    // An eager client takes the success of a blind write for granted. If it fails
                    // after all, the commit is refused.
                    let blind = self.chosen.eager && is_blind(&operations);
                    let answer = vec![Answer::Done; operations.len()];
                    match running
                        .coordinator
                        .run(now, &self.schema, operations, &mut sends)
                    {
                        Err(error) => running.answers.push(Err(error)),
                        Ok(_) if blind => running.answers.push(Ok(answer)),
                        Ok(number) => {
                            running.waits_for = Some(number);
                            break;
                        }
                    }
                }
                (None, Ok(())) => {
                    ended = running.coordinator.commit(now, &mut sends);
                    break;
                }
                (None, Err(_)) => {
                    running.coordinator.rollback(&mut sends);
                    self.send_all(session, sends);
                    return self.end(session, Outcome::Fail);
                }
            }
        }
        self.send_all(session, sends);
        self.happened(session, ended);
        self.arm(session);
    }

    /// Handles what the coordinator has learned.
    fn happened(&mut self, session: usize, event: Option<Event>) {
        let Doing::Interactive(running) = &mut self.sessions[session].doing else {
            return;
        };
        match event {
            None => {}
            Some(Event::Ended(result)) => self.end(session, outcome(&result)),
            Some(Event::Batch { number, result }) if running.waits_for == Some(number) => {
                running.waits_for = None;
                running.answers.push(result);
                self.go_on(session);
            }
            // This is the answer to a blind write, which the code did not wait for.
            Some(Event::Batch { .. }) => {}
        }
    }

    /// Sets the timer for the coordinator's next deadline.
    fn arm(&mut self, session: usize) {
        let node = self.node_of(session);
        let now = self.mono(node);
        let doing = &self.sessions[session];
        if let Doing::Interactive(running) = &doing.doing {
            let after = running.coordinator.wake_at().saturating_sub(now) + 1;
            let turn = doing.turn;
            self.world
                .set_timer(node, after, Timer::Session { session, turn });
        }
    }

    /// Sends a transaction in one request, with or without a timestamp.
    fn send_one_shot(&mut self, session: usize, timestamp: Option<Timestamp>) {
        let doing = &mut self.sessions[session];
        let first = doing.planned.intended().first().and_then(Op::written);
        let (request, ops) = match (doing.way, one_shot(self.tables, &doing.planned)) {
            (Way::Operations, Some((operations, ops))) => (Request::Operations(operations), ops),
            _ => {
                let procedure = PROCEDURE.to_owned();
                let arguments = doing.planned.arguments();
                let home = None;
                let request = Request::Call {
                    procedure,
                    arguments,
                    home,
                };
                (request, Vec::new())
            }
        };
        // Most requests go to the partition of their first row. The others find out that a
        // partition can run work on rows of others.
        let anywhere = doing.random.below(self.chosen.partitions() as usize) as PartitionId;
        let home = first.filter(|_| !doing.random.one_in(4));
        let to = home.map_or(anywhere, |key| self.home_of(key));
        let doing = &mut self.sessions[session];
        let (ticket, turn) = (doing.turn, doing.turn);
        let priority = 127 + doing.random.below(3) as u16;
        doing.doing = Doing::OneShot { to, ops, asks: 0 };
        let deadline_ns = self.chosen.deadline_ns;
        let one_shot_message = Message::OneShot {
            ticket,
            timestamp,
            priority,
            deadline_ns,
            request,
        };
        self.send_all(session, vec![(to, one_shot_message)]);
        let node = self.node_of(session);
        self.world
            .set_timer(node, deadline_ns * 2, Timer::Session { session, turn });
    }

    /// Handles a message to a session.
    pub(super) fn on_session_message(&mut self, session: usize, from: Address, message: Message) {
        let Address::Partition(from) = from else {
            return;
        };
        let doing = &mut self.sessions[session];
        let timestamp = doing
            .recorded
            .as_ref()
            .and_then(|recorded| recorded.timestamp);
        match (&mut doing.doing, message) {
            (Doing::OneShot { ops, .. }, Message::Done { ticket, result })
                if ticket == doing.turn =>
            {
                let ops = std::mem::take(ops);
                self.on_one_shot_done(session, ops, result);
            }
            (
                Doing::OneShot { asks: 1.., .. },
                Message::FateAnswer {
                    timestamp: of,
                    fate,
                },
            ) if Some(of) == timestamp => {
                // The client learns that the transaction committed, but not what it read. If that
                // decided what it wrote, as in a transfer, its history cannot say what happened.
                let certain = |step: &Step| !matches!(step, Step::Transfer { .. });
                match fate {
                    Fate::Aborted => self.end(session, Outcome::Fail),
                    Fate::Committed if doing.planned.steps.iter().all(certain) => {
                        self.end(session, Outcome::Ok);
                    }
                    _ => self.end(session, Outcome::Unknown),
                }
            }
            (Doing::Interactive(running), message) if message.to_interactive() == timestamp => {
                let mut sends = Vec::new();
                let event = running.coordinator.handle(from, message, &mut sends);
                self.send_all(session, sends);
                self.happened(session, event);
            }
            _ => {}
        }
    }

    /// Records the answer to a transaction in one request.
    fn on_one_shot_done(&mut self, session: usize, ops: Vec<Op>, result: Result<Committed>) {
        let way = self.sessions[session].way;
        let outcome = outcome(&result);
        if let (Ok(committed), Some(recorded)) = (result, &mut self.sessions[session].recorded) {
            recorded.timestamp = committed.timestamp;
            if way == Way::Operations {
                answered(committed, ops, recorded);
            } else {
                match workload::returned(&committed.returned) {
                    Ok(ops) => recorded.ops = ops,
                    Err(error) => self.complain(error.to_string()),
                }
            }
        }
        self.end(session, outcome);
    }

    /// Handles a timer of a session.
    pub(super) fn on_session_timer(&mut self, session: usize, turn: u64) {
        let node = self.node_of(session);
        let now = self.mono(node);
        let doing = &mut self.sessions[session];
        if doing.turn != turn {
            return;
        }
        let timestamp = doing
            .recorded
            .as_ref()
            .and_then(|recorded| recorded.timestamp);
        match (&mut doing.doing, timestamp) {
            (Doing::Interactive(running), _) => {
                let mut sends = Vec::new();
                let event = running.coordinator.tick(now, &mut sends);
                self.send_all(session, sends);
                self.happened(session, event);
                self.arm(session);
            }
            // Without a timestamp a request has no name that could be asked for, and its outcome
            // stays unknown.
            (Doing::OneShot { to, asks, .. }, Some(timestamp)) if *asks < ASKS_MAX => {
                *asks += 1;
                let ask = vec![(*to, Message::Ask { timestamp })];
                self.send_all(session, ask);
                let after = self.chosen.deadline_ns;
                self.world
                    .set_timer(node, after, Timer::Session { session, turn });
            }
            (Doing::OneShot { .. }, _) => self.end(session, Outcome::Unknown),
            (Doing::Nothing | Doing::AwaitingTimestamp, _) => {}
        }
    }

    fn end(&mut self, session: usize, outcome: Outcome) {
        let now = self.world.now_ns();
        let node = self.node_of(session);
        let doing = &mut self.sessions[session];
        doing.doing = Doing::Nothing;
        doing.turn += 1;
        doing.last = Some(outcome);
        if let Some(mut recorded) = doing.recorded.take() {
            recorded.outcome = outcome;
            recorded.end_ns = (outcome != Outcome::Unknown).then_some(now);
            self.history.transactions.push(recorded);
        }
        let pause = self.chosen.pause_ns;
        let after = pause / 2 + doing.random.between(0, pause);
        self.world.set_timer(node, after, Timer::Next { session });
    }

    fn send_all(&mut self, session: usize, sends: Vec<(PartitionId, Message)>) {
        let node = self.node_of(session);
        let from = Address::Client(session as u64);
        for (to, message) in sends {
            self.post(node, from, Address::Partition(to), message);
        }
    }
}

fn outcome<T>(result: &Result<T>) -> Outcome {
    match result {
        Ok(_) => Outcome::Ok,
        Err(error) if is_unknown(error) => Outcome::Unknown,
        Err(_) => Outcome::Fail,
    }
}

fn is_unknown(error: &Error) -> bool {
    error.retry() == Retry::Unknown
}

/// Whether the operations are writes that cannot fail because of what is there, so that their
/// answers need not be waited for.
fn is_blind(operations: &[Operation]) -> bool {
    let blind = |operation: &Operation| {
        matches!(
            operation,
            Operation::Write(_, Change::Put(_) | Change::Delete)
        )
    };
    operations.iter().all(blind)
}
