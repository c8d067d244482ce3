//! Consumers that are behind what is in memory. Their rows are read from the database.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dyno_pubsub::wire::{Fetched, Rest, RowHead};
use dyno_pubsub::{Code, Error, StoredRow, TopicPartition};

use crate::backlog::{Backlog, FetchCharge, FetchTask};
use crate::chunk::Chunk;
use crate::counters::{Counters, add};
use crate::link::Link;
use crate::partition::Partition;
use crate::tail::Waiter;

/// The most bytes of one fetch, except that a row that alone is longer comes all the same.
pub const MOST_BYTES: usize = 4 << 20;
/// How long a fetch waits for memory that other connections hold.
pub const ROOM_WAIT: Duration = Duration::from_secs(5);

/// A fetch whose rows are not in memory.
pub struct Behind {
    pub partition: Arc<Partition>,
    pub waiter: Waiter,
    /// When it joined the list.
    pub since: Instant,
}

impl Behind {
    /// A fetch that joins the list now.
    pub fn new(partition: Arc<Partition>, waiter: Waiter) -> Behind {
        Behind {
            partition,
            waiter,
            since: Instant::now(),
        }
    }

    /// Refuses the fetch, because too many wait already.
    pub fn refuse(&self) {
        let text = "too many requests wait for the database";
        self.waiter.ack.refused(&Error::new(Code::Overloaded, text));
    }
}

/// A thread that reads for consumers that are behind.
pub struct Reader {
    pub jobs: Arc<Backlog>,
    pub link: Link,
    pub counters: Arc<Counters>,
}

impl Reader {
    /// Reads until the list is stopped.
    pub fn run(mut self) {
        while let Some(work) = self.jobs.next() {
            let (job, bytes, charge) = match work {
                FetchTask::Read(job, bytes, charge) => (job, bytes, charge),
                FetchTask::Late(job) => {
                    let text =
                        "other consumers that are behind hold the memory that there is for them";
                    job.waiter.ack.refused(&Error::new(Code::Overloaded, text));
                    continue;
                }
            };
            let ack = job.waiter.ack.clone();
            if let Err(error) = self.read(job, bytes, charge) {
                ack.refused(&error);
            }
        }
    }

    fn read(
        &mut self,
        job: Behind,
        most_bytes: usize,
        mut charge: FetchCharge,
    ) -> Result<(), Error> {
        let Behind {
            partition, waiter, ..
        } = job;
        let TopicPartition {
            topic_id,
            partition: number,
        } = partition.key;
        let found = self
            .link
            .run(|connection| connection.fetch(topic_id, number, waiter.offset, most_bytes))?;
        if found.rows.is_empty() {
            // The database has no rows there either, so the position is the end of the log.
            let mut tail = partition.tail.lock();
            let first_offset = tail.offsets().0;
            tail.update_offsets(first_offset, found.next_offset);
            drop(tail);
            return self.wait_at_end(&partition, waiter);
        }
        if found.next_offset >= partition.tail.lock().offsets().1 {
            self.look_at_end(&partition)?;
        }
        let bytes = found.rows.iter().map(|row| row.body.len()).sum();
        add(&self.counters.read_bytes, bytes);
        if bytes > most_bytes {
            // A row is never cut, so one that alone is longer than there is room for passes all the
            // same.
            charge = self.jobs.charge_for(&waiter.reading, bytes);
        } else {
            charge.shrink_to(bytes);
        }
        let mut bodies = Vec::with_capacity(bytes);
        let heads: Vec<RowHead> = found.rows.iter().map(head).collect();
        for row in &found.rows {
            bodies.extend_from_slice(&row.body);
        }
        // The rows exist twice here, in the driver's buffer and in `bodies`. The former goes before
        // the answer waits in the outbox, because only one copy is charged.
        drop(found);
        let mut parts = Vec::new();
        if let Some(chunk) = Chunk::new(&heads, bodies, charge) {
            chunk.push_rows(waiter.offset, usize::MAX, true, &mut parts);
        }
        let (first_offset, next_offset) = partition.tail.lock().offsets();
        waiter.ack.answer(&Fetched {
            first_offset,
            next_offset,
            rows: Rest(parts),
        });
        Ok(())
    }

    /// Learns how far the log goes, for rows that reach what this broker takes for its end. Others
    /// may have appended since, and a consumer that is told that the log ends where it reads may
    /// take what it has for all of it.
    fn look_at_end(&mut self, partition: &Partition) -> Result<(), Error> {
        let ends = self.link.run(|connection| connection.ends(partition.key))?;
        if let Some((first_offset, next_offset)) = ends {
            let mut tail = partition.tail.lock();
            tail.update_offsets(first_offset, next_offset);
        }
        Ok(())
    }

    /// Lets the fetch wait at the end of the log. If the log has grown beyond what is in memory
    /// meanwhile, the client is sent away with an empty answer, and asks again.
    fn wait_at_end(&self, partition: &Partition, waiter: Waiter) -> Result<(), Error> {
        if let Some(waiter) = partition.fetch(waiter) {
            let (first_offset, next_offset) = partition.tail.lock().offsets();
            waiter.ack.answer(&Fetched {
                first_offset,
                next_offset,
                rows: Rest::default(),
            });
        }
        Ok(())
    }
}

fn head(row: &StoredRow) -> RowHead {
    RowHead {
        base_offset: row.base_offset,
        count: row.count.cast_unsigned(),
        bytes: row.body.len() as u32,
        first_time_us: row.first_time_us,
        last_time_us: row.last_time_us,
        appended_at_us: row.appended_at_us,
        crc: row.crc,
        codec: row.flags as u8,
    }
}
