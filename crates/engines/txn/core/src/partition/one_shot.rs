//! One-shots: transactions in one request. They run in the partition where they arrive, at one
//! timestamp. Rows of other partitions are fetched, and then the one-shot runs again from the
//! start, until nothing is missing. Reads at a timestamp are repeatable, so the second run sees
//! what the first one saw.

use std::collections::{BTreeMap, HashMap};

use dyno_txn_api::limits::{CALL_BYTES_MAX, OPERATIONS_MAX};
use dyno_txn_api::{
    Answer, Change, Code, Committed, Error, Key, Operation, Request, Result, Retry, Scan, Timestamp,
};

use super::holder::{Reply, State, TxnRecord};
use super::inline::{Inline, Run};
use super::participant::Participant;
use super::waiting::BlockedWork;
use super::{Partition, Position, Timer};
use crate::message::{Address, Fate, Head, Message, PartialAnswer, PartitionId};

/// Retries with a new timestamp after conflicts.
const TRIES_MAX: u32 = 16;
/// Rounds of fetching from other partitions. A procedure whose keys depend on what it reads needs
/// several.
const ROUNDS_MAX: u32 = 64;

/// A one-shot that is running or waiting.
#[derive(Debug)]
pub(super) struct OneShot {
    pub from: Address,
    pub ticket: u64,
    /// Whether the client chose the timestamp. Then the one-shot is not retried, because the client
    /// knows it by that timestamp.
    pub client_timestamp: bool,
    pub timestamp: Timestamp,
    pub priority: u16,
    pub until: u64,
    pub request: Request,
    /// Rows fetched from other partitions.
    pub gets: HashMap<Key, Option<Vec<u8>>>,
    /// Pages of scans fetched from other partitions.
    pub pages: Vec<(PartitionId, Scan, PartialAnswer)>,
    round: u32,
    tries: u32,
}

/// A one-shot that waits for other partitions' rows.
#[derive(Debug)]
pub(super) struct Fetch {
    one_shot: Box<OneShot>,
    missing: BTreeMap<PartitionId, Vec<Operation>>,
}

impl OneShot {
    pub fn new(
        from: Address,
        ticket: u64,
        timestamp: Option<Timestamp>,
        priority: u16,
        until: u64,
        request: Request,
    ) -> Self {
        Self {
            from,
            ticket,
            client_timestamp: timestamp.is_some(),
            timestamp: timestamp.unwrap_or(0),
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
        let (timestamp, priority) = (self.timestamp, self.priority);
        Head {
            timestamp,
            holder,
            priority,
        }
    }
}

impl Partition {
    pub(super) fn start_one_shot(&mut self, mut one_shot: OneShot) {
        let too_large = match &one_shot.request {
            Request::Operations(operations) => operations.len() > OPERATIONS_MAX,
            Request::Call { arguments, .. } => arguments.len() > CALL_BYTES_MAX,
        };
        if too_large {
            let error = Error::new(
                Code::TooLarge,
                "a request with too many operations or bytes",
            );
            return self.refuse(one_shot, error);
        }
        if one_shot.client_timestamp {
            // The same request again, or one whose client has asked for its fate before it arrived,
            // and was told that it is aborted: either way it must not run. Nor may it be refused as
            // too old, because its client would then do again what is committed.
            let fate = self.outcomes.get(one_shot.timestamp);
            if self.active.contains(&one_shot.timestamp)
                || matches!(fate, Some(Fate::Committed | Fate::Aborted))
            {
                return;
            }
            if let Err(error) = self.check_timestamp(one_shot.from, one_shot.timestamp) {
                return self.refuse(one_shot, error);
            }
            // It may have been forgotten that it is over.
            if fate.is_some() {
                return;
            }
            self.active.insert(one_shot.timestamp);
        } else if let Err(error) = self.assign_timestamp(&mut one_shot) {
            return self.refuse(one_shot, error);
        }
        self.run_one_shot(one_shot);
    }

    fn refuse(&mut self, one_shot: OneShot, error: Error) {
        let (ticket, result) = (one_shot.ticket, Err(error));
        self.send(one_shot.from, Message::Done { ticket, result });
    }

