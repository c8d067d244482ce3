//! The record holder: the one partition that decides whether a transaction commits.
//!
//! A transaction is open, then deciding (its participants are asked for their votes), then
//! committed or aborted. A commit is one log record. An abort is not logged, because a record
//! holder treats every transaction that it does not know as aborted, and remembers that from then
//! on.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use dyno_txn_api::{Code, Committed, Error, Result, Timestamp};

use super::participant::encode_writes;
use super::{Partition, Position, Timer};
use crate::message::{Address, Fate, Head, Message, PartitionId};
use crate::planted::Bug;
use crate::record::{Record, begin_commit, begin_decided};

/// Which client is told how the transaction ended.
#[derive(Debug)]
pub(super) enum Reply {
    /// None yet, or none any more: after a restart the client asks.
    None,
    /// The client of an interactive transaction.
    Ended(Address),
    /// The client of a one-shot.
    OneShot {
        client: Address,
        ticket: u64,
        /// Whether the client chose the timestamp.
        client_timestamp: bool,
        /// Its answer if the transaction commits.
        committed: Committed,
    },
}

#[derive(Debug)]
pub(super) enum State {
    /// The client may send more operations.
    Open,
    /// The client has asked to commit, and votes are missing.
    Deciding {
        missing: BTreeSet<PartitionId>,
        /// Each partition that was written, and how many writes it must have.
        participants: Vec<(PartitionId, u32)>,
    },
    /// The commit is logged. The record stays until every participant has finalized, because a
    /// participant that asks about an unknown transaction is told that it was aborted.
    Committed { missing: BTreeSet<PartitionId> },
}

/// The transaction record of a transaction that is decided here.
#[derive(Debug)]
pub(super) struct TxnRecord {
    pub head: Head,
    pub state: State,
    pub reply: Reply,
    /// When an undecided transaction is aborted, by the driver's clock. Heartbeats and operations
    /// put it off.
    pub until: u64,
}

impl Partition {
    /// Opens the transaction record if `head` names this partition as the holder, or keeps an open
    /// one alive. Only a message of a client does either.
    pub(super) fn open_txn_record(&mut self, from: Address, head: Head) {
        if head.holder != self.config.id || !matches!(from, Address::Client(_)) {
            return;
        }
        let until = self.now.saturating_add(self.config.heartbeat_ns);
        match self.txn_records.get_mut(&head.timestamp) {
            Some(txn_record) => txn_record.until = txn_record.until.max(until),
            None => self.add_txn_record(TxnRecord {
                head,
                state: State::Open,
                reply: Reply::None,
                until,
            }),
        }
    }

    pub(super) fn add_txn_record(&mut self, txn_record: TxnRecord) {
        let first = self
            .now
            .saturating_add(self.config.resend_ns)
            .min(txn_record.until);
        self.at(first, Timer::TxnRecord(txn_record.head.timestamp));
        self.txn_records
            .insert(txn_record.head.timestamp, txn_record);
    }

    pub(super) fn heartbeat(&mut self, timestamp: Timestamp) {
        let until = self.now.saturating_add(self.config.heartbeat_ns);
        if let Some(txn_record) = self.txn_records.get_mut(&timestamp) {
            txn_record.until = txn_record.until.max(until);
        }
    }

