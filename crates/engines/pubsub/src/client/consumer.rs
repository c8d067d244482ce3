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
use crate::fetch::Fetched;
use crate::group::{Assigned, Membership, Ownership};
use crate::topic::Position;

/// What happened to a consumer's partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The partition was assigned to this consumer, which reads it from this offset on.
    Assigned {
        /// The number of the partition.
        partition: i32,
        /// The first message that it will get.
        from: i64,
    },
    /// Another member waits for the partition. `poll` returns nothing more from it, and the
    /// consumer releases it once all that it returned is committed. A consumer that does not commit
    /// loses the partition after two leases.
    Wanted {
        /// The number of the partition.
        partition: i32,
    },
    /// The consumer released the partition, after it had committed everything from it.
    Released {
        /// The number of the partition.
        partition: i32,
    },
    /// The partition was taken away. Its messages that are not committed are delivered again, to
    /// the member that has it now.
    Lost {
        /// The number of the partition.
        partition: i32,
    },
}

/// Heartbeats in the time of one lease while the group does not change.
const PAUSES: u32 = 3;
/// Heartbeats in the time of one lease just after a change. The pause doubles from there on, up to
/// the pause that [`PAUSES`] gives.
const PAUSES_FIRST: u32 = 96;

type OnChange = Box<dyn FnMut(Change) + Send>;

/// Reads a topic together with the other members of its group. Each message goes to one member, and
/// is delivered again after a crash unless it was committed. Leases are renewed within
/// [`Self::poll`] alone, so a consumer that stops calling it loses its partitions.
pub struct Consumer {
    source: Box<dyn Source>,
    membership: Membership,
    options: ConsumerOptions,
    owned: Vec<Owned>,
    is_member: bool,
    /// When the last heartbeat that the server answered was sent.
    renewed_at: Instant,
    /// The pause until the next heartbeat. It is short while members come and go, because a group
    /// settles only when each member has heard of the change.
    pause: Duration,
    on_change: Option<OnChange>,
}

impl Consumer {
    /// Connects to a server or a broker and joins the group. A group that does not exist is made.
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

