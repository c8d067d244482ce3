//! Carries a producer's batches to brokers: one thread for all partitions of a cluster, with
//! several batches of each under way. A batch that is not acknowledged is kept, and sent again to
//! wherever its partition has moved.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dyno_random::backoff;
use parking_lot::Mutex;

use super::super::identity::Identity;
use super::super::send_queues::SendQueues;
use super::Brokers;
use super::flight::Flight;
use crate::error::Result;
use crate::wire::{NewProducer, Produce, Rest};

/// The most batches of one partition that are under way at once.
const IN_FLIGHT: usize = 5;
/// How often flights are looked at that were refused or wait.
const LOOK: Duration = Duration::from_millis(5);
/// The first and the longest pause before batches are sent again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// What one producer has under way at one cluster.
pub struct Transport {
    brokers: Brokers,
    /// The partitions of this cluster.
    share: Vec<usize>,
    /// One flight for each partition; those of other clusters stay empty.
    flights: Vec<Arc<Mutex<Flight>>>,
}

impl Transport {
    /// A transport of these partitions.
    pub fn new(brokers: Brokers, partitions: &[i32]) -> Transport {
        let share = partitions
            .iter()
            .map(|partition| usize::try_from(*partition));
        let share: Vec<usize> = share.flatten().collect();
        let count = share.iter().max().map_or(0, |last| last + 1);
        Transport {
            brokers,
            share,
            flights: std::iter::repeat_with(Arc::default).take(count).collect(),
        }
    }

    /// Sends until the producer is closed and nothing is left.
    pub fn run(mut self, queues: &Arc<SendQueues>) {
        let mut looked_at = Instant::now();
        loop {
            let busy = self
                .flights
                .iter()
                .any(|flight| !flight.lock().batches.is_empty());
            let until = busy.then(|| Instant::now() + LOOK);
            let taken = queues.pop(&self.share, IN_FLIGHT, until);
            let nothing = taken.is_none();
            if let Some(sealed) = taken {
                let at = usize::try_from(sealed.partition).unwrap_or(0);
                self.flights[at].lock().add(sealed);
                self.send(at, queues);
            }
            if nothing && !busy {
                return;
            }
            // While some partition always has a batch, `pop` never comes back without one. The look
            // must not depend on that, or a partition that has moved is not sent to again until
            // all others are quiet.
            if nothing || looked_at.elapsed() >= LOOK {
                looked_at = Instant::now();
                self.look_after(queues);
            }
        }
    }

    /// Mends flights that were refused and are answered, and sends what waits.
    fn look_after(&mut self, queues: &Arc<SendQueues>) {
        for at in 0..self.flights.len() {
            let now = Instant::now();
            let mut flight = self.flights[at].lock();
            if flight.broken && flight.unanswered == 0 {
                let ended = flight.mend(now);
                let pause = backoff(PAUSES.0, PAUSES.1, flight.failures);
                flight.not_before = Some(now + pause);
                drop(flight);
                // A refusal may mean that the partition has moved. Asking again too often is
                // prevented there.
                self.brokers.forget_places();
                ended
                    .into_iter()
                    .for_each(|(sealed, end)| queues.finish(sealed, end));
            } else {
                drop(flight);
            }
            self.send(at, queues);
        }
    }

    /// Sends the batches that were not sent yet, in order.
    fn send(&mut self, at: usize, queues: &Arc<SendQueues>) {
        loop {
            {
                let flight = self.flights[at].lock();
                let waits = flight.not_before.is_some_and(|then| Instant::now() < then);
                if flight.broken || waits || flight.batches.iter().all(|flying| flying.sent) {
                    return;
                }
            }
            if let Err(error) = self.send_one(at, queues) {
                let error = self.brokers.named(error);
                let mut flight = self.flights[at].lock();
                if let Some(flying) = flight.batches.iter_mut().find(|flying| !flying.sent) {
                    // Nothing was sent, so this says nothing about earlier attempts.
                    flying.error = Some(error);
                }
                flight.broken = true;
                return;
            }
        }
    }

    /// Sends the first batch that was not sent yet.
    fn send_one(&mut self, at: usize, queues: &Arc<SendQueues>) -> Result<()> {
        let partition = i32::try_from(at).unwrap_or(i32::MAX);
        let client = self.brokers.client_for(partition)?;
        let topic_id = self.brokers.places()?.topic_id;
        // The flight is not locked while the broker is asked for an id: the answers to requests
        // under way need the lock, on the thread that would read the id.
        let known = self.flights[at].lock().identity;
        let known = match known {
            Some(known) => known,
            None => Identity {
                producer_id: client.ask(&NewProducer {})?.producer_id,
                next_sequence: 0,
            },
        };
        let mut flight = self.flights[at].lock();
        let Some(flying) = flight.batches.iter_mut().find(|flying| !flying.sent) else {
            return Ok(());
        };
        let sequence = flying.sequence.unwrap_or(known.next_sequence);
        let fresh = flying.sequence.is_none();
        flying.sequence = Some(sequence);
        flying.sent = true;
        flying.error = None;
        let records = flying.sealed.records;
        let produce = Produce {
            topic_id,
            partition,
            producer_id: known.producer_id,
            first_sequence: sequence,
            count: u32::try_from(records).unwrap_or(u32::MAX),
            crc: flying.crc,
            codec: 0,
            body: Rest::one(flying.body.clone()),
        };
        flight.identity = Some(Identity {
            next_sequence: if fresh {
                sequence + records
            } else {
                known.next_sequence
            },
            ..known
        });
        // Counted before the request goes out, because its answer may come before `send` returns.
        flight.unanswered += 1;
        drop(flight);
        let flight = Arc::clone(&self.flights[at]);
        let queues = Arc::clone(queues);
        client.send(&produce, move |answer| {
            let answer = answer.map(|produced| produced.base_offset);
            let ended = flight.lock().answered(sequence, answer);
            if let Some((sealed, end)) = ended {
                queues.finish(sealed, end);
            }
        });
        Ok(())
    }
}
