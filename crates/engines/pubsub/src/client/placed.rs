//! A consumer's source over several clusters. It is a member of the group on each of them.
//!
//! The owners, generations and cursors of a group lie beside the partitions that they belong to, so
//! a cluster that is down takes only its own partitions with it. What it had assigned is kept until
//! the lease lapses there. Then the assignment is dropped here too, and the member joins that
//! cluster again when it is back, which raises the generations and counts what is read again.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use dyno_random::backoff;

use super::source::{FetchError, Joined, PartitionEnds, Source};
use crate::error::{Code, Error, Result, Retry};
use crate::fetch::Fetched;
use crate::group::{Assigned, Cursor, Membership};
use crate::placement::at_cluster;
use crate::topic::Position;

/// The first and the longest pause before a cluster that failed is asked for records again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// The share of the topic's partitions that one cluster has, and how this consumer stands there.
pub(super) struct Share {
    pub cluster: String,
    pub partitions: Vec<i32>,
    pub source: Box<dyn Source>,
    state: State,
}

#[derive(Default)]
struct State {
    joined: bool,
    renewed_at: Option<Instant>,
    assigned: Vec<Assigned>,
    failure: Option<Failure>,
}

/// The last one of a row of failures.
struct Failure {
    error: Error,
    count: u32,
    /// When the cluster is tried again.
    until: Instant,
}

impl Share {
    pub fn new(cluster: &str, partitions: Vec<i32>, source: Box<dyn Source>) -> Share {
        Share {
            cluster: cluster.to_owned(),
            partitions,
            source,
            state: State::default(),
        }
    }

    fn named(&self, error: &Error) -> Error {
        at_cluster(&self.cluster, error)
    }

    /// Finds the topic, unless that was done before.
    fn attach(&mut self, topic: &str) -> Result<()> {
        if !self.state.joined {
            self.source.attach(topic)?;
            self.state.joined = true;
            self.state.renewed_at = Some(Instant::now());
        }
        Ok(())
    }

    /// Joins unless that was done before, and renews the lease. The assignment is kept in the
    /// state.
    fn renew(&mut self, membership: &Membership, released: &[i32]) -> Result<()> {
        let lease = Duration::from_millis(membership.lease_ms.unsigned_abs());
        match self.try_renew(membership, released) {
            Ok(()) => {
                self.state.failure = None;
                Ok(())
            }
            Err(error) => {
                self.fail(&error);
                let lapsed = self.state.renewed_at.is_none_or(|at| at.elapsed() >= lease);
                if lapsed {
                    self.forget();
                }
                // The consumer has released these partitions, whether the server has heard of it or
                // not. If it has not, the next heartbeat assigns them again, which is harmless
                // because everything from them is committed.
                let kept = |assigned: &Assigned| !released.contains(&assigned.partition);
                self.state.assigned.retain(kept);
                Err(self.named(&error))
            }
        }
    }

    fn try_renew(&mut self, membership: &Membership, released: &[i32]) -> Result<()> {
        // A lease that lapsed meanwhile is found out by the first heartbeat. The second attempt
        // joins anew, so that the caller need not wait for its next heartbeat to read again.
        for _ in 0..2 {
            if !self.state.joined {
                self.source.join(membership)?;
                self.state.joined = true;
            }
            let before = Instant::now();
            match self.source.heartbeat(released) {
                Ok(assigned) => {
                    self.state.assigned = assigned;
                    self.state.renewed_at = Some(before);
                    return Ok(());
                }
                Err(error) if error.kind() == Code::UnknownMember => self.forget(),
                Err(error) => return Err(error),
            }
        }
        // The lease lapsed again between joining and the first heartbeat. The next heartbeat tries
        // again.
        Ok(())
    }

    /// Drops the assignment, because another member may have it by now. The next renewal joins
    /// again.
    fn forget(&mut self) {
        self.state.joined = false;
        self.state.assigned.clear();
    }

    /// Whether the cluster failed so recently that it is not asked again yet. Asking a cluster that
    /// is down takes the time that others could answer in.
    fn is_paused(&self) -> bool {
        let failure = self.state.failure.as_ref();
        failure.is_some_and(|failure| Instant::now() < failure.until)
    }

