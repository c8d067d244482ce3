//! Transactions in one request. Run where they arrive, at one stamp; what lies elsewhere is fetched, and
//! then they run again from the start, until nothing is missing. Reads at a stamp are repeatable, so the
//! second run sees what the first one saw.

use std::collections::{BTreeMap, HashMap};

use dyno_txn_api::limits::{CALL_BYTES_MAX, OPERATIONS_MAX};
use dyno_txn_api::{
    Answer, Change, Code, Committed, Error, Key, Operation, Request, Result, Retry, Scan, Stamp,
};

use super::holder::{Holding, Reply, State};
use super::inline::{Inline, Ran};
use super::participant::Participant;
use super::waiting::Work;
use super::{Partition, Position, Timer};
use crate::message::{Address, Head, Message, Part, PartitionId};

/// How often one is tried with a new stamp after a conflict, and how often it runs until nothing is
/// missing.
const TRIES_MAX: u32 = 16;
const ROUNDS_MAX: u32 = 64;

/// A one-shot under way.
#[derive(Debug)]
pub(super) struct Shot {
    pub from: Address,
    pub ticket: u64,
    /// Whether its stamp came with it; then it is tried once.
    pub given: bool,
    pub stamp: Stamp,
    pub priority: u16,
    pub until: u64,
    pub request: Request,
    /// Rows of other partitions.
    pub gets: HashMap<Key, Option<Vec<u8>>>,
    /// Pages of other partitions.
    pub pages: Vec<(PartitionId, Scan, Part)>,
    round: u32,
    tries: u32,
}

/// A one-shot that waits for other partitions' rows.
#[derive(Debug)]
pub(super) struct Fetch {
    shot: Box<Shot>,
    missing: BTreeMap<PartitionId, Vec<Operation>>,
}

impl Shot {
    pub fn new(
        from: Address,
        ticket: u64,
        stamp: Option<Stamp>,
        priority: u16,
        until: u64,
        request: Request,
    ) -> Self {
        Self {
            from,
            ticket,
            given: stamp.is_some(),
            stamp: stamp.unwrap_or(0),
            priority,
            until,
            request,
            gets: HashMap::new(),
            pages: Vec::new(),
            round: 0,
            tries: 0,
        }
    }

    fn head(&self, holder: PartitionId) -> Head {
        let (stamp, priority) = (self.stamp, self.priority);
        Head {
            stamp,
            holder,
            priority,
        }
    }
}

impl Partition {
    pub(super) fn start_shot(&mut self, mut shot: Shot) {
        let too_large = match &shot.request {
            Request::Operations(operations) => operations.len() > OPERATIONS_MAX,
            Request::Call { arguments, .. } => arguments.len() > CALL_BYTES_MAX,
        };
        if too_large {
            let error = Error::new(
                Code::TooLarge,
                "a request with too many operations or bytes",
            );
            return self.refuse(shot, error);
        }
        if shot.given {
            if let Err(error) = self.check_stamp(shot.from, shot.stamp) {
                return self.refuse(shot, error);
            }
            // The same request again, or one whose fate was asked for before it came: no second run.
            let known = self.outcomes.get(shot.stamp).is_some();
            if known || !self.active.insert(shot.stamp) {
                return;
            }
        } else if let Err(error) = self.take_stamp(&mut shot) {
            return self.refuse(shot, error);
        }
        self.run_shot(shot);
    }

    fn refuse(&mut self, shot: Shot, error: Error) {
        let (ticket, result) = (shot.ticket, Err(error));
        self.send(shot.from, Message::Done { ticket, result });
    }

    fn take_stamp(&mut self, shot: &mut Shot) -> Result<()> {
        let Some(stamp) = self.stamps.take() else {
            let text = "a one-shot without a stamp, and no oracle in this process can give one now";
            return Err(Error::new(Code::Unavailable, text));
        };
        shot.stamp = stamp;
        self.newest = self.newest.max(stamp);
        Ok(())
    }

    pub(super) fn run_shot(&mut self, mut shot: Shot) {
        loop {
            let head = shot.head(self.config.id);
            let ran = match self.check_horizon(shot.stamp) {
                Ok(()) => Inline::run(self, &shot, head),
                Err(error) => Ran::Failed(error),
            };
            let error = match ran {
                Ran::Through {
                    txn,
                    answers,
                    returned,
                    remote,
                    seen,
                } => {
                    let stamp = Some(shot.stamp);
                    let committed = Committed {
                        stamp,
                        answers,
                        returned,
                    };
                    if remote.is_empty() {
                        self.commit_inline(&shot, txn, committed, seen);
                    } else {
                        self.commit_across(shot, txn, committed, remote);
                    }
                    return;
                }
                Ran::Blocked(slot) => {
                    self.counters.reruns += 1;
                    return self.wait(Work::Shot(Box::new(shot)), slot);
                }
                Ran::Missing(missing) if shot.round < ROUNDS_MAX => {
                    self.counters.reruns += 1;
                    return self.fetch(shot, missing);
                }
                Ran::Missing(_) => Error::new(
                    Code::NotSupported,
                    "a procedure that finds ever more to fetch from other partitions",
                ),
                Ran::Failed(error) => error,
            };
            match self.try_again(&mut shot, &error) {
                true => continue,
                false => return self.end_shot(shot, error),
            }
        }
    }

