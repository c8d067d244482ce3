//! The partitions that this broker holds, and the queues of batches for its appending threads.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use crate::append_queue::AppendQueue;
use crate::broker::join_within;
use crate::partition::Partition;
use dyno_pubsub::TopicPartition;

/// Partitions by topic and number.
#[derive(Default)]
pub struct HostedPartitions(RwLock<HashMap<TopicPartition, Arc<Partition>>>);

impl HostedPartitions {
    pub fn get(&self, key: TopicPartition) -> Option<Arc<Partition>> {
        let hosted = self.0.read();
        hosted.get(&key).cloned()
    }

    pub fn insert(&self, partition: Arc<Partition>) {
        let mut hosted = self.0.write();
        hosted.insert(partition.key, partition);
    }

    pub fn remove(&self, key: TopicPartition) -> Option<Arc<Partition>> {
        let mut hosted = self.0.write();
        hosted.remove(&key)
    }

    /// All of them, by topic and number.
    pub fn all(&self) -> Vec<Arc<Partition>> {
        let hosted = self.0.read();
        let mut all: Vec<Arc<Partition>> = hosted.values().cloned().collect();
        all.sort_by_key(|partition| partition.key);
        all
    }

    pub fn len(&self) -> usize {
        let hosted = self.0.read();
        hosted.len()
    }
}

type Start = Box<dyn Fn(Arc<AppendQueue>) + Send + Sync>;

/// Append queues, as many as partitions but no more than a bound. Each has a thread.
pub struct AppendQueues {
    state: Mutex<State>,
    most: usize,
    make: Box<dyn Fn() -> AppendQueue + Send + Sync>,
    run: Arc<Start>,
}

#[derive(Default)]
struct State {
    queues: Vec<(Arc<AppendQueue>, JoinHandle<()>)>,
    stopped: bool,
}

impl AppendQueues {
    /// Begins without queues. `make` makes one, and `run` is what its thread runs.
    pub fn new(
        most: usize,
        make: impl Fn() -> AppendQueue + Send + Sync + 'static,
        run: impl Fn(Arc<AppendQueue>) + Send + Sync + 'static,
    ) -> AppendQueues {
        AppendQueues {
            state: Mutex::default(),
            most,
            make: Box::new(make),
            run: Arc::new(Box::new(run)),
        }
    }

    /// The queue for the partition that is the `nth` of this broker.
    ///
    /// # Errors
    /// When its thread cannot be started, or the queues were stopped.
    pub fn queue(&self, nth: usize) -> io::Result<Arc<AppendQueue>> {
        let mut state = self.state.lock();
        // Leases are still taken while the broker stops. A queue that is begun after `stop` has
        // collected the others would keep its thread and its session for good.
        if state.stopped {
            return Err(io::Error::other("the broker is stopping"));
        }
        let queues = &mut state.queues;
        if queues.len() < self.most && nth >= queues.len() {
            let queue = Arc::new((self.make)());
            let run = Arc::clone(&self.run);
            let its = Arc::clone(&queue);
            let thread = thread::Builder::new()
                .name("broker-append".to_owned())
                .spawn(move || run(its))?;
            queues.push((queue, thread));
        }
        let at = nth % queues.len().max(1);
        Ok(Arc::clone(&queues[at].0))
    }

    /// Ends every queue once it is empty, and waits for their threads, for at most `wait`.
    pub fn stop(&self, wait: Duration) {
        let queues = {
            let mut state = self.state.lock();
            state.stopped = true;
            std::mem::take(&mut state.queues)
        };
        queues.iter().for_each(|(queue, _)| queue.stop());
        join_within(queues.into_iter().map(|(_, thread)| thread).collect(), wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopped_queues_start_no_further_thread() {
        let queues = AppendQueues::new(
            2,
            || AppendQueue::new(Duration::ZERO),
            |queue| while queue.next().is_some() {},
        );
        assert!(queues.queue(0).is_ok());
        queues.stop(Duration::from_secs(60));
        assert!(queues.queue(0).is_err());
    }
}
