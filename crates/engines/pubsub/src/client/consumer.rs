//! The consumer: a member of a group.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};

use super::address::Address;
use super::message::{self, Message};
use super::options::ConsumerOptions;
use super::owned::Owned;
use super::reader;
use super::source::{FetchError, Source};
use crate::error::{Code, Error, Result, Retry};
use crate::group::{Assigned, Membership};

/// What happened to a consumer's partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The partition is this consumer's now, from this offset on.
    Assigned {
        /// The partition.
        partition: i32,
        /// The first message that it will get.
        from: i64,
    },
    /// Another member waits for it: it gives no more messages, and is given up when those that it gave are
    /// committed. Who never commits loses it after two leases.
    Wanted {
        /// The partition.
        partition: i32,
    },
    /// It was given up after all was committed.
    Released {
        /// The partition.
        partition: i32,
    },
    /// It was taken away: messages from it that are not committed will come to somebody again.
    Lost {
        /// The partition.
        partition: i32,
    },
}

/// Heartbeats in a lease when nothing changes.
const PAUSES: u32 = 3;
/// And how many there would be at the pace just after a change, from which the pauses double.
const PAUSES_FIRST: u32 = 96;

type OnChange = Box<dyn FnMut(Change) + Send>;

/// Reads a topic together with the other members of its group; each message goes to one of them, and again
/// after a crash when it was not committed. Leases are renewed within [`Self::poll`] and [`Self::commit`], so
/// a consumer that stops calling them loses its partitions.
pub struct Consumer {
    source: Box<dyn Source>,
    membership: Membership,
    options: ConsumerOptions,
    owned: Vec<Owned>,
    is_member: bool,
    heard_at: Instant,
    /// Until the next heartbeat: short while members come and go, so that a group is settled soon.
    pause: Duration,
    on_change: Option<OnChange>,
}

impl Consumer {
    /// Connects to a server or a broker and joins the group, which is made when there is none.
    ///
    /// # Errors
    /// `unknown-topic`, `not-installed`, `newer-schema`, `server-lost`, `denied`, `bad-argument`.
    pub fn open<A>(
        address: A,
        topic: &str,
        group: &str,
        options: ConsumerOptions,
    ) -> Result<Consumer>
    where
        A: TryInto<Address>,
        Error: From<A::Error>,
    {
        let source = reader::source_of(address.try_into()?, topic, &options)?;
        Consumer::with_source(source, topic, group, options)
    }