    /// Handles the client's request to commit. `writes` says how many writes it sent to which
    /// partition.
    pub(super) fn commit(&mut self, from: Address, head: Head, writes: Vec<(PartitionId, u32)>) {
        let timestamp = head.timestamp;
        // Before the head is checked, because the horizon may have passed the timestamp since the
        // first request, and `TooOld` would let the client do again what is being committed.
        if self.commits_again(from, timestamp) {
            return;
        }
        let refused = |error| Message::Ended {
            timestamp,
            result: Err(error),
        };
        if let Err(error) = self.check_head(from, &head) {
            return self.send(from, refused(error));
        }
        let mine = writes
            .iter()
            .any(|&(partition, count)| partition == self.config.id && count > 0);
        let known = writes
            .iter()
            .all(|&(partition, _)| partition < self.config.partitions);
        let missing: BTreeSet<PartitionId> =
            writes.iter().map(|&(partition, _)| partition).collect();
        if !mine || !known || missing.len() != writes.len() || head.holder != self.config.id {
            let text = "a commit must name each written partition once, this one among them";
            let error = Error::new(Code::BadArgument, text);
            return self.send(from, refused(error));
        }
        let until = self.now.saturating_add(self.config.heartbeat_ns);
        let state = State::Deciding {
            missing,
            participants: writes,
        };
        let reply = Reply::Ended(from);
        self.add_txn_record(TxnRecord {
            head,
            state,
            reply,
            until,
        });
        self.ask_for_votes(timestamp);
    }

    /// Answers a request to commit if it is a repeated one, and returns whether it is.
    fn commits_again(&mut self, from: Address, timestamp: Timestamp) -> bool {
        let state = self.txn_records.get(&timestamp).map(|found| &found.state);
        let result = match (state, self.outcomes.get(timestamp)) {
            // The votes are still out, and the answer will come.
            (Some(State::Deciding { .. }), _) => return true,
            // The first answer may have been lost.
            (Some(State::Committed { .. }), _) => Ok(()),
            // Without a record it is over, or no write has arrived here yet. Only what is
            // remembered as over is answered; the votes tell whether the writes are there.
            (None, Some(fate)) if timestamp > 0 => over(timestamp, fate),
            _ => return false,
        };
        let ended = Message::Ended { timestamp, result };
        self.send_after(self.pending.appended, from, ended);
        true
    }

    fn ask_for_votes(&mut self, timestamp: Timestamp) {
        let Some(TxnRecord {
            head,
            state:
                State::Deciding {
                    missing,
                    participants,
                },
            ..
        }) = self.txn_records.get(&timestamp)
        else {
            return;
        };
        let (head, asked) = (
            *head,
            participants.iter().filter(|(p, _)| missing.contains(p)),
        );
        let asked: Vec<(PartitionId, u32)> = asked.copied().collect();
        for (partition, writes) in asked {
            self.send(
                Address::Partition(partition),
                Message::Confirm { head, writes },
            );
        }
    }

    pub(super) fn voted(&mut self, from: Address, timestamp: Timestamp, result: Result<()>) {
        let (Address::Partition(from), Some(txn_record)) =
            (from, self.txn_records.get_mut(&timestamp))
        else {
            return;
        };
        let State::Deciding { missing, .. } = &mut txn_record.state else {
            return;
        };
        match result {
            Err(error) => self.abort(timestamp, error),
            Ok(()) => {
                missing.remove(&from);
                if missing.is_empty() {
                    self.decide(timestamp);
                }
            }
        }
    }

    /// Commits a transaction that all participants voted for, by one log record.
    fn decide(&mut self, timestamp: Timestamp) {
        let Some(mut txn_record) = self.txn_records.remove(&timestamp) else {
            return;
        };
        let State::Deciding { participants, .. } = &txn_record.state else {
            return;
        };
        let id = self.config.id;
        let others = participants
            .iter()
            .map(|&(partition, _)| partition)
            .filter(|&p| p != id);
        let others: Vec<PartitionId> = others.collect();
        // This partition's own writes are part of the record. The others made theirs durable before
        // they voted, so that the transaction is committed as soon as this one record is durable,
        // and not before.
        let own = self.participants.remove(&timestamp);
        let slots = own.map_or(Vec::new(), |own| own.slots);
        let position = self.append(|store, out| {
            if others.is_empty() {
                begin_commit(timestamp, out)
            } else {
                begin_decided(timestamp, &others, out)
            }
            encode_writes(store, &slots, out);
        });
        // The writes become visible at once, but no client is told of them, nor of anything read
        // from them, before the record is durable.
        self.committed(position, timestamp);
        self.settle(&slots, true);
        self.outcomes.insert(timestamp, true);
        self.counters.committed_across += 1;
        let reply = std::mem::replace(&mut txn_record.reply, Reply::None);
        self.reply(position, timestamp, reply, Ok(()));
        if others.is_empty() {
            return;
        }
        // A participant that finalized before the record is durable would show a commit that a
        // crash here undoes.
        for &partition in &others {
            let finalize = Message::Finalize {
                timestamp,
                commit: true,
            };
            self.send_after(position, Address::Partition(partition), finalize);
        }
        let missing = others.into_iter().collect();
        txn_record.state = State::Committed { missing };
        self.add_txn_record(txn_record);
    }

