//! Latency of memory: a walk in which every step waits for the one before.

use std::hint::black_box;
use std::time::Instant;

use super::measured::Measured;
use super::{REPETITIONS, Setting};
use crate::error::MachineError;

/// One step per cache line.
const LINE_NUMBERS: usize = 16;

pub(super) fn random_read(setting: &Setting<'_>) -> Result<Measured, MachineError> {
    let wanted = (4 * setting.last_level_cache_bytes).max(setting.pick(0, 256 << 20, 256 << 20));
    let wanted = if setting.pick(true, false, false) {
        1 << 16
    } else {
        wanted
    };
    let bytes = wanted.min(setting.memory_bytes / 4);
    let walk = circle(bytes as usize / (LINE_NUMBERS * 4));
    let steps = setting.pick(1_000, 1_000_000, 5_000_000);
    let mut at = 0;
    let times = (0..REPETITIONS).map(|_| {
        let started = Instant::now();
        for _ in 0..steps {
            // Where the next step goes is known only when this one has arrived, so no processor can
            // fetch ahead.
            at = walk[at as usize * LINE_NUMBERS];
        }
        at = black_box(at);
        started.elapsed().as_nanos() as f64 / f64::from(steps)
    });
    let times = times.collect();
    let mib = bytes >> 20;
    let method = format!("followed a random circle through {mib} MiB, one step per cache line");
    Ok(Measured::time_ns(times, method))
}

/// Lines linked into one circle through all of them (Sattolo's algorithm), so that a walk cannot
/// fall into a short loop that fits a cache.
fn circle(lines: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..lines as u32).collect();
    let mut state = 0x2545_f491_4f6c_dd1du64;
    for i in (1..lines).rev() {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let j = ((u128::from(state) * i as u128) >> 64) as usize;
        order.swap(i, j);
    }
    let mut walk = vec![0u32; lines * LINE_NUMBERS];
    for (from, to) in order.iter().enumerate() {
        walk[from * LINE_NUMBERS] = *to;
    }
    walk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_circle_visits_every_line() {
        let walk = circle(1000);
        let (mut at, mut steps) = (0usize, 0);
        loop {
            at = walk[at * LINE_NUMBERS] as usize;
            steps += 1;
            if at == 0 {
                break;
            }
        }
        assert_eq!(steps, 1000);
    }
}
