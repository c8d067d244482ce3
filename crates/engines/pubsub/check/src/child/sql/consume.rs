//! A consumer that calls `pubsub.poll` and `pubsub.commit`.
//!
//! An answer to `poll` that was lost may have held messages, which the server takes for delivered.
//! So a consumer that has lost an answer joins again, which sets what is delivered back to what is
//! committed.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use dyno_postgres::Retry;
use dyno_pubsub::Ownership;

use super::Link;
use super::link::Refusal;
use crate::child::events::Events;
use crate::child::{ChildError, ConsumeJob};
use crate::clock::now_us;
use crate::history::{Commit, Delivery, What};
use crate::message;

const IDLE: Duration = Duration::from_millis(20);
/// It commits after this many polls. What is not committed when it dies is delivered again.
const ROUNDS: u64 = 4;
/// The member's lease lapsed, or it never joined.
const UNKNOWN_MEMBER: &str = "DP009";
/// The partition is another's by now.
const WRONG_GENERATION: &str = "DP003";

/// Reads and commits until it is told to stop.
pub fn consume(job: &ConsumeJob, mut events: Events) -> Result<(), ChildError> {
    let mut member = Member {
        link: Link::new(&job.endpoint, &format!("check consumer {}", job.member))?,
        name: format!("m{}", job.member),
        job,
        joined: false,
        rounds: 0,
        open: BTreeMap::new(),
    };
    while !events.stopping() {
        match member.round(&mut events)? {
            Some(0) => thread::sleep(IDLE),
            Some(_) => {}
            None => {
                member.joined = job.careless && member.joined;
                thread::sleep(IDLE);
            }
        }
    }
    let args = (&job.topic, &job.group_name, &member.name);
    // A member that cannot leave keeps its partitions until its lease ends.
    let _ = member.link.ask(|client| {
        client.execute(
            "SELECT pubsub.leave_group($1, $2, $3)",
            &[args.0, args.1, args.2],
        )
    });
    Ok(())
}

struct Member<'a> {
    link: Link,
    name: String,
    job: &'a ConsumeJob,
    joined: bool,
    rounds: u64,
    /// What was delivered and not committed: for each ownership the next offset.
    open: BTreeMap<Ownership, i64>,
}

/// A message as `pubsub.poll` returns it.
struct Polled {
    owned: Ownership,
    offset: i64,
    value: Vec<u8>,
}

impl Member<'_> {
    /// Joins if it has to, polls, records, and commits. Returns how many messages there were, or
    /// `None` if an answer is missing.
    fn round(&mut self, events: &mut Events) -> Result<Option<usize>, ChildError> {
        if !self.joined && settled(self.join(), "join the group")?.is_none() {
            return Ok(None);
        }
        if !self.joined {
            self.joined = true;
            self.open.clear();
        }
        let Some(polled) = settled(self.poll(), "poll")? else {
            return Ok(None);
        };
        let mut next = BTreeMap::new();
        for one in &polled {
            let content = message::read(&one.value).map_err(|error| {
                ChildError::Damaged(format!(
                    "offset {} of partition {}: {error}",
                    one.offset, one.owned.partition
                ))
            })?;
            events.add(What::Delivered(Delivery {
                group: self.job.group,
                member: self.job.member,
                generation: one.owned.generation,
                offset: one.offset,
                partition: one.owned.partition.unsigned_abs(),
                fingerprint: content.fingerprint,
            }))?;
            next.insert(one.owned, one.offset + 1);
        }
        events.flush()?;
        self.open.extend(next);
        self.rounds += 1;
        if !polled.is_empty() && !self.rounds.is_multiple_of(ROUNDS) {
            return Ok(Some(polled.len()));
        }
        while let Some((owned, next)) = self.open.pop_first() {
            if !self.commit(owned, next, events)? {
                return Ok(None);
            }
        }
        Ok(Some(polled.len()))
    }

    fn join(&mut self) -> Result<(), Refusal> {
        let (job, name) = (self.job, &self.name);
        let lease_ms = job.lease_ms as i64;
        self.link.ask(|client| {
            client.execute(
                "SELECT pubsub.join_group($1, $2, $3, $4, 'earliest')",
                &[&job.topic, &job.group_name, name, &lease_ms],
            )
        })?;
        Ok(())
    }

    fn poll(&mut self) -> Result<Vec<Polled>, Refusal> {
        let (job, name) = (self.job, &self.name);
        let rows = self.link.ask(|client| {
            client.query(
                "SELECT partition, generation, message_offset, value FROM pubsub.poll($1, $2, $3, 300)",
                &[&job.topic, &job.group_name, name],
            )
        })?;
        Ok(rows
            .iter()
            .map(|row| Polled {
                owned: Ownership {
                    partition: row.get(0),
                    generation: row.get(1),
                },
                offset: row.get(2),
                value: row.get(3),
            })
            .collect())
    }

    /// Commits one partition. Returns whether there was an answer; a refusal is one.
    fn commit(
        &mut self,
        owned: Ownership,
        next: i64,
        events: &mut Events,
    ) -> Result<bool, ChildError> {
        let (job, name) = (self.job, &self.name);
        let asked_us = now_us();
        let answer = self.link.ask(|client| {
            client.execute(
                "SELECT pubsub.commit($1, $2, $3, $4, $5, $6)",
                &[
                    &job.topic,
                    &job.group_name,
                    name,
                    &owned.partition,
                    &owned.generation,
                    &next,
                ],
            )
        });
        let accepted = match answer {
            Ok(_) => true,
            Err(refusal) if refusal.sqlstate == WRONG_GENERATION => false,
            Err(refusal) => return Ok(settled::<()>(Err(refusal), "commit")?.is_some()),
        };
        events.add(What::Commit(Commit {
            group: job.group,
            member: job.member,
            generation: owned.generation,
            partition: owned.partition.unsigned_abs(),
            next,
            asked_us,
            accepted,
        }))?;
        events.flush()?;
        Ok(true)
    }
}

/// Returns `None` for an error that passes by itself, and the others as errors.
fn settled<T>(answer: Result<T, Refusal>, action: &'static str) -> Result<Option<T>, ChildError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(refusal) if refusal.retry == Retry::Never && refusal.sqlstate != UNKNOWN_MEMBER => {
            Err(ChildError::refused(action)(refusal))
        }
        Err(_) => Ok(None),
    }
}