    /// Gives the one-shot a new timestamp from the oracle in this process.
    fn assign_timestamp(&mut self, one_shot: &mut OneShot) -> Result<()> {
        let Some(timestamp) = self.timestamps.next() else {
            let text =
                "a one-shot without a timestamp: no oracle in this process can issue one now";
            return Err(Error::new(Code::Unavailable, text));
        };
        one_shot.timestamp = timestamp;
        self.newest = self.newest.max(timestamp);
        Ok(())
    }

    pub(super) fn run_one_shot(&mut self, mut one_shot: OneShot) {
        loop {
            let head = one_shot.head(self.config.id);
            let ran = match self.check_horizon(one_shot.timestamp) {
                Ok(()) => Inline::run(self, &one_shot, head),
                Err(error) => Run::Failed(error),
            };
            let error = match ran {
                Run::Completed {
                    txn,
                    answers,
                    returned,
                    remote,
                    seen,
                } => {
                    let timestamp = Some(one_shot.timestamp);
                    let committed = Committed {
                        timestamp,
                        answers,
                        returned,
                    };
                    if remote.is_empty() {
                        self.commit_inline(&one_shot, txn, committed, seen);
                    } else {
                        self.commit_across(one_shot, txn, committed, remote);
                    }
                    return;
                }
                Run::Blocked(slot) => {
                    // Its own writes are undone already, so it blocks no other transaction while it
                    // waits.
                    self.counters.reruns += 1;
                    return self.wait(BlockedWork::OneShot(Box::new(one_shot)), slot);
                }
                Run::Missing(missing) if one_shot.round < ROUNDS_MAX => {
                    self.counters.reruns += 1;
                    return self.fetch(one_shot, missing);
                }
                Run::Missing(_) => Error::new(
                    Code::NotSupported,
                    "the procedure reads from other partitions in too many rounds",
                ),
                Run::Failed(error) => error,
            };
            if self.try_again(&mut one_shot, &error) {
                continue;
            } else {
                return self.end_one_shot(one_shot, error);
            }
        }
    }

    /// Whether the one-shot is to run again after this error. If so it has a new timestamp, above
    /// the read or write that it conflicted with.
    fn try_again(&mut self, one_shot: &mut OneShot, error: &Error) -> bool {
        let again = matches!(error.kind(), Code::Conflict | Code::TooOld | Code::Aborted);
        if one_shot.client_timestamp
            || !again
            || error.retry() != Retry::Safe
            || one_shot.tries == TRIES_MAX
        {
            return false;
        }
        one_shot.tries += 1;
        one_shot.round = 0;
        // What was fetched is as of the old timestamp, and may not be what the new one sees.
        one_shot.gets.clear();
        one_shot.pages.clear();
        one_shot.until > self.now && self.assign_timestamp(one_shot).is_ok()
    }

    pub(super) fn one_shot_failed(&mut self, mut one_shot: OneShot, error: Error) {
        if self.try_again(&mut one_shot, &error) {
            self.run_one_shot(one_shot)
        } else {
            self.end_one_shot(one_shot, error)
        }
    }

    fn end_one_shot(&mut self, one_shot: OneShot, error: Error) {
        self.counters.aborted += 1;
        if one_shot.client_timestamp {
            self.active.remove(&one_shot.timestamp);
            self.outcomes.insert(one_shot.timestamp, false);
        }
        let (ticket, result) = (one_shot.ticket, Err(error));
        self.send_after(
            self.pending.appended,
            one_shot.from,
            Message::Done { ticket, result },
        );
    }

    /// Commits a one-shot that wrote to this partition alone: one record, and no votes.
    fn commit_inline(
        &mut self,
        one_shot: &OneShot,
        txn: Participant,
        committed: Committed,
        seen: Position,
    ) {
        let (timestamp, mut position) = (one_shot.timestamp, seen);
        if !txn.slots.is_empty() {
            position = self.append_commit(timestamp, &txn.slots);
        }
        if one_shot.client_timestamp {
            self.active.remove(&timestamp);
            self.outcomes.insert(timestamp, true);
        }
        self.counters.committed_inline += 1;
        let (ticket, result) = (one_shot.ticket, Ok(committed));
        self.send_after(position, one_shot.from, Message::Done { ticket, result });
    }

