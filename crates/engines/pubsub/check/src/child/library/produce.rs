//! A producer of the library: it sends on schedule, and tells each receipt's outcome as it comes.

use std::thread;
use std::time::Duration;

use dyno_pubsub::{Producer, ProducerOptions, Receipt, Retry};

use super::open;
use crate::child::events::Events;
use crate::child::schedule::Schedule;
use crate::child::{ChildError, ProduceJob};
use crate::history::What;
use crate::message::Identity;

const IDLE: Duration = Duration::from_millis(2);
/// How long the library tries. A server is away for seconds at most.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(40);

/// Sends until it is told to stop.
pub fn produce(job: &ProduceJob, mut events: Events) -> Result<(), ChildError> {
    let options = ProducerOptions {
        delivery_timeout: DELIVERY_TIMEOUT,
        ..ProducerOptions::default()
    };
    let opened = open(&events, "open a producer", || {
        Producer::open(job.endpoint.as_str(), &job.topic, options.clone())
    })?;
    let Some(producer) = opened else {
        return Ok(());
    };
    let mut schedule = Schedule::new(job.producer, job.partitions, job.rate, job.value_bytes);
    let mut waiting = Vec::new();
    while !events.stopping() {
        let due = schedule.due();
        for one in &due {
            events.add(What::Send {
                fingerprint: one.fingerprint,
                due_us: one.due_us,
            })?;
        }
        // The checker must know of a message before the log can have it. Otherwise a kill right
        // after the send would leave a message that seems invented.
        events.flush()?;
        for one in &due {
            let identity = one.fingerprint.identity;
            match producer.send(Some(&one.key), &one.value) {
                Ok(receipt) => waiting.push((identity, receipt)),
                // The record was not taken.
                Err(error) if error.retry() == Retry::Safe => events.add(What::Failed(identity))?,
                Err(error) => return Err(ChildError::refused("send")(error)),
            }
        }
        tell(&mut waiting, &mut events)?;
        if due.is_empty() {
            thread::sleep(IDLE);
        }
    }
    // Failures are reported by the receipts.
    let _ = producer.flush();
    tell(&mut waiting, &mut events)
}

/// Records the outcomes that are known by now.
fn tell(waiting: &mut Vec<(Identity, Receipt)>, events: &mut Events) -> Result<(), ChildError> {
    let mut still = Vec::with_capacity(waiting.len());
    for (identity, receipt) in waiting.drain(..) {
        match receipt.outcome() {
            None => still.push((identity, receipt)),
            Some(Ok(place)) => events.add(What::Acknowledged {
                identity,
                offset: place.offset,
            })?,
            Some(Err(error)) => events.add(match error.retry() {
                Retry::Unknown => What::Unknown(identity),
                Retry::Safe | Retry::Never => What::Failed(identity),
            })?,
        }
    }
    *waiting = still;
    Ok(events.flush()?)
}
