//! A consumer's source over brokers: one fetch of each owned partition is always under way, so that
//! the next rows come while the last ones are worked on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::source::{FetchError, Joined, PartitionEnds, Source};
use super::Brokers;
use super::fetches::Fetches;
use crate::error::{Code, Error, Result};
use crate::fetch::{Fetched, StoredRow};
use crate::group::{Assigned, Cursor, Membership, WhenLost};
use crate::topic::Position;
use crate::wire::{self, Commit, Fetch, Heartbeat, JoinGroup, LeaveGroup, SkipLost};

/// How long a fetch waits at the broker for records. A fetch that the broker has lost is noticed
/// after this time at the earliest.
const WAIT: Duration = Duration::from_millis(500);
/// How long the fetches of other partitions are waited for before one that is out of reach is tried
/// again.
const RETRY: Duration = Duration::from_millis(20);

/// The connections of one consumer to the brokers of one cluster.
pub struct Brokered {
    brokers: Brokers,
    joined: Option<(Joined, String)>,
    fetches: Arc<Fetches>,
}

impl Brokered {
    pub fn open(brokers: Brokers) -> Brokered {
        Brokered {
            brokers,
            joined: None,
            fetches: Arc::default(),
        }
    }

    fn member(&self) -> Result<(Joined, String)> {
        self.joined
            .clone()
            .ok_or_else(|| Error::new(Code::UnknownMember, "the consumer has not joined its group"))
    }

    /// Sends a fetch from this position unless one is under way.
    fn ask(&mut self, topic_id: i32, from: Position, most_bytes: usize) -> Result<()> {
        if self.fetches.is_begun(from) {
            return Ok(());
        }
        let Position { partition, offset } = from;
        let client = self.brokers.client_for(partition)?;
        let number = self.fetches.begin(from);
        let request = Fetch {
            topic_id,
            partition,
            offset,
            most_bytes: u32::try_from(most_bytes).unwrap_or(u32::MAX),
            least_bytes: 1,
            wait_ms: WAIT.as_millis() as u32,
        };
        let fetches = Arc::clone(&self.fetches);
        client.send(&request, move |answer| {
            fetches.arrive(partition, number, answer);
        });
        Ok(())
    }
}

impl Source for Brokered {
    fn join(&mut self, membership: &Membership) -> Result<Joined> {
        let joined = self.brokers.ask_any(&JoinGroup {
            topic: membership.topic.clone(),
            group: membership.group.clone(),
            member: membership.member.clone(),
            start: membership.start.into(),
            lease_ms: u32::try_from(membership.lease_ms).unwrap_or(u32::MAX),
            when_lost: match membership.when_lost {
                WhenLost::Skip => "skip".to_owned(),
                WhenLost::Fail => "fail".to_owned(),
            },
        })?;
        let places = self.brokers.places()?;
        let joined = Joined {
            group_id: joined.group_id,
            topic_id: places.topic_id,
            partitions: u32::try_from(places.partitions.len()).unwrap_or(u32::MAX),
        };
        self.joined = Some((joined, membership.member.clone()));
        Ok(joined)
    }

    fn attach(&mut self, _topic: &str) -> Result<Joined> {
        let places = self.brokers.places()?;
        let joined = Joined {
            group_id: 0,
            topic_id: places.topic_id,
            partitions: u32::try_from(places.partitions.len()).unwrap_or(u32::MAX),
        };
        self.joined = Some((joined, String::new()));
        Ok(joined)
    }

    fn ends(&mut self) -> Result<Vec<PartitionEnds>> {
        let places = self.brokers.places_now()?;
        let ends = places.partitions.iter().map(|is| PartitionEnds {
            partition: is.partition,
            first_offset: is.first_offset,
            next_offset: is.next_offset,
        });
        Ok(ends.collect())
    }

    fn heartbeat(&mut self, released: &[i32]) -> Result<Vec<Assigned>> {
        let (joined, member) = self.member()?;
        let answer = self.brokers.ask_any(&Heartbeat {
            group_id: joined.group_id,
            member,
            released: released.to_vec(),
        })?;
        let assigned = answer.assigned.into_iter().map(|is| Assigned {
            partition: is.partition,
            generation: is.generation,
            committed: is.committed,
            wanted: is.wanted,
        });
        let assigned: Vec<Assigned> = assigned.collect();
        // What was fetched of a partition that is another member's now is never taken, so it would
        // be kept in memory for as long as the consumer lives.
        self.fetches
            .retain(|partition| assigned.iter().any(|is| is.partition == partition));
        Ok(assigned)
    }