    /// After a conflict a one-shot that took its stamp here takes a new one.
    fn try_again(&mut self, shot: &mut Shot, error: &Error) -> bool {
        let again = matches!(error.kind(), Code::Conflict | Code::TooOld | Code::Aborted);
        if shot.given || !again || error.retry() != Retry::Safe || shot.tries == TRIES_MAX {
            return false;
        }
        shot.tries += 1;
        shot.round = 0;
        shot.gets.clear();
        shot.pages.clear();
        shot.until > self.now && self.take_stamp(shot).is_ok()
    }

    pub(super) fn shot_failed(&mut self, mut shot: Shot, error: Error) {
        match self.try_again(&mut shot, &error) {
            true => self.run_shot(shot),
            false => self.end_shot(shot, error),
        }
    }

    fn end_shot(&mut self, shot: Shot, error: Error) {
        self.counters.aborted += 1;
        if shot.given {
            self.active.remove(&shot.stamp);
            self.outcomes.insert(shot.stamp, false);
        }
        let (ticket, result) = (shot.ticket, Err(error));
        self.send_after(
            self.held.appended,
            shot.from,
            Message::Done { ticket, result },
        );
    }

    /// All it wrote is here: one record, no votes.
    fn commit_inline(
        &mut self,
        shot: &Shot,
        txn: Participant,
        committed: Committed,
        seen: Position,
    ) {
        let (stamp, mut position) = (shot.stamp, seen);
        if !txn.slots.is_empty() {
            position = self.append_commit(stamp, &txn.slots);
        }
        if shot.given {
            self.active.remove(&stamp);
            self.outcomes.insert(stamp, true);
        }
        self.counters.committed_inline += 1;
        let (ticket, result) = (shot.ticket, Ok(committed));
        self.send_after(position, shot.from, Message::Done { ticket, result });
    }

    /// Some of what it wrote lies elsewhere: this partition is the record holder, the others vote.
    fn commit_across(
        &mut self,
        shot: Shot,
        mut txn: Participant,
        committed: Committed,
        remote: Vec<(PartitionId, Key, Change)>,
    ) {
        let head = shot.head(self.config.id);
        let mut writes: BTreeMap<PartitionId, Vec<(Key, Change)>> = BTreeMap::new();
        for (partition, key, change) in remote {
            writes.entry(partition).or_default().push((key, change));
        }
        txn.prepared = true;
        txn.touched = self.now;
        self.participants.insert(head.stamp, txn);
        let participants = writes
            .iter()
            .map(|(&p, list)| (p, list.len() as u32))
            .collect();
        self.add_holding(Holding {
            head,
            state: State::Deciding {
                missing: writes.keys().copied().collect(),
                participants,
            },
            reply: Reply::Shot(shot.from, shot.ticket, shot.given, committed),
            until: shot.until,
        });
        let deadline_ns = shot.until.saturating_sub(self.now);
        for (partition, writes) in writes {
            let prepare = Message::Prepare {
                head,
                deadline_ns,
                writes,
            };
            self.send(Address::Partition(partition), prepare);
        }
    }

    fn fetch(&mut self, mut shot: Shot, missing: Vec<(PartitionId, Operation)>) {
        shot.round += 1;
        let head = shot.head(self.config.id);
        let deadline_ns = shot.until.saturating_sub(self.now);
        let mut asked: BTreeMap<PartitionId, Vec<Operation>> = BTreeMap::new();
        for (partition, operation) in missing {
            asked.entry(partition).or_default().push(operation);
        }
        for (&partition, operations) in &asked {
            let operations = operations.clone();
            let execute = Message::Execute {
                head,
                batch: shot.round,
                after: 0,
                deadline_ns,
                operations,
            };
            self.send(Address::Partition(partition), execute);
        }
        let stamp = shot.stamp;
        self.at(shot.until, Timer::Fetch(stamp));
        let shot = Box::new(shot);
        self.fetching.insert(
            stamp,
            Fetch {
                shot,
                missing: asked,
            },
        );
    }

    pub(super) fn fetched(
        &mut self,
        from: Address,
        stamp: Stamp,
        batch: u32,
        result: Result<Vec<Part>>,
    ) {
        let (Address::Partition(from), Some(fetch)) = (from, self.fetching.get_mut(&stamp)) else {
            return;
        };
        if batch != fetch.shot.round {
            return;
        }
        let Some(operations) = fetch.missing.remove(&from) else {
            return;
        };
        let failed = match result {
            Ok(parts) => {
                for (operation, part) in operations.into_iter().zip(parts) {
                    match (operation, part.answer) {
                        (Operation::Get(key), Answer::Value(value)) => {
                            fetch.shot.gets.insert(key, value);
                        }
                        (Operation::Scan(scan), answer) => {
                            let places = part.places;
                            fetch.shot.pages.push((from, scan, Part { answer, places }));
                        }
                        _ => {}
                    }
                }
                None
            }
            Err(error) => Some(error),
        };
        if failed.is_none() && !fetch.missing.is_empty() {
            return;
        }
        if let Some(fetch) = self.fetching.remove(&stamp) {
            match failed {
                None => self.run_shot(*fetch.shot),
                Some(error) => self.shot_failed(*fetch.shot, error),
            }
        }
    }

    pub(super) fn fetch_is_late(&mut self, stamp: Stamp) {
        let over = self
            .fetching
            .get(&stamp)
            .is_some_and(|fetch| fetch.shot.until <= self.now);
        if over && let Some(fetch) = self.fetching.remove(&stamp) {
            let text = "its time was over while it waited for another partition";
            self.end_shot(*fetch.shot, Error::new(Code::Deadline, text));
        }
    }
}
