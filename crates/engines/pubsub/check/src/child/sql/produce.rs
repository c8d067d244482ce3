//! A producer that calls `pubsub.send_batch` with its own sequences, so that it may repeat whatever
//! it does not know the outcome of.

use std::thread;
use std::time::Duration;

use dyno_postgres::Retry;

use super::Link;
use crate::child::events::Events;
use crate::child::schedule::{Due, Schedule};
use crate::child::{ChildError, ProduceJob};
use crate::history::What;

const IDLE: Duration = Duration::from_millis(5);
/// How long an answer is waited for after the checker asked to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(30);

/// Sends until it is told to stop.
pub fn produce(job: &ProduceJob, mut events: Events) -> Result<(), ChildError> {
    let mut link = Link::new(&job.endpoint, &format!("check producer {}", job.producer))?;
    let id: i64 = link
        .insist(
            |client| {
                Ok(client
                    .query_one("SELECT pubsub.new_producer()", &[])?
                    .get(0))
            },
            |_| events.stopping(),
        )
        .map_err(ChildError::refused("ask for a producer's number"))?;
    let mut schedule = Schedule::new(job.producer, job.partitions, job.rate, job.value_bytes);
    while !events.stopping() {
        let due = schedule.due();
        for one in &due {
            events.add(What::Send {
                fingerprint: one.fingerprint,
                due_us: one.due_us,
            })?;
        }
        events.flush()?;
        for partition in 0..job.partitions {
            let batch: Vec<&Due> = due
                .iter()
                .filter(|one| one.fingerprint.identity.partition == partition)
                .collect();
            if !batch.is_empty() {
                send(job, &mut link, id, &batch, &mut events)?;
            }
        }
        if due.is_empty() {
            thread::sleep(IDLE);
        }
    }
    Ok(())
}

fn send(
    job: &ProduceJob,
    link: &mut Link,
    id: i64,
    batch: &[&Due],
    events: &mut Events,
) -> Result<(), ChildError> {
    let keys: Vec<&[u8]> = batch.iter().map(|one| one.key.as_slice()).collect();
    let values: Vec<&[u8]> = batch.iter().map(|one| one.value.as_slice()).collect();
    let first = batch[0].fingerprint.identity;
    let (part, sequence) = (first.partition as i32, first.sequence as i64);
    let (id, sequence) = if job.careless {
        (None, None)
    } else {
        (Some(id), Some(sequence))
    };
    let answer = link.insist(
        |client| {
            let row = client.query_one(
                "SELECT first_offset FROM pubsub.send_batch($1, $2, $3, NULL, $4, $5, $6)",
                &[&job.topic, &values, &keys, &part, &id, &sequence],
            )?;
            Ok(row.get::<_, i64>(0))
        },
        |waited| events.stopping() && waited > STOP_PATIENCE,
    );
    match answer {
        Ok(offset) => {
            for (one, offset) in batch.iter().zip(offset..) {
                let identity = one.fingerprint.identity;
                events.add(What::Acknowledged { identity, offset })?;
            }
            Ok(events.flush()?)
        }
        Err(refusal) if refusal.retry == Retry::Never => {
            Err(ChildError::refused("send a batch")(refusal))
        }
        // The outcome is unknown, which the history expresses by the missing answer.
        Err(_) => Ok(()),
    }
}
