//! Memory bandwidth: copying and scanning arrays far larger than the caches, or of a given size.

use std::hint::black_box;

use dyno_record::Size;

use super::measured::Measured;
use super::team::{self, Load};
use super::{REPETITIONS, Setting};
use crate::error::MachineError;

/// How large the array of each thread is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Array {
    /// All together four times the last cache and at least 256 MiB, and 64 MiB for a thread, which
    /// therefore cannot hide in a cache of its own.
    BeyondCaches,
    /// So many MiB, wherever those lie. Work on less data than the last cache holds is faster than
    /// the memory, and only a limit of that size bounds it.
    Mib(u64),
}

impl Array {
    /// The bytes of one array: no more than an eighth of the memory for all threads.
    fn bytes(self, setting: &Setting<'_>, threads: usize) -> u64 {
        let wanted = match self {
            _ if setting.size == Size::Tiny => 1 << 16,
            Array::Mib(mib) => mib << 20,
            Array::BeyondCaches => {
                let all = (4 * setting.last_level_cache_bytes).max(256 << 20);
                (all / threads as u64).max(64 << 20)
            }
        };
        wanted
            .min(setting.memory_bytes / 8 / threads as u64)
            .next_multiple_of(BLOCK_BYTES)
    }
}

/// Numbers summed per step of the scan: enough sums side by side that loads, and not the latency
/// of additions, are what limits it.
const LANES: usize = 32;
const BLOCK_BYTES: u64 = (LANES * 8) as u64;

/// Bytes copied per second (each byte counted once, though it is read and written).
pub(super) fn copy(
    name: &'static str,
    setting: &Setting<'_>,
    threads: usize,
    array: Array,
) -> Result<Measured, MachineError> {
    measured(name, setting, threads, array, Copy::new, |mib| {
        format!(
            "copied between two arrays of {mib} MiB per thread on {threads} thread(s), counting each byte once"
        )
    })
}

/// Bytes read per second, each once and by one thread only.
pub(super) fn scan(
    name: &'static str,
    setting: &Setting<'_>,
    threads: usize,
    array: Array,
) -> Result<Measured, MachineError> {
    measured(name, setting, threads, array, Scan::new, |mib| {
        format!(
            "summed an array of {mib} MiB per thread on {threads} thread(s) into {LANES} sums side by side"
        )
    })
}

/// Bytes per second of a load that is made for the bytes of an array; `method` takes those in
/// MiB.
fn measured<L: Load>(
    name: &'static str,
    setting: &Setting<'_>,
    threads: usize,
    array: Array,
    load: fn(u64) -> L,
    method: impl Fn(u64) -> String,
) -> Result<Measured, MachineError> {
    let bytes = array.bytes(setting, threads);
    let rates = team::rates(threads, REPETITIONS, setting.repetition(), |_| {
        Ok(load(bytes))
    })
    .map_err(|reason| MachineError::limit(name, reason))?;
    Ok(Measured::rate(rates, "B/s", method(bytes >> 20)))
}

/// Numbers that differ, so that no page is like another.
fn array(bytes: u64) -> Vec<u64> {
    (0..bytes / 8)
        .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect()
}

struct Copy {
    from: Vec<u64>,
    to: Vec<u64>,
}

impl Copy {
    fn new(bytes: u64) -> Self {
        let from = array(bytes);
        let to = vec![1; from.len()];
        Self { from, to }
    }
}

impl Load for Copy {
    fn pass(&mut self) -> Result<u64, String> {
        black_box(&mut self.to).copy_from_slice(black_box(&self.from));
        Ok(self.from.len() as u64 * 8)
    }

    fn check(&mut self) -> Result<(), String> {
        if self.from == self.to {
            Ok(())
        } else {
            Err("the copy differs".to_owned())
        }
    }
}

struct Scan {
    numbers: Vec<u64>,
    sum: u64,
    expected: u64,
}

impl Scan {
    fn new(bytes: u64) -> Self {
        let numbers = array(bytes);
        // 0 + 1 + ... + (n - 1), times the factor.
        let n = numbers.len() as u64;
        let expected = (n * (n - 1) / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self {
            numbers,
            sum: 0,
            expected,
        }
    }
}

impl Load for Scan {
    fn pass(&mut self) -> Result<u64, String> {
        let mut sums = [0u64; LANES];
        for block in black_box(&self.numbers).chunks_exact(LANES) {
            for (sum, number) in sums.iter_mut().zip(block) {
                *sum = sum.wrapping_add(*number);
            }
        }
        self.sum = black_box(sums.iter().fold(0, |all, sum| all.wrapping_add(*sum)));
        Ok(self.numbers.len() as u64 * 8)
    }

    fn check(&mut self) -> Result<(), String> {
        if self.sum == self.expected {
            return Ok(());
        }
        Err(format!(
            "the sum is {} and must be {}",
            self.sum, self.expected
        ))
    }
}
