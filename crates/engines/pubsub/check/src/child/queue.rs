//! Senders and workers of a queue, by the SQL functions.

use std::thread;
use std::time::Duration;

use dyno_postgres::Retry;

use super::events::Events;
use super::schedule::{Due, Schedule};
use super::sql::Link;
use super::{ChildError, SendJob, WorkJob};
use crate::clock::now_us;
use crate::history::{QueueClaim, What};
use crate::message;

const IDLE: Duration = Duration::from_millis(10);
const REFUSED_PAUSE: Duration = Duration::from_millis(100);
/// How many messages a worker claims at once.
const CLAIM: i32 = 20;

/// Sends until it is told to stop. Messages of a queue have no sequences, so a message that may
/// have been sent is not sent again.
pub fn send(job: &SendJob, mut events: Events) -> Result<(), ChildError> {
    let mut link = Link::new(&job.endpoint, &format!("check sender {}", job.producer))?;
    let mut schedule = Schedule::new(job.producer, 1, job.rate, job.value_bytes);
    while !events.stopping() {
        let due = schedule.due();
        for one in &due {
            events.add(What::Send {
                fingerprint: one.fingerprint,
                due_us: one.due_us,
            })?;
        }
        events.flush()?;
        for batch in due.chunks(20) {
            send_batch(job, &mut link, batch, &mut events)?;
        }
        thread::sleep(IDLE);
    }
    Ok(())
}

fn send_batch(
    job: &SendJob,
    link: &mut Link,
    batch: &[Due],
    events: &mut Events,
) -> Result<(), ChildError> {
    let values: Vec<&[u8]> = batch.iter().map(|one| one.value.as_slice()).collect();
    let answer = link.ask(|client| {
        let row = client.query_one(
            "SELECT pubsub.queue_send_batch($1, $2)",
            &[&job.queue, &values],
        )?;
        Ok(row.get::<_, Vec<i64>>(0))
    });
    match answer {
        // The queue numbers the messages in the order of the array.
        Ok(ids) => {
            for (one, id) in batch.iter().zip(ids) {
                let identity = one.fingerprint.identity;
                events.add(What::Acknowledged {
                    identity,
                    offset: id,
                })?;
            }
        }
        Err(refusal) if refusal.retry == Retry::Never => {
            return Err(ChildError::refused("send to the queue")(refusal));
        }
        Err(refusal) => {
            // While the server is away every attempt fails at once. The pause keeps the history
            // from filling up with failures.
            thread::sleep(REFUSED_PAUSE);
            for one in batch {
                let identity = one.fingerprint.identity;
                events.add(match refusal.retry {
                    Retry::Safe => What::Failed(identity),
                    Retry::Unknown | Retry::Never => What::Unknown(identity),
                })?;
            }
        }
    }
    Ok(events.flush()?)
}

/// Claims messages and acknowledges them without any work, until it is told to stop.
pub fn work(job: &WorkJob, mut events: Events) -> Result<(), ChildError> {
    let mut link = Link::new(&job.endpoint, &format!("check worker {}", job.worker))?;
    while !events.stopping() {
        let claimed = claim(job, &mut link, &mut events)?;
        if claimed.is_empty() {
            thread::sleep(IDLE);
            continue;
        }
        let ids: Vec<i64> = claimed.iter().map(|(id, _)| *id).collect();
        let claims: Vec<i64> = claimed.iter().map(|(_, claim)| *claim).collect();
        let asked_us = now_us();
        let answer = link.ask(|client| {
            let row = client.query_one(
                "SELECT pubsub.queue_ack($1, $2, $3)",
                &[&job.queue, &ids, &claims],
            )?;
            Ok(row.get::<_, Vec<i64>>(0))
        });
        match answer {
            Ok(refused) => {
                for id in ids {
                    let accepted = !refused.contains(&id);
                    events.add(What::Done {
                        id,
                        asked_us,
                        accepted,
                    })?;
                }
                events.flush()?;
            }
            Err(refusal) if refusal.retry == Retry::Never => {
                return Err(ChildError::refused("say that messages are done")(refusal));
            }
            // The messages are delivered again if they were not done.
            Err(_) => thread::sleep(IDLE),
        }
    }
    Ok(())
}

/// Claims messages, and returns their numbers and claims.
fn claim(
    job: &WorkJob,
    link: &mut Link,
    events: &mut Events,
) -> Result<Vec<(i64, i64)>, ChildError> {
    let asked_us = now_us();
    let answer = link.ask(|client| {
        client.query(
            "SELECT message_id, claim, attempts, payload FROM pubsub.queue_claim($1, $2)",
            &[&job.queue, &CLAIM],
        )
    });
    let rows = match answer {
        Ok(rows) => rows,
        Err(refusal) if refusal.retry == Retry::Never => {
            return Err(ChildError::refused("claim messages")(refusal));
        }
        Err(_) => return Ok(Vec::new()),
    };
    let mut claimed = Vec::new();
    for row in rows {
        let (id, claim): (i64, i64) = (row.get(0), row.get(1));
        let content = message::read(row.get(3))
            .map_err(|error| ChildError::Damaged(format!("queue message {id}: {error}")))?;
        events.add(What::Claimed(QueueClaim {
            worker: job.worker,
            id,
            attempt: row.get::<_, i32>(2).unsigned_abs(),
            asked_us,
            fingerprint: content.fingerprint,
        }))?;
        claimed.push((id, claim));
    }
    events.flush()?;
    Ok(claimed)
}
