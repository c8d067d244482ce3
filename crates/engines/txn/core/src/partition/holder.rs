//! The record holder decides what becomes of a transaction, and nobody else.
//!
//! A transaction is open, then deciding (its participants are asked for their votes), then committed or
//! aborted. A commit is one log record. An abort is none: a transaction that a record holder does not
//! know is aborted, and from then on known as that.

use std::collections::BTreeSet;

use dyno_txn_api::{Code, Committed, Error, Result, Stamp};

use super::participant::encode_writes;
use super::{Partition, Timer};
use crate::message::{Address, Fate, Head, Message, PartitionId};
use crate::planted::Bug;
use crate::record::{RECORD_VERSION, Record};
use crate::wire::Wire;

/// Who hears how it ended.
#[derive(Debug)]
pub(super) enum Reply {
    /// Nobody: the client will ask.
    None,
    /// The client of an interactive transaction.
    Ended(Address),
    /// The client of a one-shot, and what it gets when it is committed.
    Shot(Address, u64, bool, Committed),
}

#[derive(Debug)]
pub(super) enum State {
    /// Operations go on.
    Open,
    /// Votes are missing from these.
    Deciding {
        missing: BTreeSet<PartitionId>,
        participants: Vec<(PartitionId, u32)>,
    },
    /// These have not finalized it yet.
    Committed { missing: BTreeSet<PartitionId> },
}

/// A transaction whose fate is decided here.
#[derive(Debug)]
pub(super) struct Holding {
    pub head: Head,
    pub state: State,
    pub reply: Reply,
    /// When it is aborted unless something comes.
    pub until: u64,
}

impl Partition {
    /// A first write came here, and says that its fate is decided here.
    pub(super) fn open_holding(&mut self, from: Address, head: Head) {
        if head.holder != self.config.id || !matches!(from, Address::Client(_)) {
            return;
        }
        let until = self.now.saturating_add(self.config.heartbeat_ns);
        match self.holdings.get_mut(&head.stamp) {
            Some(holding) => holding.until = holding.until.max(until),
            None => self.add_holding(Holding {
                head,
                state: State::Open,
                reply: Reply::None,
                until,
            }),
        }
    }

    pub(super) fn add_holding(&mut self, holding: Holding) {
        let first = self
            .now
            .saturating_add(self.config.resend_ns)
            .min(holding.until);
        self.at(first, Timer::Holding(holding.head.stamp));
        self.holdings.insert(holding.head.stamp, holding);
    }

    pub(super) fn heartbeat(&mut self, stamp: Stamp) {
        let until = self.now.saturating_add(self.config.heartbeat_ns);
        if let Some(holding) = self.holdings.get_mut(&stamp) {
            holding.until = holding.until.max(until);
        }
    }