    fn fail(&mut self, error: &Error) {
        let count = self.state.failure.as_ref().map_or(0, |last| last.count) + 1;
        self.state.failure = Some(Failure {
            error: self.named(error),
            count,
            until: Instant::now() + backoff(PAUSES.0, PAUSES.1, count),
        });
    }
}

/// The clusters that one topic lies on.
pub(super) struct Placed {
    shares: Vec<Share>,
    membership: Option<Membership>,
    /// The topic of a reader without a group, to attach to at each cluster once that can be
    /// reached.
    topic: Option<String>,
    idle_pause: Duration,
    turn: usize,
}

impl Placed {
    pub fn new(shares: Vec<Share>, idle_pause: Duration) -> Placed {
        Placed {
            shares,
            membership: None,
            topic: None,
            idle_pause,
            turn: 0,
        }
    }

    fn membership(&self) -> Result<Membership> {
        self.membership
            .clone()
            .ok_or_else(|| Error::new(Code::UnknownMember, "the consumer has not joined its group"))
    }

    /// For how long after a heartbeat the assignment may be trusted. A reader without a group
    /// shares its partitions with no other reader, so it may always.
    fn lease(&self) -> Result<Duration> {
        match &self.topic {
            Some(_) => Ok(Duration::MAX),
            None => Ok(Duration::from_millis(
                self.membership()?.lease_ms.unsigned_abs(),
            )),
        }
    }

    fn share_of(&mut self, partition: i32) -> Result<&mut Share> {
        let mut shares = self.shares.iter_mut();
        shares
            .find(|share| share.partitions.contains(&partition))
            .ok_or_else(|| {
                let text = format_args!("there is no partition {partition}");
                Error::new(Code::UnknownTopic, text)
            })
    }

    /// Reads once at every cluster that has some of these positions and is not paused after a
    /// failure.
    fn read_once(
        &mut self,
        positions: &[Position],
        most_bytes: usize,
        lease: Duration,
    ) -> std::result::Result<Vec<(i32, Fetched)>, FetchError> {
        let mut fetched = Vec::new();
        let mut left = most_bytes;
        // The first cluster rotates. A busy one would otherwise use up `most_bytes` in each call,
        // and those behind it would never be read.
        self.turn = self.turn.wrapping_add(1);
        let count = self.shares.len();
        for at in 0..count {
            let share = &mut self.shares[(self.turn + at) % count];
            let mut own = positions.to_vec();
            own.retain(|at| share.partitions.contains(&at.partition));
            if own.is_empty() || left < most_bytes / 8 || share.is_paused() {
                continue;
            }
            if let Some(topic) = &self.topic
                && let Err(error) = share.attach(topic)
            {
                share.fail(&error);
                continue;
            }
            match share.source.fetch(&own, left, Duration::ZERO) {
                Ok(found) => {
                    share.state.failure = None;
                    // As in `Consumer::poll_once`: after the lease these records may be another
                    // member's.
                    if share
                        .state
                        .renewed_at
                        .is_none_or(|at| at.elapsed() >= lease)
                    {
                        continue;
                    }
                    let rows = found.iter().flat_map(|(_, fetched)| &fetched.rows);
                    left = left.saturating_sub(rows.map(|row| row.body.len()).sum());
                    fetched.extend(found);
                }
                Err(failed) if failed.error.retry() == Retry::Never => {
                    // Records that were read are handed out first. The failure lasts, so the next
                    // call reports it.
                    return if fetched.is_empty() {
                        Err(FetchError {
                            error: share.named(&failed.error),
                            ..failed
                        })
                    } else {
                        Ok(fetched)
                    };
                }
                Err(failed) => share.fail(&failed.error),
            }
        }
        Ok(fetched)
    }
}

impl Source for Placed {
    /// Only remembers the membership. Each cluster is joined at the first heartbeat that reaches
    /// it, so that one which is down does not keep the consumer from the others.
    fn join(&mut self, membership: &Membership) -> Result<Joined> {
        self.membership = Some(membership.clone());
        let partitions: usize = self.shares.iter().map(|share| share.partitions.len()).sum();
        Ok(Joined {
            group_id: 0,
            topic_id: 0,
            partitions: u32::try_from(partitions).unwrap_or(u32::MAX),
        })
    }