    /// The same over a source of the caller's.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn with_source(
        source: Box<dyn Source>,
        topic: &str,
        group: &str,
        options: ConsumerOptions,
    ) -> Result<Consumer> {
        let membership = Membership {
            topic: topic.to_owned(),
            group: group.to_owned(),
            member: options.member.clone().unwrap_or_else(some_name),
            lease_ms: i64::try_from(options.lease.as_millis()).unwrap_or(i64::MAX),
            start: options.start,
            when_lost: options.when_lost,
        };
        let mut consumer = Consumer {
            source,
            membership,
            options,
            owned: Vec::new(),
            is_member: false,
            heard_at: Instant::now(),
            pause: Duration::ZERO,
            on_change: None,
        };
        consumer.keep_alive()?;
        Ok(consumer)
    }

    /// Calls this at every change of ownership, within `poll` and `commit`. What is owned already is told at
    /// once.
    pub fn on_change(&mut self, mut on_change: impl FnMut(Change) + Send + 'static) {
        for owned in &self.owned {
            on_change(Change::Assigned {
                partition: owned.partition,
                from: owned.position,
            });
        }
        self.on_change = Some(Box::new(on_change));
    }

    /// The member's name.
    pub fn member(&self) -> &str {
        &self.membership.member
    }

    /// The partitions that it owns, with the generation of the ownership.
    pub fn assigned(&self) -> Vec<(i32, i64)> {
        self.owned
            .iter()
            .map(|owned| (owned.partition, owned.generation))
            .collect()
    }

    /// The next messages, in order within each partition. Waits for some; returns none when there were none in
    /// this time. While the server is away it tries again until the time is over.
    ///
    /// # Errors
    /// `server-lost` and the like when the time was over before it came back: call again. Others:
    /// `unknown-topic`, `damaged`, `offset-out-of-range` where the group is one that fails.
    pub fn poll(&mut self, wait: Duration) -> Result<Vec<Message>> {
        let until = Instant::now() + wait;
        loop {
            let polled = self.poll_once(until);
            match polled {
                Ok(messages) if messages.is_empty() && Instant::now() < until => {}
                Err(error) if error.retry() != Retry::Never && Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(20).min(until - Instant::now()));
                }
                polled => return polled,
            }
        }
    }

    /// Stores that all messages which `poll` returned so far are done with.
    ///
    /// # Errors
    /// `wrong-generation` when some partitions were taken away meanwhile: the others are committed, and the
    /// messages of those will come to somebody again. `server-lost` and `outcome-unknown`: call again.
    pub fn commit(&mut self) -> Result<()> {
        let open = self.owned.iter().filter(|owned| !owned.is_settled());
        let upto: Vec<(i32, i64)> = open
            .map(|owned| (owned.partition, owned.position))
            .collect();
        self.commit_upto(&upto)
    }

    /// Stores that messages before these offsets (partition, offset) are done with.
    ///
    /// # Errors
    /// As [`Self::commit`]; `bad-argument` for an offset that was not handed out.
    pub fn commit_upto(&mut self, upto: &[(i32, i64)]) -> Result<()> {
        let mut refused = Vec::new();
        let mut cursors = Vec::with_capacity(upto.len());
        for (partition, offset) in upto {
            match self
                .owned
                .iter()
                .find(|owned| owned.partition == *partition)
            {
                Some(owned) if *offset > owned.position => {
                    let text = format_args!(
                        "offset {offset} of partition {partition} was not handed out yet"
                    );
                    return Err(Error::bad_argument(text));
                }
                Some(owned) => cursors.push(owned.commits(*offset, self.options.commits)),
                None => refused.push(*partition),
            }
        }
        if !cursors.is_empty() {
            refused.extend(self.source.commit(&cursors)?);
        }
        for (partition, offset) in upto {
            if let Some(owned) = self
                .owned
                .iter_mut()
                .find(|owned| owned.partition == *partition)
            {
                owned.committed = *offset;
            }
        }
        self.lose(&refused);
        if refused.is_empty() {
            return Ok(());
        }
        let member = &self.membership.member;
        let text = format_args!("partitions {refused:?} are not {member}'s any more");
        Err(Error::new(Code::WrongGeneration, text))
    }

    /// Leaves the group, so that others need not wait for the lease to lapse. What was not committed comes to
    /// them again.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub fn close(mut self) -> Result<()> {
        self.leave()
    }

    fn leave(&mut self) -> Result<()> {
        if !self.is_member {
            return Ok(());
        }
        self.is_member = false;
        let last: Vec<_> = self
            .owned
            .drain(..)
            .map(|owned| owned.last_word())
            .collect();
        if !last.is_empty() {
            self.source.commit(&last)?;
        }
        self.source.leave()
    }

    fn poll_once(&mut self, until: Instant) -> Result<Vec<Message>> {
        self.keep_alive()?;
        let open = self.owned.iter().filter(|owned| !owned.wanted);
        let places: Vec<(i32, i64)> = open
            .map(|owned| (owned.partition, owned.position))
            .collect();
        let wait = until
            .saturating_duration_since(Instant::now())
            .min(self.options.lease / 4);
        if places.is_empty() {
            std::thread::sleep(wait.min(Duration::from_millis(20)));
            return Ok(Vec::new());
        }
        let fetched = match self.source.fetch(&places, self.options.fetch_bytes, wait) {
            Ok(fetched) => fetched,
            Err(FetchError {
                error,
                partition: Some(partition),
            }) if error.kind() == Code::OffsetOutOfRange => {
                // Before the log's first record: over to that. Beyond its end: nothing can be done here.
                return if self.skip_lost(partition)? {
                    Ok(Vec::new())
                } else {
                    Err(error)
                };
            }
            Err(failed) => return Err(failed.error),
        };
        // Whoever stood still for a lease may have read what was appended after the partition was taken
        // away, and nobody has counted that: it is read again when the server says that it is still ours.
        if self.heard_at.elapsed() >= self.options.lease {
            return Ok(Vec::new());
        }
        self.claim(
            fetched
                .iter()
                .map(|(partition, fetched)| (*partition, fetched.next_offset)),
        )?;
        let mut messages = Vec::new();
        for (partition, fetched) in &fetched {
            // Not there any more when the claim was refused.
            let Some(owned) = self
                .owned
                .iter_mut()
                .find(|owned| owned.partition == *partition)
            else {
                continue;
            };
            for row in &fetched.rows {
                message::unpack(*partition, row, owned.position, &mut messages)?;
            }
            owned.position = fetched.next_offset;
        }
        Ok(messages)
    }

    /// Makes sure that the server knows how far messages are handed out, before they are.
    fn claim(&mut self, upto: impl Iterator<Item = (i32, i64)>) -> Result<()> {
        let mut cursors = Vec::new();
        for (partition, next_offset) in upto {
            let owned = self.owned.iter().find(|owned| owned.partition == partition);
            if let Some(owned) = owned.filter(|owned| owned.claimed_to < next_offset) {
                cursors.push(owned.claims(next_offset + self.options.window_records));
            }
        }
        if cursors.is_empty() {
            return Ok(());
        }
        let refused = self.source.commit(&cursors)?;
        for cursor in &cursors {
            let owned = self
                .owned
                .iter_mut()
                .find(|owned| owned.partition == cursor.partition);
            if let (Some(owned), Some(claimed_to)) = (owned, cursor.claimed_to) {
                owned.claimed_to = claimed_to;
            }
        }
        self.lose(&refused);
        Ok(())
    }

    /// Whether there was something to skip.
    fn skip_lost(&mut self, partition: i32) -> Result<bool> {
        let Some(at) = self
            .owned
            .iter()
            .position(|owned| owned.partition == partition)
        else {
            return Ok(true);
        };
        let moved = self.source.skip_lost(partition, self.owned[at].generation);
        // It was taken away meanwhile: whoever has it now goes over what is lost.
        if let Err(error) = &moved
            && error.kind() == Code::WrongGeneration
        {
            self.lose(&[partition]);
            return Ok(true);
        }
        let moved = moved?;
        let owned = &mut self.owned[at];
        let skipped = owned.position < moved;
        owned.position = owned.position.max(moved);
        owned.committed = owned.committed.max(moved);
        Ok(skipped)
    }

    /// Joins, or renews the lease where it is time, and gives up what others want and nothing is open of.
    fn keep_alive(&mut self) -> Result<()> {
        let released: Vec<Owned> = self
            .owned
            .iter()
            .filter(|o| o.wanted && o.is_settled())
            .copied()
            .collect();
        if self.is_member && released.is_empty() && self.heard_at.elapsed() < self.pause {
            return Ok(());
        }
        if !self.is_member {
            self.source.join(&self.membership)?;
            self.is_member = true;
            self.pause = self.options.lease / PAUSES_FIRST;
        }
        if !released.is_empty() {
            let last: Vec<_> = released.iter().map(Owned::last_word).collect();
            let refused = self.source.commit(&last)?;
            self.lose(&refused);
        }
        let partitions: Vec<i32> = released.iter().map(|owned| owned.partition).collect();
        let before = Instant::now();
        match self.source.heartbeat(&partitions) {
            Ok(assigned) => {
                self.heard_at = before;
                self.pause = (self.pause * 2).min(self.options.lease / PAUSES);
                for partition in partitions {
                    if let Some(at) = self
                        .owned
                        .iter()
                        .position(|owned| owned.partition == partition)
                    {
                        self.owned.swap_remove(at);
                        self.tell(Change::Released { partition });
                    }
                }
                self.take_over(&assigned);
                Ok(())
            }
            Err(error) if error.kind() == Code::UnknownMember => {
                // The lease lapsed: others have the partitions, and this one begins anew.
                let all: Vec<i32> = self.owned.iter().map(|owned| owned.partition).collect();
                self.lose(&all);
                self.is_member = false;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn take_over(&mut self, assigned: &[Assigned]) {
        let kept = |owned: &Owned| {
            assigned
                .iter()
                .any(|a| (a.partition, a.generation) == (owned.partition, owned.generation))
        };
        let gone: Vec<i32> = self
            .owned
            .iter()
            .filter(|owned| !kept(owned))
            .map(|owned| owned.partition)
            .collect();
        self.lose(&gone);
        for assigned in assigned {
            match self
                .owned
                .iter_mut()
                .find(|owned| owned.partition == assigned.partition)
            {
                Some(owned) => {
                    let news = assigned.wanted && !owned.wanted;
                    owned.wanted = assigned.wanted;
                    if news {
                        let partition = assigned.partition;
                        self.tell(Change::Wanted { partition });
                    }
                }
                None => {
                    self.owned.push(Owned::new(assigned));
                    self.tell(Change::Assigned {
                        partition: assigned.partition,
                        from: assigned.committed,
                    });
                }
            }
        }
    }

    fn lose(&mut self, partitions: &[i32]) {
        for partition in partitions {
            if let Some(at) = self
                .owned
                .iter()
                .position(|owned| owned.partition == *partition)
            {
                self.owned.swap_remove(at);
                self.tell(Change::Lost {
                    partition: *partition,
                });
            }
        }
    }

    fn tell(&mut self, change: Change) {
        self.pause = self.options.lease / PAUSES_FIRST;
        if let Some(on_change) = &mut self.on_change {
            on_change(change);
        }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        // Politeness: without it the lease lapses.
        self.leave().ok();
    }
}

/// The process and a random number.
fn some_name() -> String {
    let random = RandomState::new().build_hasher().finish();
    format!("member-{}-{random:016x}", std::process::id())
}
