//! The partitions that this broker holds, and the lanes that append to them.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use crate::broker::join_within;
use crate::lane::Lane;
use crate::partition::{Key, Partition};

/// Partitions by topic and number.
#[derive(Default)]
pub struct Held(RwLock<HashMap<Key, Arc<Partition>>>);

impl Held {
    pub fn get(&self, key: Key) -> Option<Arc<Partition>> {
        let held = self.0.read();
        held.get(&key).cloned()
    }

    pub fn insert(&self, partition: Arc<Partition>) {
        let mut held = self.0.write();
        held.insert(partition.key, partition);
    }

    pub fn remove(&self, key: Key) -> Option<Arc<Partition>> {
        let mut held = self.0.write();
        held.remove(&key)
    }

    /// All of them, by topic and number.
    pub fn all(&self) -> Vec<Arc<Partition>> {
        let held = self.0.read();
        let mut all: Vec<Arc<Partition>> = held.values().cloned().collect();
        all.sort_by_key(|partition| partition.key);
        all
    }

    pub fn len(&self) -> usize {
        let held = self.0.read();
        held.len()
    }
}

type Start = Box<dyn Fn(Arc<Lane>) + Send + Sync>;

/// Lanes, as many as partitions but no more than a bound. Each has its thread.
pub struct Lanes {
    lanes: Mutex<Vec<(Arc<Lane>, JoinHandle<()>)>>,
    most: usize,
    make: Box<dyn Fn() -> Lane + Send + Sync>,
    run: Arc<Start>,
}

impl Lanes {
    /// No lanes yet; `make` makes one, and `run` is what its thread does.
    pub fn new(
        most: usize,
        make: impl Fn() -> Lane + Send + Sync + 'static,
        run: impl Fn(Arc<Lane>) + Send + Sync + 'static,
    ) -> Lanes {
        Lanes {
            lanes: Mutex::default(),
            most,
            make: Box::new(make),
            run: Arc::new(Box::new(run)),
        }
    }

    /// The lane for the partition that is the `nth` of this broker.
    pub fn lane(&self, nth: usize) -> io::Result<Arc<Lane>> {
        let mut lanes = self.lanes.lock();
        if lanes.len() < self.most && nth >= lanes.len() {
            let lane = Arc::new((self.make)());
            let run = Arc::clone(&self.run);
            let its = Arc::clone(&lane);
            let thread = thread::Builder::new()
                .name("broker-append".to_owned())
                .spawn(move || run(its))?;
            lanes.push((lane, thread));
        }
        let at = nth % lanes.len().max(1);
        Ok(Arc::clone(&lanes[at].0))
    }

    /// Ends every lane once it is empty, and waits for their threads, for at most `wait`.
    pub fn stop(&self, wait: Duration) {
        let lanes = std::mem::take(&mut *self.lanes.lock());
        lanes.iter().for_each(|(lane, _)| lane.stop());
        join_within(lanes.into_iter().map(|(_, thread)| thread).collect(), wait);
    }
}
