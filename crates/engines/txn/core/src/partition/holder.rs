//! The record holder: the one partition that decides whether a transaction commits.
//!
//! A transaction is open, then deciding (its participants are asked for their votes), then
//! committed or aborted. A commit is one log record. An abort is not logged, because a record
//! holder treats every transaction that it does not know as aborted, and remembers that from then
//! on.

use std::collections::BTreeSet;

use dyno_txn_api::{Code, Committed, Error, Result, Stamp};

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
        client_stamp: bool,
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
        match self.txn_records.get_mut(&head.stamp) {
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
        self.at(first, Timer::TxnRecord(txn_record.head.stamp));
        self.txn_records.insert(txn_record.head.stamp, txn_record);
    }

    pub(super) fn heartbeat(&mut self, stamp: Stamp) {
        let until = self.now.saturating_add(self.config.heartbeat_ns);
        if let Some(txn_record) = self.txn_records.get_mut(&stamp) {
            txn_record.until = txn_record.until.max(until);
        }
    }

    /// Handles the client's request to commit. `writes` says how many writes it sent to which
    /// partition.
    pub(super) fn commit(&mut self, from: Address, head: Head, writes: Vec<(PartitionId, u32)>) {
        let stamp = head.stamp;
        if let Err(error) = self.check_head(from, &head) {
            return self.send(
                from,
                Message::Ended {
                    stamp,
                    result: Err(error),
                },
            );
        }
        match self.txn_records.get_mut(&stamp) {
            Some(txn_record) if !matches!(txn_record.state, State::Open) => {
                // The client repeats its request. If the votes are still out, its answer will come;
                // if the commit is made, the first answer may have been lost.
                if matches!(txn_record.state, State::Committed { .. }) {
                    let ended = Message::Ended {
                        stamp,
                        result: Ok(()),
                    };
                    self.send_after(self.pending.appended, from, ended);
                }
                return;
            }
            Some(_) => {}
            None => {
                // Without a record it is over, or no write has arrived here yet. Only what is
                // remembered as over is answered; the votes tell whether the writes are there.
                if let Some(fate) = self.outcomes.get(stamp) {
                    let result = over(stamp, fate);
                    let ended = Message::Ended { stamp, result };
                    return self.send_after(self.pending.appended, from, ended);
                }
            }
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
            return self.send(
                from,
                Message::Ended {
                    stamp,
                    result: Err(error),
                },
            );
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
        self.ask_for_votes(stamp);
    }

    fn ask_for_votes(&mut self, stamp: Stamp) {
        let Some(TxnRecord {
            head,
            state:
                State::Deciding {
                    missing,
                    participants,
                },
            ..
        }) = self.txn_records.get(&stamp)
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

    pub(super) fn voted(&mut self, from: Address, stamp: Stamp, result: Result<()>) {
        let (Address::Partition(from), Some(txn_record)) = (from, self.txn_records.get_mut(&stamp))
        else {
            return;
        };
        let State::Deciding { missing, .. } = &mut txn_record.state else {
            return;
        };
        match result {
            Err(error) => self.abort(stamp, error),
            Ok(()) => {
                missing.remove(&from);
                if missing.is_empty() {
                    self.decide(stamp);
                }
            }
        }
    }

    /// Commits a transaction that all participants voted for, by one log record.
    fn decide(&mut self, stamp: Stamp) {
        let Some(mut txn_record) = self.txn_records.remove(&stamp) else {
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
        let own = self.participants.remove(&stamp);
        let slots = own.map_or(Vec::new(), |own| own.slots);
        let position = self.append(|store, out| {
            match others.is_empty() {
                true => begin_commit(stamp, out),
                false => begin_decided(stamp, &others, out),
            }
            encode_writes(store, &slots, out);
        });
        // The writes become visible at once, but no client is told of them, nor of anything read
        // from them, before the record is durable.
        self.committed(position, stamp);
        self.settle(&slots, true);
        self.outcomes.insert(stamp, true);
        self.counters.committed_across += 1;
        let reply = std::mem::replace(&mut txn_record.reply, Reply::None);
        self.reply(position, stamp, reply, Ok(()));
        if others.is_empty() {
            return;
        }
        // A participant that finalized before the record is durable would show a commit that a
        // crash here undoes.
        for &partition in &others {
            let finalize = Message::Finalize {
                stamp,
                commit: true,
            };
            self.send_after(position, Address::Partition(partition), finalize);
        }
        let missing = others.into_iter().collect();
        txn_record.state = State::Committed { missing };
        self.add_txn_record(txn_record);
    }

    /// Aborts a transaction that is not decided yet, and tells its participants and its client.
    pub(super) fn abort(&mut self, stamp: Stamp, error: Error) {
        let Some(txn_record) = self.txn_records.remove(&stamp) else {
            return;
        };
        self.counters.aborted += 1;
        self.outcomes.insert(stamp, false);
        self.drop_participant(stamp);
        if let State::Deciding { participants, .. } = txn_record.state {
            for (partition, _) in participants {
                let finalize = Message::Finalize {
                    stamp,
                    commit: false,
                };
                if partition != self.config.id {
                    self.send(Address::Partition(partition), finalize);
                }
            }
        }
        // The reason may depend on another commit, so the answer waits until that one is durable
        // too.
        self.reply(self.pending.appended, stamp, txn_record.reply, Err(error));
    }

    /// Sends the client the result once the log is durable up to `position`.
    fn reply(&mut self, position: Position, stamp: Stamp, reply: Reply, result: Result<()>) {
        match reply {
            Reply::None => {}
            Reply::Ended(to) => self.send_after(position, to, Message::Ended { stamp, result }),
            Reply::OneShot {
                client,
                ticket,
                client_stamp,
                committed,
            } => {
                if client_stamp {
                    self.active.remove(&stamp);
                }
                let result = result.map(|()| committed);
                self.send_after(position, client, Message::Done { ticket, result });
            }
        }
    }

    /// Handles the client's request to abort. After a request to commit it may be too late, and
    /// then nothing happens.
    pub(super) fn client_aborts(&mut self, head: Head) {
        let stamp = head.stamp;
        if self
            .txn_records
            .get(&stamp)
            .is_some_and(|h| matches!(h.state, State::Open))
        {
            self.abort(stamp, Error::new(Code::Aborted, "the client aborted it"));
        }
        if self
            .participants
            .get(&stamp)
            .is_some_and(|txn| !txn.prepared)
        {
            self.drop_participant(stamp);
        }
    }

    /// Answers a push: a transaction `by` has met an intent of transaction `stamp`, which is
    /// decided here. If the push is forced, the one with the higher priority wins, and between
    /// equals the older one. So of two transactions that push each other exactly one gives way.
    pub(super) fn pushed_here(
        &mut self,
        from: Address,
        stamp: Stamp,
        by: Stamp,
        priority: u16,
        force: bool,
    ) {
        let fate = match self.txn_records.get(&stamp) {
            Some(TxnRecord {
                state: State::Committed { .. },
                ..
            }) => Fate::Committed,
            Some(txn_record) => {
                let wins = (priority, std::cmp::Reverse(by))
                    > (txn_record.head.priority, std::cmp::Reverse(stamp));
                match force && wins {
                    true if self.config.planted.has(Bug::Push) => Fate::Aborted,
                    true => {
                        let text = format!("transaction {by} pushed it out of the way");
                        self.abort(stamp, Error::new(Code::Aborted, text));
                        Fate::Aborted
                    }
                    false => Fate::Open,
                }
            }
            None => self.fate_of_unknown(stamp),
        };
        // The answer may reveal a commit, so it waits until the log is durable up to it.
        self.send_after(
            self.pending.appended,
            from,
            Message::Pushed { stamp, by, fate },
        );
    }

    /// The fate of a transaction without a record here. If nothing is remembered of it either, it
    /// is aborted from now on: the answer will be acted upon elsewhere, so a commit that arrives
    /// later must find that it has lost.
    fn fate_of_unknown(&mut self, stamp: Stamp) -> Fate {
        self.outcomes.get(stamp).unwrap_or_else(|| {
            self.outcomes.insert(stamp, false);
            self.drop_participant(stamp);
            Fate::Aborted
        })
    }

    /// Answers a client or a participant that asks what became of a transaction.
    pub(super) fn asked(&mut self, from: Address, stamp: Stamp) {
        let fate = match self.txn_records.get(&stamp) {
            Some(TxnRecord {
                state: State::Committed { .. },
                ..
            }) => Fate::Committed,
            Some(_) => Fate::Open,
            None if self.active.contains(&stamp) => Fate::Open,
            // Remembering an abort for a timestamp that was not issued yet would doom its
            // transaction.
            None if !self.stamps.plausible(stamp) => Fate::Forgotten,
            None => self.fate_of_unknown(stamp),
        };
        self.send_after(self.pending.appended, from, Message::Told { stamp, fate });
    }

    /// A participant has finalized. After the last one the transaction record is not needed any
    /// more.
    pub(super) fn finalized(&mut self, from: Address, stamp: Stamp) {
        let (Address::Partition(from), Some(txn_record)) = (from, self.txn_records.get_mut(&stamp))
        else {
            return;
        };
        let State::Committed { missing } = &mut txn_record.state else {
            return;
        };
        missing.remove(&from);
        if missing.is_empty() {
            self.txn_records.remove(&stamp);
            self.append(|_, out| Record::Ended { stamp }.encode(out));
        }
    }

    /// Resends what may have been lost, or aborts the transaction once its time is over.
    pub(super) fn txn_record_is_late(&mut self, stamp: Stamp) {
        let Some(txn_record) = self.txn_records.get(&stamp) else {
            return;
        };
        let over = txn_record.until <= self.now;
        match &txn_record.state {
            State::Open if over => {
                return self.abort(
                    stamp,
                    Error::new(Code::Aborted, "its client was silent for too long"),
                );
            }
            State::Deciding { .. } if over => {
                return self.abort(
                    stamp,
                    Error::new(Code::Aborted, "a partition did not vote in time"),
                );
            }
            // Votes on a one-shot are not asked for again: its writes were sent with the request
            // for the vote, and are not kept here. If that was lost, the transaction is aborted
            // when its time is over.
            State::Deciding { .. } if matches!(txn_record.reply, Reply::Ended(_)) => {
                self.ask_for_votes(stamp);
            }
            State::Open | State::Deciding { .. } => {}
            State::Committed { missing } => {
                // There is no deadline for this: the commit cannot be taken back, and the
                // participants hold intents until they hear of it.
                let missing: Vec<PartitionId> = missing.iter().copied().collect();
                for partition in missing {
                    let finalize = Message::Finalize {
                        stamp,
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
            Timer::TxnRecord(stamp),
        );
    }
}

/// What a client is told of a transaction that is over.
fn over(stamp: Stamp, fate: Fate) -> Result<()> {
    match fate {
        Fate::Committed => Ok(()),
        Fate::Aborted => {
            let text = format!("transaction {stamp} was aborted");
            Err(Error::new(Code::Aborted, text))
        }
        Fate::Open | Fate::Forgotten => {
            let text = format!("transaction {stamp}: its outcome is no longer known");
            Err(Error::new(Code::OutcomeUnknown, text))
        }
    }
}
