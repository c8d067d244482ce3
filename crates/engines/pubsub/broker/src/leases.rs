//! Which partitions this broker holds. A broker has a lease, and holds partitions as long as that
//! lasts. Every change of a partition's holder raises its epoch, which every append checks. So a
//! broker that was taken for dead can append nothing more.
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

/// Extends this broker's lease. It has a row of its own: the rows of partitions are locked by every
/// transaction that sends, for as long as that stays open.
const RENEW: &str = "\
    UPDATE pubsub.brokers SET lease_until = clock_timestamp() + $2::bigint * interval '1 millisecond' \
     WHERE broker = $1 AND lease_until > clock_timestamp()";
const ENTER: &str = "\
    INSERT INTO pubsub.brokers AS b (broker, lease_until) \
    VALUES ($1, clock_timestamp() + $2::bigint * interval '1 millisecond') \
    ON CONFLICT (broker) DO UPDATE SET lease_until = excluded.lease_until";
/// Ends the leases that have lapsed. It waits for a broker that renews its lease at this moment,
/// and leaves that one then. So no partition is taken from a broker that goes on.
const EXPIRE: &str = "DELETE FROM pubsub.brokers WHERE lease_until < clock_timestamp()";
const LEAVE: &str = "DELETE FROM pubsub.brokers WHERE broker = $1";
const HELD: &str = "\
    SELECT topic_id, partition, epoch, first_offset FROM pubsub.partitions WHERE broker = $1";
const COUNT: &str = "\
    SELECT (SELECT count(*) FROM pubsub.partitions), \
           (SELECT count(DISTINCT application_name) FROM pg_stat_activity \
             WHERE datname = current_database() AND starts_with(application_name, $1))";
/// Takes partitions that no broker with a lease has. One that a transaction has locked is taken
/// later.
const TAKE: &str = "\
    WITH free AS (SELECT p.topic_id, p.partition FROM pubsub.partitions AS p \
                   WHERE NOT EXISTS (SELECT FROM pubsub.brokers AS b WHERE b.broker = p.broker) \
                   ORDER BY 1, 2 LIMIT $3 FOR UPDATE OF p SKIP LOCKED) \
    UPDATE pubsub.partitions AS p SET epoch = p.epoch + 1, broker = $1, broker_address = $2 \
      FROM free, pubsub.topics AS t \
     WHERE p.topic_id = free.topic_id AND p.partition = free.partition AND t.topic_id = p.topic_id \
    RETURNING p.topic_id, p.partition, p.epoch, p.first_offset, p.next_offset, t.compression";
/// Gives a partition back, unless a transaction has it locked: then it is done at the next renewal.
const GIVE_BACK: &str = "\
    WITH mine AS (SELECT p.topic_id, p.partition FROM pubsub.partitions AS p \
                   WHERE p.broker = $1 AND p.topic_id = $2 AND p.partition = $3 FOR UPDATE SKIP LOCKED) \
    UPDATE pubsub.partitions AS p SET broker = NULL, broker_address = NULL \
      FROM mine WHERE p.topic_id = mine.topic_id AND p.partition = mine.partition";
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
            // What cannot be given back is free as soon as the lease has ended.
            let _ = self.give_back(&partition);
        }
        let broker = &self.broker;
        // A lease that cannot be ended ends by itself.
        let _ = self.link.run(|connection| {
            connection
                .client()
                .execute(LEAVE, &[broker])
                .map_err(Error::statement("end the lease"))
        });
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
        let is_alive = self.link.run(|connection| {
            connection
                .client()
                .execute(RENEW, &[broker, &lease_ms])
                .map(|rows| rows == 1)
                .map_err(Error::statement("renew the lease"))
        })?;
        if !is_alive {
            // The lease has lapsed, so others may have taken any of the partitions since then.
            self.lose_all();
            let broker = &self.broker;
            self.link.run(|connection| {
                connection
                    .client()
                    .execute(ENTER, &[broker, &lease_ms])
                    .map_err(Error::statement("take a lease"))
            })?;
        }
        self.compare_held()
    }

    /// Compares the partitions that are held here with those that the database has for this broker.
    /// What only one side has is lost or given back, or no broker would ever serve it.
    fn compare_held(&mut self) -> Result<()> {
        let broker = &self.broker;
        let rows = self.link.run(|connection| {
            connection
                .client()
                .query(HELD, &[broker])
                .map_err(Error::statement("list the partitions that are held"))
        })?;
        let (mut confirmed, mut others) = (HashSet::new(), Vec::new());
        for row in rows {
            let key = TopicPartition {
                topic_id: row.get(0),
                partition: row.get(1),
            };
            match self.hosted.get(key) {
                Some(partition)
                    if partition.epoch == row.get::<_, i64>(2) && !partition.is_closed() =>
                {
                    partition.tail.lock().update_first_offset(row.get(3));
                    confirmed.insert(key);
                }
                _ => others.push(key),
            }
        }
        for partition in self.hosted.all() {
            if !confirmed.contains(&partition.key) {
                self.lose(&partition);
            }
        }
        for key in others {
            self.give_up(key)?;
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
        let most = most as i64;
        let (broker, address) = (&self.broker, &self.address);
        let rows = self.link.run(|connection| {
            let client = connection.client();
            client
                .execute(EXPIRE, &[])
                .map_err(Error::statement("end the leases that have lapsed"))?;
            client
                .query(TAKE, &[broker, address, &most])
                .map_err(Error::statement("take partitions"))
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

    /// Appends what waits, and gives the partition back.
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
                .map_err(Error::statement("give a partition back"))
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
