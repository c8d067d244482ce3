//! Which partitions this broker holds. Each partition is leased, and every change of its holder
//! raises its epoch, which every append checks. So a broker that was taken for dead can append
//! nothing more.
//!
//! Living brokers are those whose lease session the server shows. Each takes its fair share of the
//! partitions that are free, and gives back what it has beyond it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dyno_pubsub::record::Codec;
use dyno_pubsub::{Error, Result, TopicPartition};
use parking_lot::{Condvar, Mutex};

use crate::backlog::Backlog;
use crate::behind::Behind;
use crate::counters::{Counters, add};
use crate::error::not_mine;
use crate::hosted::{AppendQueues, HostedPartitions};
use crate::link::Link;
use crate::memory::Memory;
use crate::partition::Partition;

/// The prefix of the lease sessions' names.
pub const SESSION: &str = "dyno-broker ";
/// How often the broker looks for records that were appended without it, while consumers wait.
const LOOK: Duration = Duration::from_millis(200);
/// How long a partition that is given back may still append what waits.
const DRAIN: Duration = Duration::from_millis(500);

/// Renews only leases of partitions that are held here. A lease that was taken while the answer got
/// lost, or whose partition was closed, has to end, or no broker would ever serve the partition.
const RENEW: &str = "\
    WITH mine AS (SELECT p.topic_id, p.partition FROM pubsub.partitions AS p \
                    JOIN unnest($3::int[], $4::int[], $5::bigint[]) AS held (topic_id, partition, epoch) \
                      ON p.topic_id = held.topic_id AND p.partition = held.partition AND p.epoch = held.epoch \
                   WHERE p.broker = $1 AND p.lease_until > clock_timestamp() ORDER BY 1, 2 FOR UPDATE OF p) \
    UPDATE pubsub.partitions AS p SET lease_until = clock_timestamp() + $2::bigint * interval '1 millisecond' \
      FROM mine WHERE p.topic_id = mine.topic_id AND p.partition = mine.partition \
    RETURNING p.topic_id, p.partition, p.first_offset";
const COUNT: &str = "\
    SELECT (SELECT count(*) FROM pubsub.partitions), \
           (SELECT count(DISTINCT application_name) FROM pg_stat_activity \
             WHERE datname = current_database() AND starts_with(application_name, $1))";
const TAKE: &str = "\
    WITH free AS (SELECT topic_id, partition FROM pubsub.partitions \
                   WHERE lease_until IS NULL OR lease_until < clock_timestamp() \
                   ORDER BY 1, 2 LIMIT $4 FOR UPDATE SKIP LOCKED) \
    UPDATE pubsub.partitions AS p \
       SET epoch = p.epoch + 1, broker = $1, broker_address = $2, \
           lease_until = clock_timestamp() + $3::bigint * interval '1 millisecond' \
      FROM free, pubsub.topics AS t \
     WHERE p.topic_id = free.topic_id AND p.partition = free.partition AND t.topic_id = p.topic_id \
    RETURNING p.topic_id, p.partition, p.epoch, p.first_offset, p.next_offset, t.compression";
const GIVE_BACK: &str = "\
    UPDATE pubsub.partitions SET broker = NULL, broker_address = NULL, lease_until = NULL \
     WHERE broker = $1 AND topic_id = $2 AND partition = $3";
const LOOK_AT: &str = "\
    SELECT topic_id, partition, first_offset, next_offset FROM pubsub.partitions WHERE broker = $1";

/// The thread that holds leases.
pub struct Leases {
    pub link: Link,
    /// This broker's name, which no other broker ever had.
    pub broker: String,
    /// The address that clients are told to connect to.
    pub address: String,
    pub lease: Duration,
    pub hosted: Arc<HostedPartitions>,
    pub append_queues: Arc<AppendQueues>,
    pub memory: Memory,
    pub counters: Arc<Counters>,
    pub behind: Arc<Backlog>,
    pub signal: Arc<Signal>,
    /// Where the tail of a partition ended at the last look, if it was behind the database then.
    pub ended: HashMap<TopicPartition, i64>,
}

/// Wakes the thread, or stops it.
#[derive(Default)]
pub struct Signal {
    woken: Mutex<bool>,
    wakes: Condvar,
    stopped: AtomicBool,
}

impl Signal {
    /// Says that something has changed, so that the thread looks at once.
    pub fn wake(&self) {
        *self.woken.lock() = true;
        self.wakes.notify_all();
    }

    /// Ends the thread, which gives its leases back.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.wake();
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Waits for a call, and says whether one came before `wait` had passed.
    pub fn wait(&self, wait: Duration) -> bool {
        let mut woken = self.woken.lock();
        self.wakes.wait_while_for(&mut woken, |woken| !*woken, wait);
        std::mem::take(&mut woken)
    }
}

impl Leases {
    /// Renews, takes and gives back leases until it is stopped. Then it gives all of them back.
    pub fn run(mut self) {
        let mut held_until = Instant::now();
        let mut next_renewal = Instant::now();
        while !self.signal.is_stopped() {
            let now = Instant::now();
            if now >= next_renewal {
                if self.renew_and_share().is_ok() {
                    // Counted from before the request, so the lease ends here before it ends for
                    // others.
                    held_until = now + self.lease;
                }
                next_renewal = now + self.lease / 3;
            }
            // The server could not be asked for a whole lease, so other brokers may hold the
            // partitions by now. A tail that is still served would show consumers an end of the log
            // that is not one.
            if Instant::now() >= held_until {
                self.lose_all();
            }
            // If a look fails, the next one makes up for it.
            let _ = self.look();
            if self.signal.wait(LOOK.min(self.lease / 3)) {
                next_renewal = Instant::now();
            }
        }
        for partition in self.hosted.all() {
            // A lease that cannot be given back ends by itself.
            let _ = self.give_back(&partition);
        }
    }

