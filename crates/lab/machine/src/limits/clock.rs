//! The clock that everything else is measured with.

use std::hint::black_box;
use std::time::Instant;

use super::measured::{Measured, median};
use super::{REPETITIONS, Setting};
use crate::error::MachineError;

/// Time of one reading of the clock.
pub(super) fn timer_cost(setting: &Setting<'_>) -> Result<Measured, MachineError> {
    let readings = setting.pick(1_000, 1_000_000, 5_000_000);
    let times = (0..REPETITIONS).map(|_| {
        let started = Instant::now();
        for _ in 0..readings {
            black_box(Instant::now());
        }
        started.elapsed().as_nanos() as f64 / f64::from(readings)
    });
    let times = times.collect();
    Ok(Measured::time_ns(
        times,
        format!("read the monotonic clock {readings} times in a row"),
    ))
}

/// The usual step between two readings that differ.
pub(super) fn timer_resolution(setting: &Setting<'_>) -> Result<Measured, MachineError> {
    let steps = setting.pick(100, 50_000, 200_000);
    let times =
        (0..REPETITIONS).map(|_| median(&(0..steps).map(|_| step_ns()).collect::<Vec<_>>()));
    let times = times.collect();
    Ok(Measured::time_ns(
        times,
        format!("the median of {steps} steps between readings that differ"),
    ))
}

fn step_ns() -> f64 {
    let before = Instant::now();
    loop {
        // Readings that are equal say nothing of the step, so the loop goes on to one that differs.
        let step = before.elapsed().as_nanos();
        if step > 0 {
            return step as f64;
        }
    }
}
