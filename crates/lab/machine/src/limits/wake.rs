//! Waking a thread that waits.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use super::measured::{Measured, median};
use super::{REPETITIONS, Setting};
use crate::error::MachineError;

/// Half the time of a turn there and back between two parked threads.
pub(super) fn thread_wake(setting: &Setting<'_>) -> Result<Measured, MachineError> {
    let turns = setting.pick(20, 5_000, 30_000);
    let times = (0..REPETITIONS).map(|_| wake_ns(turns)).collect();
    let method = format!(
        "two threads parked and unparked each other: half the median of {turns} turns there and back"
    );
    Ok(Measured::time_ns(times, method))
}

fn wake_ns(turns: u32) -> f64 {
    let baton = AtomicU32::new(0);
    let asking = thread::current();
    thread::scope(|scope| {
        let answering = scope.spawn(|| {
            for turn in 0..turns {
                wait_for(&baton, 2 * turn + 1);
                baton.store(2 * turn + 2, Ordering::Release);
                asking.unpark();
            }
        });
        let mut times = Vec::with_capacity(turns as usize);
        for turn in 0..turns {
            // The other side is parked by now or about to be; an unpark that comes first is kept by
            // the thread and not lost.
            let started = Instant::now();
            baton.store(2 * turn + 1, Ordering::Release);
            answering.thread().unpark();
            wait_for(&baton, 2 * turn + 2);
            times.push(started.elapsed().as_nanos() as f64 / 2.0);
        }
        median(&times)
    })
}

fn wait_for(baton: &AtomicU32, value: u32) {
    // Parking may end for no reason, so the baton decides.
    while baton.load(Ordering::Acquire) != value {
        thread::park();
    }
}