    /// Aborts a transaction that is not decided yet, and tells its participants and its client.
    pub(super) fn abort(&mut self, timestamp: Timestamp, error: Error) {
        let Some(txn_record) = self.txn_records.remove(&timestamp) else {
            return;
        };
        self.counters.aborted += 1;
        self.outcomes.insert(timestamp, false);
        self.drop_participant(timestamp);
        if let State::Deciding { participants, .. } = txn_record.state {
            for (partition, _) in participants {
                let finalize = Message::Finalize {
                    timestamp,
                    commit: false,
                };
                if partition != self.config.id {
                    self.send(Address::Partition(partition), finalize);
                }
            }
        }
        // The reason may depend on another commit, so the answer waits until that one is durable
        // too.
        self.reply(
            self.pending.appended,
            timestamp,
            txn_record.reply,
            Err(error),
        );
    }

    /// Sends the client the result once the log is durable up to `position`.
    fn reply(
        &mut self,
        position: Position,
        timestamp: Timestamp,
        reply: Reply,
        result: Result<()>,
    ) {
        match reply {
            Reply::None => {}
            Reply::Ended(to) => self.send_after(position, to, Message::Ended { timestamp, result }),
            Reply::OneShot {
                client,
                ticket,
                client_timestamp,
                committed,
            } => {
                if client_timestamp {
                    self.active.remove(&timestamp);
                }
                let result = result.map(|()| committed);
                self.send_after(position, client, Message::Done { ticket, result });
            }
        }
    }

    /// Handles the client's request to abort. After a request to commit it may be too late, and
    /// then nothing happens.
    pub(super) fn client_aborts(&mut self, head: Head) {
        let timestamp = head.timestamp;
        if self
            .txn_records
            .get(&timestamp)
            .is_some_and(|h| matches!(h.state, State::Open))
        {
            self.abort(
                timestamp,
                Error::new(Code::Aborted, "the client aborted it"),
            );
        }
        if self
            .participants
            .get(&timestamp)
            .is_some_and(|txn| !txn.prepared)
        {
            self.drop_participant(timestamp);
        }
    }

    /// Answers a push: a transaction `by` has met an intent of transaction `timestamp`, which is
    /// decided here. If the push is forced, the one with the higher priority wins, and between
    /// equals the older one. So of two transactions that push each other exactly one gives way.
    pub(super) fn pushed_here(
        &mut self,
        from: Address,
        timestamp: Timestamp,
        by: Timestamp,
        priority: u16,
        force: bool,
    ) {
        let fate = match self.txn_records.get(&timestamp) {
            Some(found) if matches!(found.state, State::Committed { .. }) => Fate::Committed,
            Some(TxnRecord { head, .. }) => {
                let wins = (priority, Reverse(by)) > (head.priority, Reverse(timestamp));
                if force && wins {
                    if !self.config.planted.has(Bug::Push) {
                        let text = format!("transaction {by} pushed it out of the way");
                        self.abort(timestamp, Error::new(Code::Aborted, text));
                    }
                    Fate::Aborted
                } else {
                    Fate::Open
                }
            }
            None => self.fate_of_unknown(timestamp),
        };
        // The answer may reveal a commit, so it waits until the log is durable up to it.
        self.send_after(
            self.pending.appended,
            from,
            Message::Pushed {
                timestamp,
                by,
                fate,
            },
        );
    }

