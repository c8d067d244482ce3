//! A consumer's source over several clusters: a member of the group on each of them.
//!
//! A group's owners, generations and cursors lie beside the partitions that they are about, so a cluster that is
//! away takes its own partitions along and no others. What it had assigned is kept while the lease holds there;
//! after that it is given up here as it is there, and the member joins that cluster anew when it is back,
//! which raises the generations and counts what is read again.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use super::source::{FetchError, Joined, PartitionEnds, Source};
use crate::error::{Code, Error, Result, Retry};
use crate::fetch::Fetched;
use crate::group::{Assigned, Cursor, Membership};
use crate::placement::at_cluster;

/// The first and the longest pause before a cluster that failed is asked for records again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// One cluster's part.
pub(super) struct Part {
    pub cluster: String,
    pub partitions: Vec<i32>,
    pub source: Box<dyn Source>,
    state: State,
}

#[derive(Default)]
struct State {
    joined: bool,
    heard_at: Option<Instant>,
    assigned: Vec<Assigned>,
    /// The last failure, until when it is let alone, and the pause after that.
    failure: Option<(Error, Instant, Duration)>,
}

impl Part {
    pub fn new(cluster: &str, partitions: Vec<i32>, source: Box<dyn Source>) -> Part {
        Part {
            cluster: cluster.to_owned(),
            partitions,
            source,
            state: State::default(),
        }
    }

    fn named(&self, error: &Error) -> Error {
        at_cluster(&self.cluster, error)
    }

    /// Finds the topic where that has to be done.
    fn attach(&mut self, topic: &str) -> Result<()> {
        if !self.state.joined {
            self.source.attach(topic)?;
            self.state.joined = true;
            self.state.heard_at = Some(Instant::now());
        }
        Ok(())
    }

    /// Joins where that has to be done, renews the lease, and says what is owned.
    fn renew(&mut self, membership: &Membership, released: &[i32]) -> Result<()> {
        let lease = Duration::from_millis(membership.lease_ms.unsigned_abs());
        match self.try_renew(membership, released) {
            Ok(()) => {
                self.state.failure = None;
                Ok(())
            }
            Err(error) => {
                self.fail(&error);
                let lapsed = self.state.heard_at.is_none_or(|at| at.elapsed() >= lease);
                if lapsed {
                    self.forget();
                }
                // What was given back is so as far as this member goes; if the server does not know that yet,
                // it says it is still assigned, and nothing of it is open.
                let kept = |assigned: &Assigned| !released.contains(&assigned.partition);
                self.state.assigned.retain(kept);
                Err(self.named(&error))
            }
        }
    }

    fn try_renew(&mut self, membership: &Membership, released: &[i32]) -> Result<()> {
        for _ in 0..2 {
            if !self.state.joined {
                self.source.join(membership)?;
                self.state.joined = true;
            }
            let before = Instant::now();
            match self.source.heartbeat(released) {
                Ok(assigned) => {
                    self.state.assigned = assigned;
                    self.state.heard_at = Some(before);
                    return Ok(());
                }
                Err(error) if error.kind() == Code::UnknownMember => self.forget(),
                Err(error) => return Err(error),
            }
        }
        // It lapsed again between joining and the first heartbeat: there is time for that at the next.
        Ok(())
    }

    /// What was assigned is somebody else's, or will be joined for anew.
    fn forget(&mut self) {
        self.state.joined = false;
        self.state.assigned.clear();
    }

    fn rests(&self) -> bool {
        let failure = self.state.failure.as_ref();
        failure.is_some_and(|(_, until, _)| Instant::now() < *until)
    }

    fn fail(&mut self, error: &Error) {
        let last = self.state.failure.as_ref();
        let pause = last.map_or(PAUSES.0, |(_, _, pause)| (*pause * 2).min(PAUSES.1));
        self.state.failure = Some((self.named(error), Instant::now() + pause, pause));
    }
}

/// All clusters of one topic.
pub(super) struct Placed {
    parts: Vec<Part>,
    membership: Option<Membership>,
    /// Without a group: the topic that each cluster is asked for when it is there.
    topic: Option<String>,
    idle_pause: Duration,
    turn: usize,
}