    /// Commits a one-shot that also wrote to other partitions. This partition is the record holder.
    /// Its own writes are intents already, so it counts as having voted; each other partition is
    /// sent its writes and asked to vote.
    fn commit_across(
        &mut self,
        one_shot: OneShot,
        mut txn: Participant,
        committed: Committed,
        remote: Vec<(PartitionId, Key, Change)>,
    ) {
        let head = one_shot.head(self.config.id);
        let mut writes: BTreeMap<PartitionId, Vec<(Key, Change)>> = BTreeMap::new();
        for (partition, key, change) in remote {
            writes.entry(partition).or_default().push((key, change));
        }
        // No record of a vote is needed: the commit record of this partition will have these
        // writes. The others vote on the writes that they are sent below, and the answer is kept
        // until they have.
        txn.prepared = true;
        txn.touched = self.now;
        self.participants.insert(head.timestamp, txn);
        let participants = writes
            .iter()
            .map(|(&p, list)| (p, list.len() as u32))
            .collect();
        self.add_txn_record(TxnRecord {
            head,
            state: State::Deciding {
                missing: writes.keys().copied().collect(),
                participants,
            },
            reply: Reply::OneShot {
                client: one_shot.from,
                ticket: one_shot.ticket,
                client_timestamp: one_shot.client_timestamp,
                committed,
            },
            until: one_shot.until,
        });
        let deadline_ns = one_shot.until.saturating_sub(self.now);
        for (partition, writes) in writes {
            let prepare = Message::Prepare {
                head,
                deadline_ns,
                writes,
            };
            self.send(Address::Partition(partition), prepare);
        }
    }

    fn fetch(&mut self, mut one_shot: OneShot, missing: Vec<(PartitionId, Operation)>) {
        one_shot.round += 1;
        let head = one_shot.head(self.config.id);
        let deadline_ns = one_shot.until.saturating_sub(self.now);
        let mut asked: BTreeMap<PartitionId, Vec<Operation>> = BTreeMap::new();
        for (partition, operation) in missing {
            asked.entry(partition).or_default().push(operation);
        }
        for (&partition, operations) in &asked {
            let operations = operations.clone();
            let execute = Message::Execute {
                head,
                batch: one_shot.round,
                after: 0,
                deadline_ns,
                operations,
            };
            self.send(Address::Partition(partition), execute);
        }
        let timestamp = one_shot.timestamp;
        self.at(one_shot.until, Timer::Fetch(timestamp));
        let one_shot = Box::new(one_shot);
        self.fetching.insert(
            timestamp,
            Fetch {
                one_shot,
                missing: asked,
            },
        );
    }

    pub(super) fn fetched(
        &mut self,
        from: Address,
        timestamp: Timestamp,
        batch: u32,
        result: Result<Vec<PartialAnswer>>,
    ) {
        let (Address::Partition(from), Some(fetch)) = (from, self.fetching.get_mut(&timestamp))
        else {
            return;
        };
        // The answer of an earlier round came twice, or late.
        if batch != fetch.one_shot.round {
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
                            fetch.one_shot.gets.insert(key, value);
                        }
                        (Operation::Scan(scan), answer) => {
                            let places = part.index_keys;
                            fetch.one_shot.pages.push((
                                from,
                                scan,
                                PartialAnswer {
                                    answer,
                                    index_keys: places,
                                },
                            ));
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
        if let Some(fetch) = self.fetching.remove(&timestamp) {
            match failed {
                None => self.run_one_shot(*fetch.one_shot),
                Some(error) => self.one_shot_failed(*fetch.one_shot, error),
            }
        }
    }

    pub(super) fn fetch_is_late(&mut self, timestamp: Timestamp) {
        let over = self
            .fetching
            .get(&timestamp)
            .is_some_and(|fetch| fetch.one_shot.until <= self.now);
        if over && let Some(fetch) = self.fetching.remove(&timestamp) {
            let text = "its deadline passed while it waited for another partition";
            self.end_one_shot(*fetch.one_shot, Error::new(Code::Deadline, text));
        }
    }
}