    /// Joins the group over a source that the caller made.
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
            renewed_at: Instant::now(),
            pause: Duration::ZERO,
            on_change: None,
        };
        consumer.keep_alive()?;
        Ok(consumer)
    }

    /// Calls `on_change` at every change of ownership, from within `poll` and `commit`. For
    /// partitions that are assigned already it is called at once.
    pub fn on_change(&mut self, mut on_change: impl FnMut(Change) + Send + 'static) {
        for owned in &self.owned {
            on_change(Change::Assigned {
                partition: owned.partition,
                from: owned.position,
            });
        }
        self.on_change = Some(Box::new(on_change));
    }

    /// The name of this member, which is made up if the options give none.
    pub fn member(&self) -> &str {
        &self.membership.member
    }

    /// The partitions that are assigned to this consumer.
    pub fn assigned(&self) -> Vec<Ownership> {
        self.owned.iter().map(Owned::ownership).collect()
    }

    /// Returns the next messages, in order within each partition. It waits for them up to `wait`,
    /// and returns an empty list when none came. While the server cannot be reached it tries again
    /// until the time is over.
    ///
    /// # Errors
    /// `server-lost` and other errors that a retry may cure when the server did not come back in
    /// time: call again. Also `unknown-topic`, `damaged`, and `offset-out-of-range` where the group
    /// was made to fail when retention has removed what it would read next.
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

    /// Stores that all messages which `poll` has returned so far are processed.
    ///
    /// # Errors
    /// `wrong-generation` when some partitions were taken away meanwhile. The others are committed,
    /// and the messages of those are delivered again to their new owners. After `server-lost` and
    /// `outcome-unknown` the call may be repeated.
    pub fn commit(&mut self) -> Result<()> {
        let open = self.owned.iter().filter(|owned| !owned.is_settled());
        let upto: Vec<Position> = open.map(Owned::next).collect();
        self.commit_upto(&upto)
    }

    /// Stores that the messages before these positions are processed.
    ///
    /// # Errors
    /// As [`Self::commit`]; `bad-argument` for an offset that was not handed out.
    pub fn commit_upto(&mut self, upto: &[Position]) -> Result<()> {
        let mut refused = Vec::new();
        let mut cursors = Vec::with_capacity(upto.len());
        for Position { partition, offset } in upto {
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
        for Position { partition, offset } in upto {
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

    /// Leaves the group, so that the other members do not have to wait until the lease lapses.
    /// Messages that were not committed are delivered again, to them.
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
        let last: Vec<_> = self.owned.drain(..).map(|owned| owned.release()).collect();
        if !last.is_empty() {
            self.source.commit(&last)?;
        }
        self.source.leave()
    }

    fn poll_once(&mut self, until: Instant) -> Result<Vec<Message>> {
        self.keep_alive()?;
        let open = self.owned.iter().filter(|owned| !owned.wanted);
        let positions: Vec<Position> = open.map(Owned::next).collect();
        let wait = until
            .saturating_duration_since(Instant::now())
            .min(self.options.lease / 4);
        if positions.is_empty() {
            std::thread::sleep(wait.min(Duration::from_millis(20)));
            return Ok(Vec::new());
        }
        let fetched = match self
            .source
            .fetch(&positions, self.options.fetch_bytes, wait)
        {
            Ok(fetched) => fetched,
            Err(FetchError {
                error,
                partition: Some(partition),
            }) if error.kind() == Code::OffsetOutOfRange => {
                // Retention may have removed the records at our position: then we go on at the
                // first one that is left. A position beyond the end of the log cannot be mended
                // here.
                return if self.skip_lost(partition)? {
                    Ok(Vec::new())
                } else {
                    Err(error)
                };
            }
            Err(failed) => return Err(failed.error),
        };
        // If this process was stopped for longer than a lease, the partition may have been given to
        // another member, which reads the same records. What was fetched is dropped, and fetched
        // again once a heartbeat has confirmed that the partition is still ours.
        if self.renewed_at.elapsed() >= self.options.lease {
            return Ok(Vec::new());
        }
        self.claim(&fetched)?;
        let mut messages = Vec::new();
        for (partition, fetched) in &fetched {
            // `claim` removes the partitions for which the server refused it, and their records
            // with them: another member has them now.
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

    /// Stores how far messages may have been handed out, before they are. After a crash the next
    /// owner can tell messages that may have been processed before from those that cannot have
    /// been. The claim runs ahead by `window_records`, so that most calls need no round trip.
    fn claim(&mut self, fetched: &[(i32, Fetched)]) -> Result<()> {
        let mut cursors = Vec::new();
        for (partition, fetched) in fetched {
            let next_offset = fetched.next_offset;
            let mut owned = self.owned.iter();
            let owned = owned.find(|owned| owned.partition == *partition);
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

    /// Moves the position over records that retention has removed. Returns whether it moved.
    fn skip_lost(&mut self, partition: i32) -> Result<bool> {
        let Some(at) = self
            .owned
            .iter()
            .position(|owned| owned.partition == partition)
        else {
            return Ok(true);
        };
        let moved = self.source.skip_lost(partition, self.owned[at].generation);
        // The partition was taken away meanwhile, so skipping is up to its new owner.
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

    /// Joins the group, or renews the lease when it is time, and releases the partitions that other
    /// members wait for once everything from them is committed.
    fn keep_alive(&mut self) -> Result<()> {
        let released: Vec<Owned> = self
            .owned
            .iter()
            .filter(|o| o.wanted && o.is_settled())
            .copied()
            .collect();
        if self.is_member && released.is_empty() && self.renewed_at.elapsed() < self.pause {
            return Ok(());
        }
        if !self.is_member {
            self.source.join(&self.membership)?;
            self.is_member = true;
            self.pause = self.options.lease / PAUSES_FIRST;
        }
        if !released.is_empty() {
            // The claim runs ahead, so it is lowered to what was really handed out. Otherwise the
            // new owner would report messages as perhaps delivered before that never were.
            let last: Vec<_> = released.iter().map(Owned::release).collect();
            let refused = self.source.commit(&last)?;
            self.lose(&refused);
        }
        let partitions: Vec<i32> = released.iter().map(|owned| owned.partition).collect();
        let before = Instant::now();
        match self.source.heartbeat(&partitions) {
            Ok(assigned) => {
                // The lease began at some time after the request was sent, so counting from
                // `before` errs on the safe side.
                self.renewed_at = before;
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
                // The lease lapsed and other members may have the partitions, so the consumer joins
                // again at the next call as if it were new.
                let all: Vec<i32> = self.owned.iter().map(|owned| owned.partition).collect();
                self.lose(&all);
                self.is_member = false;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Applies the assignment that the server answered with: drops what it does not list, and adds
    /// what is new. A partition of another generation was lost and won again, so its position is
    /// the committed one.
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
        // A member that does not leave keeps its partitions until the lease lapses; an error leaves
        // it at that.
        self.leave().ok();
    }
}

/// A name for a member whose options give none: the process and a random number.
fn some_name() -> String {
    let random = RandomState::new().build_hasher().finish();
    format!("member-{}-{random:016x}", std::process::id())
}
