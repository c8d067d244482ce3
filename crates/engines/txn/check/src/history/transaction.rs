//! A transaction as its client saw it.

use std::fmt;

use super::event::{Event, Op, Outcome, What};
use super::{Key, shown};

/// One attempt of a client to run a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// A number that is unique in the history.
    pub id: u64,
    /// The number of the client.
    pub process: u32,
    /// When it began, in nanoseconds on the shared clock.
    pub begin_ns: u64,
    /// When its client got the outcome. If the outcome is unknown, this says nothing about the
    /// effect.
    pub end_ns: Option<u64>,
    /// Whether it took effect, as far as its client knows.
    pub outcome: Outcome,
    /// Its place in the order that the database claims, if the client was told.
    pub timestamp: Option<u64>,
    /// What it did and saw, in order.
    pub ops: Vec<Op>,
}

impl Transaction {
    pub(super) fn new(id: u64, process: u32, begin_ns: u64) -> Self {
        Self {
            id,
            process,
            begin_ns,
            end_ns: None,
            outcome: Outcome::Unknown,
            timestamp: None,
            ops: Vec::new(),
        }
    }

    pub(super) fn apply(&mut self, event: &Event) -> Result<(), &'static str> {
        if self.end_ns.is_some() {
            return Err("it has ended before");
        }
        if event.at_ns < self.begin_ns {
            return Err("it is earlier than the beginning");
        }
        match &event.what {
            What::Begin { .. } => return Err("it began before"),
            What::Timestamp { timestamp } => self.learn(*timestamp)?,
            What::Did(op) => self.ops.push(op.clone()),
            What::End { outcome, timestamp } => {
                if let Some(timestamp) = timestamp {
                    self.learn(*timestamp)?;
                }
                self.outcome = *outcome;
                self.end_ns = Some(event.at_ns);
            }
        }
        Ok(())
    }

    fn learn(&mut self, timestamp: u64) -> Result<(), &'static str> {
        match self.timestamp.replace(timestamp) {
            Some(before) if before != timestamp => Err("it has two different timestamps"),
            _ => Ok(()),
        }
    }

    /// The rows that it wrote or may have written.
    pub fn written(&self) -> impl Iterator<Item = Key> + '_ {
        self.ops.iter().filter_map(Op::written)
    }

    /// The events of this transaction. Operations get the time of its beginning.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        let event = |at_ns, what| Event {
            transaction: self.id,
            at_ns,
            what,
        };
        let process = self.process;
        let timestamp = self
            .timestamp
            .map(|timestamp| What::Timestamp { timestamp });
        let ops = self.ops.iter().map(|op| What::Did(op.clone()));
        let end = self.end_ns.map(|at_ns| {
            let (outcome, timestamp) = (self.outcome, None);
            event(at_ns, What::End { outcome, timestamp })
        });
        std::iter::once(What::Begin { process })
            .chain(timestamp)
            .chain(ops)
            .map(move |what| event(self.begin_ns, what))
            .chain(end)
    }
}

impl fmt::Display for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{} (client {}", self.id, self.process)?;
        if let Some(timestamp) = self.timestamp {
            write!(f, ", timestamp {timestamp}")?;
        }
        match self.outcome {
            Outcome::Ok => f.write_str("): ")?,
            Outcome::Fail => f.write_str(", failed): ")?,
            Outcome::Unknown => f.write_str(", outcome unknown): ")?,
        }
        for (at, op) in self.ops.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{op}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { key, value } => write!(f, "read {key} = {}", shown(value.as_ref())),
            Self::Write { key, value: None } => write!(f, "delete {key}"),
            Self::Write { key, value } => write!(f, "write {key} = {}", shown(value.as_ref())),
            Self::Append { key, element } => write!(f, "append {element} to {key}"),
            Self::Change { key } => write!(f, "change {key}"),
            Self::Scan(scan) => {
                let way = if scan.reverse { " backwards" } else { "" };
                let (table, from, to) = (scan.table, scan.from, scan.to);
                write!(
                    f,
                    "scan {table}/{from}..{to}{way} = {} rows",
                    scan.rows.len()
                )
            }
            Self::Lookup(lookup) => {
                let (table, from, to) = (lookup.table, lookup.from, lookup.to);
                write!(
                    f,
                    "look up {from}..{to} in {table} = {} rows",
                    lookup.rows.len()
                )
            }
        }
    }
}