    /// The client's one message: commit.
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
        match self.holdings.get_mut(&stamp) {
            Some(holding) if !matches!(holding.state, State::Open) => {
                // The same message again; the answer is on its way, or goes to who asks now.
                if matches!(holding.state, State::Committed { .. }) {
                    let ended = Message::Ended {
                        stamp,
                        result: Ok(()),
                    };
                    self.send_after(self.held.appended, from, ended);
                }
                return;
            }
            Some(_) => {}
            None => {
                if let Some(fate) = self.outcomes.get(stamp) {
                    let result = over(stamp, fate);
                    let ended = Message::Ended { stamp, result };
                    return self.send_after(self.held.appended, from, ended);
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
            let text =
                "a commit must name each partition that was written once, this one among them";
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
        self.add_holding(Holding {
            head,
            state,
            reply,
            until,
        });
        self.ask_for_votes(stamp);
    }

    fn ask_for_votes(&mut self, stamp: Stamp) {
        let Some(Holding {
            head,
            state:
                State::Deciding {
                    missing,
                    participants,
                },
            ..
        }) = self.holdings.get(&stamp)
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
        let (Address::Partition(from), Some(holding)) = (from, self.holdings.get_mut(&stamp))
        else {
            return;
        };
        let State::Deciding { missing, .. } = &mut holding.state else {
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

    /// All have voted for it: one record commits it.
    fn decide(&mut self, stamp: Stamp) {
        let Some(mut holding) = self.holdings.remove(&stamp) else {
            return;
        };
        let State::Deciding { participants, .. } = &holding.state else {
            return;
        };
        let id = self.config.id;
        let others = participants
            .iter()
            .map(|&(partition, _)| partition)
            .filter(|&p| p != id);
        let others: Vec<PartitionId> = others.collect();
        let own = self.participants.remove(&stamp);
        let slots = own.map_or(Vec::new(), |own| own.slots);
        let position = self.append(|store, out| {
            out.extend_from_slice(&[RECORD_VERSION, if others.is_empty() { 1 } else { 3 }]);
            stamp.put(out);
            if !others.is_empty() {
                others.put(out);
            }
            encode_writes(store, &slots, out);
        });
        self.committed(position, stamp);
        self.settle(&slots, true);
        self.outcomes.insert(stamp, true);
        self.counters.committed_across += 1;
        match std::mem::replace(&mut holding.reply, Reply::None) {
            Reply::None => {}
            Reply::Ended(to) => {
                self.send_after(
                    position,
                    to,
                    Message::Ended {
                        stamp,
                        result: Ok(()),
                    },
                );
            }
            Reply::Shot(to, ticket, given, committed) => {
                if given {
                    self.active.remove(&stamp);
                }
                let result = Ok(committed);
                self.send_after(position, to, Message::Done { ticket, result });
            }
        }
        if others.is_empty() {
            return;
        }
        for &partition in &others {
            let finalize = Message::Finalize {
                stamp,
                commit: true,
            };
            self.send_after(position, Address::Partition(partition), finalize);
        }
        let missing = others.into_iter().collect();
        holding.state = State::Committed { missing };
        self.add_holding(holding);
    }

    /// Nothing of it will be done.
    pub(super) fn abort(&mut self, stamp: Stamp, error: Error) {
        let Some(holding) = self.holdings.remove(&stamp) else {
            return;
        };
        self.counters.aborted += 1;
        self.outcomes.insert(stamp, false);
        self.drop_participant(stamp);
        if let State::Deciding { participants, .. } = holding.state {
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
        let seen = self.held.appended;
        match holding.reply {
            Reply::None => {}
            Reply::Ended(to) => {
                self.send_after(
                    seen,
                    to,
                    Message::Ended {
                        stamp,
                        result: Err(error),
                    },
                );
            }
            Reply::Shot(to, ticket, given, _) => {
                if given {
                    self.active.remove(&stamp);
                }
                self.send_after(
                    seen,
                    to,
                    Message::Done {
                        ticket,
                        result: Err(error),
                    },
                );
            }
        }
    }

    /// The client gives up. After its commit it may be too late; then nothing happens.
    pub(super) fn abort_asked(&mut self, head: Head) {
        let stamp = head.stamp;
        if self
            .holdings
            .get(&stamp)
            .is_some_and(|h| matches!(h.state, State::Open))
        {
            self.abort(stamp, Error::new(Code::Aborted, "its client gave it up"));
        }
        if self
            .participants
            .get(&stamp)
            .is_some_and(|txn| !txn.prepared)
        {
            self.drop_participant(stamp);
        }
    }

    /// Somebody's work meets an intent of this transaction.
    pub(super) fn pushed_here(
        &mut self,
        from: Address,
        stamp: Stamp,
        by: Stamp,
        priority: u16,
        force: bool,
    ) {
        let fate = match self.holdings.get(&stamp) {
            Some(Holding {
                state: State::Committed { .. },
                ..
            }) => Fate::Committed,
            Some(holding) => {
                let wins = (priority, std::cmp::Reverse(by))
                    > (holding.head.priority, std::cmp::Reverse(stamp));
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
        // A commit is told of when it is durable, and so is what became known before.
        self.send_after(
            self.held.appended,
            from,
            Message::Pushed { stamp, by, fate },
        );
    }

    /// A transaction that is not known here is aborted from now on, so that a late commit cannot win.
    fn fate_of_unknown(&mut self, stamp: Stamp) -> Fate {
        self.outcomes.get(stamp).unwrap_or_else(|| {
            self.outcomes.insert(stamp, false);
            self.drop_participant(stamp);
            Fate::Aborted
        })
    }

    pub(super) fn asked(&mut self, from: Address, stamp: Stamp) {
        let fate = match self.holdings.get(&stamp) {
            Some(Holding {
                state: State::Committed { .. },
                ..
            }) => Fate::Committed,
            Some(_) => Fate::Open,
            None if self.active.contains(&stamp) => Fate::Open,
            None if !self.stamps.plausible(stamp) => Fate::Forgotten,
            None => self.fate_of_unknown(stamp),
        };
        self.send_after(self.held.appended, from, Message::Told { stamp, fate });
    }

    pub(super) fn finalized(&mut self, from: Address, stamp: Stamp) {
        let (Address::Partition(from), Some(holding)) = (from, self.holdings.get_mut(&stamp))
        else {
            return;
        };
        let State::Committed { missing } = &mut holding.state else {
            return;
        };
        missing.remove(&from);
        if missing.is_empty() {
            self.holdings.remove(&stamp);
            self.append(|_, out| Record::Ended { stamp }.encode(out));
        }
    }

    /// Something that was to come did not: ask again, or give up.
    pub(super) fn holding_is_late(&mut self, stamp: Stamp) {
        let Some(holding) = self.holdings.get(&stamp) else {
            return;
        };
        let over = holding.until <= self.now;
        match &holding.state {
            State::Open if over => {
                return self.abort(
                    stamp,
                    Error::new(Code::Aborted, "its client was silent too long"),
                );
            }
            State::Deciding { .. } if over => {
                return self.abort(
                    stamp,
                    Error::new(Code::Aborted, "a vote for it did not come"),
                );
            }
            State::Deciding { .. } if matches!(holding.reply, Reply::Ended(_)) => {
                self.ask_for_votes(stamp);
            }
            State::Open | State::Deciding { .. } => {}
            State::Committed { missing } => {
                let missing: Vec<PartitionId> = missing.iter().copied().collect();
                for partition in missing {
                    let finalize = Message::Finalize {
                        stamp,
                        commit: true,
                    };
                    self.send_after(self.held.appended, Address::Partition(partition), finalize);
                }
            }
        }
        self.at(
            self.now.saturating_add(self.config.resend_ns),
            Timer::Holding(stamp),
        );
    }
}

fn over(stamp: Stamp, fate: Fate) -> Result<()> {
    match fate {
        Fate::Committed => Ok(()),
        Fate::Aborted => {
            let text = format!("transaction {stamp} was aborted");
            Err(Error::new(Code::Aborted, text))
        }
        Fate::Open | Fate::Forgotten => {
            let text = format!("transaction {stamp}: it is not known any more what became of it");
            Err(Error::new(Code::OutcomeUnknown, text))
        }
    }
}