    fn renew_and_share(&mut self) -> Result<()> {
        self.renew()?;
        let (all, brokers) = self.count()?;
        let share = all.div_ceil(brokers.max(1));
        let has = self.hosted.len();
        if has < share {
            self.acquire(share - has)?;
        }
        for partition in self.hosted.all().into_iter().skip(share) {
            self.give_back(&partition)?;
        }
        self.memory.divide_tails(self.hosted.len());
        Ok(())
    }

    fn renew(&mut self) -> Result<()> {
        let lease_ms = self.lease.as_millis() as i64;
        let broker = &self.broker;
        let mut hosted = self.hosted.all();
        hosted.retain(|partition| !partition.is_closed());
        let topics: Vec<i32> = hosted
            .iter()
            .map(|partition| partition.key.topic_id)
            .collect();
        let numbers: Vec<i32> = hosted
            .iter()
            .map(|partition| partition.key.partition)
            .collect();
        let epochs: Vec<i64> = hosted.iter().map(|partition| partition.epoch).collect();
        let rows = self.link.run(|connection| {
            connection
                .client()
                .query(RENEW, &[broker, &lease_ms, &topics, &numbers, &epochs])
                .map_err(Error::statement("renew leases"))
        })?;
        let mut renewed = HashSet::new();
        for row in rows {
            let key = TopicPartition {
                topic_id: row.get(0),
                partition: row.get(1),
            };
            renewed.insert(key);
            if let Some(partition) = self.hosted.get(key) {
                partition.tail.lock().update_first_offset(row.get(2));
            }
        }
        for partition in self.hosted.all() {
            if !renewed.contains(&partition.key) || partition.is_closed() {
                self.lose(&partition);
            }
        }
        Ok(())
    }

    fn count(&mut self) -> Result<(usize, usize)> {
        let row = self.link.run(|connection| {
            connection
                .client()
                .query_one(COUNT, &[&SESSION])
                .map_err(Error::statement("count brokers"))
        })?;
        let number = |at| usize::try_from(row.get::<_, i64>(at)).unwrap_or(0);
        Ok((number(0), number(1)))
    }

    fn acquire(&mut self, most: usize) -> Result<()> {
        let lease_ms = self.lease.as_millis() as i64;
        let most = most as i64;
        let (broker, address) = (&self.broker, &self.address);
        let rows = self.link.run(|connection| {
            connection
                .client()
                .query(TAKE, &[broker, address, &lease_ms, &most])
                .map_err(Error::statement("take leases"))
        })?;
        for row in rows {
            let key = TopicPartition {
                topic_id: row.get(0),
                partition: row.get(1),
            };
            let codec = Codec::named(row.get(5))?;
            let queue = match self.append_queues.queue(self.hosted.len()) {
                Ok(queue) => queue,
                Err(_) => {
                    // Without a thread the partition cannot be served here. Another broker may have
                    // one.
                    self.give_up(key)?;
                    continue;
                }
            };
            let offsets = (row.get(3), row.get(4));
            let partition = Partition::new(key, row.get(2), codec, offsets, queue);
            self.hosted.insert(Arc::new(partition));
            add(&self.counters.leases_taken, 1);
        }
        Ok(())
    }

    /// Appends what waits, and gives the lease back.
    fn give_back(&mut self, partition: &Arc<Partition>) -> Result<()> {
        let moved = not_mine(partition.key);
        partition.refuse_appends(&moved);
        let end = Instant::now() + DRAIN.min(self.lease / 3);
        while !partition.is_drained() && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        self.hosted.remove(partition.key);
        let given = self.give_up(partition.key);
        partition.close(&moved);
        given
    }

    fn give_up(&mut self, key: TopicPartition) -> Result<()> {
        let broker = &self.broker;
        self.link.run(|connection| {
            connection
                .client()
                .execute(GIVE_BACK, &[broker, &key.topic_id, &key.partition])
                .map(|_| ())
                .map_err(Error::statement("give a lease back"))
        })
    }

    fn lose(&self, partition: &Partition) {
        self.hosted.remove(partition.key);
        partition.close(&not_mine(partition.key));
        add(&self.counters.leases_lost, 1);
    }

    fn lose_all(&self) {
        for partition in self.hosted.all() {
            self.lose(&partition);
        }
    }

    /// Finds out about records that were appended without this broker, if a client waits for any. A
    /// tail that is behind at two looks and did not move between them is not behind because of a
    /// commit under way.
    fn look(&mut self) -> Result<()> {
        let all = self.hosted.all();
        if all
            .iter()
            .all(|partition| partition.tail.lock().waiters() == 0)
        {
            return Ok(());
        }
        let broker = &self.broker;
        let rows = self.link.run(|connection| {
            connection
                .client()
                .query(LOOK_AT, &[broker])
                .map_err(Error::statement("look at partitions"))
        })?;
        let before = std::mem::take(&mut self.ended);
        for row in rows {
            let key = TopicPartition {
                topic_id: row.get(0),
                partition: row.get(1),
            };
            let Some(partition) = self.hosted.get(key) else {
                continue;
            };
            let mut tail = partition.tail.lock();
            let (_, end) = tail.offsets();
            let stored: i64 = row.get(3);
            if stored <= end {
                continue;
            }
            if before.get(&key) != Some(&end) {
                self.ended.insert(key, end);
                continue;
            }
            tail.update_offsets(row.get(2), stored);
            for waiter in tail.take_waiters() {
                let job = Behind::new(Arc::clone(&partition), waiter);
                if let Err(job) = self.behind.push(job) {
                    job.refuse();
                }
            }
        }
        Ok(())
    }
}
