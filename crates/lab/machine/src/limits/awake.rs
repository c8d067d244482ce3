//! Keeps the processors from falling asleep. Holds one `unsafe` call, which std lacks.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// One spinning thread of the lowest priority for each processor.
///
/// A processor that has nothing to do falls asleep, and an interrupt then has to wake it, which
/// costs a virtual machine tens of microseconds. A busy program has no such cost, so that a limit
/// that contains it would be beaten.
pub(super) struct Awake {
    done: Arc<AtomicBool>,
    spinning: Vec<JoinHandle<()>>,
}

impl Awake {
    pub fn keep(processors: usize) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let spinning = (0..processors).map(|_| {
            let done = Arc::clone(&done);
            thread::spawn(move || spin_until(&done))
        });
        Self {
            spinning: spinning.collect(),
            done,
        }
    }
}

fn spin_until(done: &AtomicBool) {
    // At any other priority it would take much time from what is measured.
    if !yields() {
        return;
    }
    while !done.load(Ordering::Relaxed) {
        hint::spin_loop();
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        for thread in self.spinning.drain(..) {
            // A thread that panicked has nothing to say about the measurement.
            drop(thread.join());
        }
    }
}

/// Gives this thread the lowest share of its processor. False if the system refuses that.
fn yields() -> bool {
    // SAFETY: the call takes numbers alone; 0 means this thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) == 0 }
}