    /// Only remembers the topic. Each cluster is asked at the first call that needs it.
    fn attach(&mut self, topic: &str) -> Result<Joined> {
        self.topic = Some(topic.to_owned());
        let partitions: usize = self.shares.iter().map(|share| share.partitions.len()).sum();
        Ok(Joined {
            group_id: 0,
            topic_id: 0,
            partitions: u32::try_from(partitions).unwrap_or(u32::MAX),
        })
    }

    /// The ends at all clusters, or an error: a caller that loads a whole topic must not take a
    /// part of the clusters for all of them.
    fn ends(&mut self) -> Result<Vec<PartitionEnds>> {
        let mut all = Vec::new();
        for share in &mut self.shares {
            let asked = match &self.topic {
                Some(topic) => share.attach(topic),
                None => Ok(()),
            };
            let ends = asked.and_then(|()| share.source.ends());
            let ends = ends.map_err(|error| share.named(&error))?;
            all.extend(
                ends.into_iter()
                    .filter(|is| share.partitions.contains(&is.partition)),
            );
        }
        Ok(all)
    }

    fn heartbeat(&mut self, released: &[i32]) -> Result<Vec<Assigned>> {
        let membership = self.membership()?;
        let mut failure = None;
        let mut reached = false;
        for share in &mut self.shares {
            let mut own = released.to_vec();
            own.retain(|partition| share.partitions.contains(partition));
            match share.renew(&membership, &own) {
                Ok(()) => reached = true,
                Err(error) if error.retry() == Retry::Never => return Err(error),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if !reached => Err(error),
            _ => {
                let assigned = self.shares.iter().flat_map(|share| &share.state.assigned);
                Ok(assigned.copied().collect())
            }
        }
    }

    fn commit(&mut self, cursors: &[Cursor]) -> Result<Vec<i32>> {
        let mut refused = Vec::new();
        let mut failure = None;
        let mut by_part: HashMap<usize, Vec<Cursor>> = HashMap::new();
        for cursor in cursors {
            let mut shares = self.shares.iter();
            match shares.position(|share| share.partitions.contains(&cursor.partition)) {
                // A cluster that this member has not joined, or whose lease lapsed, does not know
                // it as the owner, so the cursor is refused without asking.
                Some(at) if self.shares[at].state.joined => {
                    by_part.entry(at).or_default().push(*cursor)
                }
                _ => refused.push(cursor.partition),
            }
        }
        // A failure at one cluster does not stop the others. The caller repeats the whole commit
        // after an error, and storing the same cursor again changes nothing.
        for (at, own) in by_part {
            let share = &mut self.shares[at];
            match share.source.commit(&own) {
                Ok(not) => refused.extend(not),
                Err(error) => failure = Some(share.named(&error)),
            }
        }
        failure.map_or(Ok(refused), Err)
    }

    fn leave(&mut self) -> Result<()> {
        let mut left = Ok(());
        for share in &mut self.shares {
            if std::mem::take(&mut share.state.joined) {
                let done = share.source.leave().map_err(|error| share.named(&error));
                left = left.and(done);
            }
        }
        left
    }

    fn skip_lost(&mut self, partition: i32, generation: i64) -> Result<i64> {
        let share = self.share_of(partition)?;
        let moved = share.source.skip_lost(partition, generation);
        moved.map_err(|error| share.named(&error))
    }

    fn fetch(
        &mut self,
        positions: &[Position],
        most_bytes: usize,
        wait: Duration,
    ) -> std::result::Result<Vec<(i32, Fetched)>, FetchError> {
        let lease = self.lease()?;
        let until = Instant::now() + wait;
        let mut pause = Duration::from_millis(1).min(self.idle_pause);
        loop {
            let fetched = self.read_once(positions, most_bytes, lease)?;
            let now = Instant::now();
            if !fetched.is_empty() {
                return Ok(fetched);
            }
            // Only now is a failure reported: with records from the other clusters, or time left to
            // try again, it is not one for the caller.
            if now >= until {
                let mut failures = self
                    .shares
                    .iter()
                    .filter_map(|share| share.state.failure.as_ref());
                return match failures.next() {
                    Some(failure) => Err(failure.error.clone().into()),
                    None => Ok(fetched),
                };
            }
            thread::sleep(pause.min(until - now));
            pause = (pause * 2).min(self.idle_pause);
        }
    }
}
