//! A consumer of the library.

use std::collections::BTreeMap;
use std::time::Duration;

use dyno_pubsub::{Code, Consumer, ConsumerOptions, Error, Message, Ownership, Retry, Start};

use super::open;
use crate::child::events::Events;
use crate::child::{ChildError, ConsumeJob};
use crate::clock::now_us;
use crate::history::{Commit, Delivery, What};
use crate::message;

const WAIT: Duration = Duration::from_millis(100);
/// It commits after this many polls. What is not committed when it dies is delivered again.
const ROUNDS: u64 = 4;

/// Reads and commits until it is told to stop.
pub fn consume(job: &ConsumeJob, mut events: Events) -> Result<(), ChildError> {
    let options = ConsumerOptions {
        member: Some(format!("m{}", job.member)),
        start: Start::Earliest,
        lease: Duration::from_millis(job.lease_ms),
        ..ConsumerOptions::default()
    };
    let opened = open(&events, "open a consumer", || {
        Consumer::open(
            job.endpoint.as_str(),
            &job.topic,
            &job.group_name,
            options.clone(),
        )
    })?;
    let Some(consumer) = opened else {
        return Ok(());
    };
    let mut member = Member {
        consumer,
        job,
        open: BTreeMap::new(),
    };
    let mut rounds: u64 = 0;
    while !events.stopping() {
        match member.consumer.poll(WAIT) {
            Ok(messages) => member.deliver(&messages, &mut events)?,
            Err(error) => passing("poll", error)?,
        }
        rounds += 1;
        if rounds.is_multiple_of(ROUNDS) {
            member.commit(&mut events)?;
        }
    }
    member.commit(&mut events)?;
    // A member that cannot leave keeps its partitions until its lease ends.
    let _ = member.consumer.close();
    Ok(())
}

struct Member<'a> {
    consumer: Consumer,
    job: &'a ConsumeJob,
    /// What was delivered and not committed: for each partition its generation and the next offset.
    open: BTreeMap<i32, (Ownership, i64)>,
}

impl Member<'_> {
    /// The partition as it is owned, or in generation 0 if it was taken away.
    fn ownership(&self, partition: i32) -> Ownership {
        let mut assigned = self.consumer.assigned().into_iter();
        let found = assigned.find(|owned| owned.partition == partition);
        found.unwrap_or(Ownership {
            partition,
            generation: 0,
        })
    }

    fn deliver(&mut self, messages: &[Message], events: &mut Events) -> Result<(), ChildError> {
        for one in messages {
            let content = message::read(&one.value).map_err(|error| {
                ChildError::Damaged(format!(
                    "offset {} of partition {}: {error}",
                    one.offset, one.partition
                ))
            })?;
            let ownership = self.ownership(one.partition);
            events.add(What::Delivered(Delivery {
                group: self.job.group,
                member: self.job.member,
                generation: ownership.generation,
                offset: one.offset,
                partition: one.partition.unsigned_abs(),
                fingerprint: content.fingerprint,
            }))?;
            self.open.insert(one.partition, (ownership, one.offset + 1));
        }
        Ok(events.flush()?)
    }

    fn commit(&mut self, events: &mut Events) -> Result<(), ChildError> {
        // A partition that was taken away, or won again under another generation, is not this
        // member's to commit.
        let owned = self.consumer.assigned();
        self.open
            .retain(|_, (ownership, _)| owned.contains(ownership));
        if self.open.is_empty() {
            return Ok(());
        }
        let asked_us = now_us();
        // The events say what is accepted after the call, by what the consumer still owns: a
        // partition whose commit was refused is not assigned any more.
        match self.consumer.commit() {
            Ok(()) => {}
            // The others are committed; those that were refused are not assigned any more.
            Err(error) if error.kind() == Code::WrongGeneration => {}
            Err(error) => return passing("commit", error),
        }
        let owned = self.consumer.assigned();
        for (ownership, next) in std::mem::take(&mut self.open).into_values() {
            events.add(What::Commit(Commit {
                group: self.job.group,
                member: self.job.member,
                generation: ownership.generation,
                partition: ownership.partition.unsigned_abs(),
                next,
                asked_us,
                accepted: owned.contains(&ownership),
            }))?;
        }
        Ok(events.flush()?)
    }
}

/// Returns only those errors that a client cannot wait out.
fn passing(action: &'static str, error: Error) -> Result<(), ChildError> {
    match error.retry() {
        Retry::Never => Err(ChildError::refused(action)(error)),
        Retry::Safe | Retry::Unknown => Ok(()),
    }
}