    /// The fate of a transaction without a record here. If nothing is remembered of it either, it
    /// is aborted from now on: the answer will be acted upon elsewhere, so a commit that arrives
    /// later must find that it has lost.
    fn fate_of_unknown(&mut self, timestamp: Timestamp) -> Fate {
        self.outcomes.get(timestamp).unwrap_or_else(|| {
            self.outcomes.insert(timestamp, false);
            self.drop_participant(timestamp);
            Fate::Aborted
        })
    }

    /// Answers a client or a participant that asks what became of a transaction.
    pub(super) fn asked(&mut self, from: Address, timestamp: Timestamp) {
        let fate = match self.txn_records.get(&timestamp) {
            Some(TxnRecord {
                state: State::Committed { .. },
                ..
            }) => Fate::Committed,
            Some(_) => Fate::Open,
            None if self.active.contains(&timestamp) => Fate::Open,
            // Remembering an abort for a timestamp that was not issued yet would doom its
            // transaction.
            None if !self.timestamps.plausible(timestamp) => Fate::Forgotten,
            None => self.fate_of_unknown(timestamp),
        };
        self.send_after(
            self.pending.appended,
            from,
            Message::FateAnswer { timestamp, fate },
        );
    }

    /// A participant has finalized. After the last one the transaction record is not needed any
    /// more.
    pub(super) fn finalized(&mut self, from: Address, timestamp: Timestamp) {
        let (Address::Partition(from), Some(txn_record)) =
            (from, self.txn_records.get_mut(&timestamp))
        else {
            return;
        };
        let State::Committed { missing } = &mut txn_record.state else {
            return;
        };
        missing.remove(&from);
        if missing.is_empty() {
            self.txn_records.remove(&timestamp);
            self.append(|_, out| Record::Ended { timestamp }.encode(out));
        }
    }

    /// Resends what may have been lost, or aborts the transaction once its time is over.
    pub(super) fn txn_record_is_late(&mut self, timestamp: Timestamp) {
        let Some(txn_record) = self.txn_records.get(&timestamp) else {
            return;
        };
        let over = txn_record.until <= self.now;
        match &txn_record.state {
            State::Open if over => {
                return self.abort(
                    timestamp,
                    Error::new(Code::Aborted, "its client was silent for too long"),
                );
            }
            State::Deciding { .. } if over => {
                return self.abort(
                    timestamp,
                    Error::new(Code::Aborted, "a partition did not vote in time"),
                );
            }
            // Votes on a one-shot are not asked for again: its writes were sent with the request
            // for the vote, and are not kept here. If that was lost, the transaction is aborted
            // when its time is over.
            State::Deciding { .. } if matches!(txn_record.reply, Reply::Ended(_)) => {
                self.ask_for_votes(timestamp);
            }
            State::Open | State::Deciding { .. } => {}
            State::Committed { missing } => {
                // There is no deadline for this: the commit cannot be taken back, and the
                // participants hold intents until they hear of it.
                let missing: Vec<PartitionId> = missing.iter().copied().collect();
                for partition in missing {
                    let finalize = Message::Finalize {
                        timestamp,
                        commit: true,
                    };
                    self.send_after(
                        self.pending.appended,
                        Address::Partition(partition),
                        finalize,
                    );
                }
            }
        }
        self.at(
            self.now.saturating_add(self.config.resend_ns),
            Timer::TxnRecord(timestamp),
        );
    }
}

/// What a client is told of a transaction that is over.
fn over(timestamp: Timestamp, fate: Fate) -> Result<()> {
    match fate {
        Fate::Committed => Ok(()),
        Fate::Aborted => {
            let text = format!("transaction {timestamp} was aborted");
            Err(Error::new(Code::Aborted, text))
        }
        Fate::Open | Fate::Forgotten => {
            let text = format!("transaction {timestamp}: its outcome is no longer known");
            Err(Error::new(Code::OutcomeUnknown, text))
        }
    }
}