impl Placed {
    pub fn new(parts: Vec<Part>, idle_pause: Duration) -> Placed {
        Placed {
            parts,
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

    /// How long what was read may be trusted: without a group nobody else reads it instead.
    fn lease(&self) -> Result<Duration> {
        match &self.topic {
            Some(_) => Ok(Duration::MAX),
            None => Ok(Duration::from_millis(
                self.membership()?.lease_ms.unsigned_abs(),
            )),
        }
    }

    fn part_of(&mut self, partition: i32) -> Result<&mut Part> {
        let mut parts = self.parts.iter_mut();
        parts
            .find(|part| part.partitions.contains(&partition))
            .ok_or_else(|| {
                let text = format_args!("there is no partition {partition}");
                Error::new(Code::UnknownTopic, text)
            })
    }

    /// One look at every cluster that has some of these places and does not rest after a failure.
    fn look(
        &mut self,
        places: &[(i32, i64)],
        most_bytes: usize,
        lease: Duration,
    ) -> std::result::Result<Vec<(i32, Fetched)>, FetchError> {
        let mut fetched = Vec::new();
        let mut left = most_bytes;
        self.turn = self.turn.wrapping_add(1);
        let count = self.parts.len();
        for at in 0..count {
            let part = &mut self.parts[(self.turn + at) % count];
            let mut its = places.to_vec();
            its.retain(|(partition, _)| part.partitions.contains(partition));
            if its.is_empty() || left < most_bytes / 8 || part.rests() {
                continue;
            }
            if let Some(topic) = &self.topic
                && let Err(error) = part.attach(topic)
            {
                part.fail(&error);
                continue;
            }
            match part.source.fetch(&its, left, Duration::ZERO) {
                Ok(found) => {
                    part.state.failure = None;
                    // As in `Consumer::poll_once`: what was read after the lease may be another's by now.
                    if part.state.heard_at.is_none_or(|at| at.elapsed() >= lease) {
                        continue;
                    }
                    let rows = found.iter().flat_map(|(_, fetched)| &fetched.rows);
                    left = left.saturating_sub(rows.map(|row| row.body.len()).sum());
                    fetched.extend(found);
                }
                Err(failed) if failed.error.retry() == Retry::Never => {
                    // It comes again when there is nothing else to hand out.
                    return match fetched.is_empty() {
                        true => Err(FetchError {
                            error: part.named(&failed.error),
                            ..failed
                        }),
                        false => Ok(fetched),
                    };
                }
                Err(failed) => part.fail(&failed.error),
            }
        }
        Ok(fetched)
    }
}

impl Source for Placed {
    /// Joins nothing yet: each cluster is joined at the first heartbeat that reaches it.
    fn join(&mut self, membership: &Membership) -> Result<Joined> {
        self.membership = Some(membership.clone());
        let partitions: usize = self.parts.iter().map(|part| part.partitions.len()).sum();
        Ok(Joined {
            group_id: 0,
            topic_id: 0,
            partitions: u32::try_from(partitions).unwrap_or(u32::MAX),
        })
    }

    /// Attaches to nothing yet: each cluster is asked at the first call that needs it.
    fn attach(&mut self, topic: &str) -> Result<Joined> {
        self.topic = Some(topic.to_owned());
        let partitions: usize = self.parts.iter().map(|part| part.partitions.len()).sum();
        Ok(Joined {
            group_id: 0,
            topic_id: 0,
            partitions: u32::try_from(partitions).unwrap_or(u32::MAX),
        })
    }

    /// Of all clusters, or none: who loads all that is there must not take a part for it.
    fn ends(&mut self) -> Result<Vec<PartitionEnds>> {
        let mut all = Vec::new();
        for part in &mut self.parts {
            let asked = match &self.topic {
                Some(topic) => part.attach(topic),
                None => Ok(()),
            };
            let ends = asked.and_then(|()| part.source.ends());
            let ends = ends.map_err(|error| part.named(&error))?;
            all.extend(
                ends.into_iter()
                    .filter(|is| part.partitions.contains(&is.partition)),
            );
        }
        Ok(all)
    }

    fn heartbeat(&mut self, released: &[i32]) -> Result<Vec<Assigned>> {
        let membership = self.membership()?;
        let mut failure = None;
        let mut reached = false;
        for part in &mut self.parts {
            let mut its = released.to_vec();
            its.retain(|partition| part.partitions.contains(partition));
            match part.renew(&membership, &its) {
                Ok(()) => reached = true,
                Err(error) if error.retry() == Retry::Never => return Err(error),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if !reached => Err(error),
            _ => {
                let assigned = self.parts.iter().flat_map(|part| &part.state.assigned);
                Ok(assigned.copied().collect())
            }
        }
    }

    fn commit(&mut self, cursors: &[Cursor]) -> Result<Vec<i32>> {
        let mut refused = Vec::new();
        let mut failure = None;
        let mut by_part: HashMap<usize, Vec<Cursor>> = HashMap::new();
        for cursor in cursors {
            let mut parts = self.parts.iter();
            match parts.position(|part| part.partitions.contains(&cursor.partition)) {
                Some(at) if self.parts[at].state.joined => {
                    by_part.entry(at).or_default().push(*cursor)
                }
                _ => refused.push(cursor.partition),
            }
        }
        // Every cluster, whatever another one says: what it stores is stored again when the caller repeats it.
        for (at, its) in by_part {
            let part = &mut self.parts[at];
            match part.source.commit(&its) {
                Ok(not) => refused.extend(not),
                Err(error) => failure = Some(part.named(&error)),
            }
        }
        failure.map_or(Ok(refused), Err)
    }

    fn leave(&mut self) -> Result<()> {
        let mut left = Ok(());
        for part in &mut self.parts {
            if std::mem::take(&mut part.state.joined) {
                let done = part.source.leave().map_err(|error| part.named(&error));
                left = left.and(done);
            }
        }
        left
    }

    fn skip_lost(&mut self, partition: i32, generation: i64) -> Result<i64> {
        let part = self.part_of(partition)?;
        let moved = part.source.skip_lost(partition, generation);
        moved.map_err(|error| part.named(&error))
    }

    fn fetch(
        &mut self,
        places: &[(i32, i64)],
        most_bytes: usize,
        wait: Duration,
    ) -> std::result::Result<Vec<(i32, Fetched)>, FetchError> {
        let lease = self.lease()?;
        let until = Instant::now() + wait;
        let mut pause = Duration::from_millis(1).min(self.idle_pause);
        loop {
            let fetched = self.look(places, most_bytes, lease)?;
            let now = Instant::now();
            if !fetched.is_empty() {
                return Ok(fetched);
            }
            if now >= until {
                let mut failures = self
                    .parts
                    .iter()
                    .filter_map(|part| part.state.failure.as_ref());
                return match failures.next() {
                    Some((error, _, _)) => Err(error.clone().into()),
                    None => Ok(fetched),
                };
            }
            thread::sleep(pause.min(until - now));
            pause = (pause * 2).min(self.idle_pause);
        }
    }
}