    fn commit(&mut self, cursors: &[Cursor]) -> Result<Vec<i32>> {
        let (joined, member) = self.member()?;
        let answer = self.brokers.ask_any(&Commit {
            group_id: joined.group_id,
            member,
            cursors: cursors
                .iter()
                .map(|cursor| wire::Cursor {
                    partition: cursor.partition,
                    generation: cursor.generation,
                    committed: cursor.committed.unwrap_or(-1),
                    claimed_to: cursor.claimed_to.unwrap_or(-1),
                })
                .collect(),
        })?;
        Ok(answer.refused)
    }

    fn leave(&mut self) -> Result<()> {
        let (joined, member) = self.member()?;
        self.brokers.ask_any(&LeaveGroup {
            group_id: joined.group_id,
            member,
        })?;
        self.joined = None;
        Ok(())
    }

    fn skip_lost(&mut self, partition: i32, generation: i64) -> Result<i64> {
        let (joined, member) = self.member()?;
        let answer = self.brokers.ask_any(&SkipLost {
            group_id: joined.group_id,
            member,
            partition,
            generation,
        })?;
        Ok(answer.committed)
    }

    fn fetch(
        &mut self,
        positions: &[Position],
        most_bytes: usize,
        wait: Duration,
    ) -> std::result::Result<Vec<(i32, Fetched)>, FetchError> {
        let topic_id = self.member()?.0.topic_id;
        let share = (most_bytes / positions.len().max(1)).max(1);
        let until = Instant::now() + wait;
        loop {
            let mut unreachable = None;
            for from in positions {
                if let Err(error) = self.ask(topic_id, *from, share) {
                    unreachable = Some(error);
                }
            }
            let mut fetched = Vec::new();
            for (Position { partition, offset }, answer) in self.fetches.drain(positions) {
                let rows = match answer.and_then(|answer| stored(&answer, offset)) {
                    Ok(rows) => rows,
                    Err(error) if moved(&error) => {
                        // The position has not moved, so the next round of this loop sends the
                        // fetch again, to wherever the partition is by then.
                        self.brokers.forget_places();
                        unreachable = Some(error);
                        continue;
                    }
                    Err(error) => {
                        // Answers of other partitions that were taken in this round are dropped.
                        // Their positions have not moved, so they are fetched again.
                        let partition = Some(partition);
                        return Err(FetchError { error, partition });
                    }
                };
                if !rows.rows.is_empty() {
                    // The next rows of this partition come while these are worked on.
                    let next = Position {
                        partition,
                        offset: rows.next_offset,
                    };
                    // An error is not reported, because it is met again when these records are
                    // wanted.
                    self.ask(topic_id, next, share).ok();
                    fetched.push((partition, rows));
                }
            }
            let now = Instant::now();
            if !fetched.is_empty() || now >= until {
                return match unreachable {
                    Some(error) if fetched.is_empty() => Err(error.into()),
                    _ => Ok(fetched),
                };
            }
            // A partition out of reach has no fetch under way whose answer could end the wait, so
            // it is tried again after a moment.
            let left = until - now;
            let wait = match unreachable {
                Some(_) => RETRY.min(left),
                None => left,
            };
            self.fetches.wait(positions, wait);
        }
    }
}

/// Whether another broker may have the partition, or the same one have room later.
fn moved(error: &Error) -> bool {
    matches!(
        error.kind(),
        Code::Fenced | Code::ServerLost | Code::OutcomeUnknown | Code::Overloaded
    )
}

/// The rows of an answer, and the offset to fetch from next.
fn stored(answer: &wire::Fetched, offset: i64) -> Result<Fetched> {
    let rows = answer.stored_rows().collect::<Result<Vec<StoredRow>>>()?;
    let next_offset = rows
        .last()
        .map_or(offset, |row| row.base_offset + i64::from(row.count));
    // A broker answers a position that retention has removed with no rows. Without this error the
    // consumer would ask for it for ever.
    if offset < answer.first_offset && rows.is_empty() {
        let text = format_args!(
            "offset {offset} is before {}, the first",
            answer.first_offset
        );
        return Err(Error::new(Code::OffsetOutOfRange, text));
    }
    Ok(Fetched { rows, next_offset })
}
