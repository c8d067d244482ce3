//! Times slices of pages: some as a whole, for the rate, and some call by call, for quantiles. So
//! reading the clock does not slow down what the rate is computed from.

use std::time::Instant;

use dyno_random::Random;

use crate::quantiles::of_sorted;

/// The fewest pages that are timed together.
pub(super) const SLICE: usize = 64;

/// The numbers below `len` in a random order that depends on `seed` only.
pub(super) fn shuffled(len: usize, seed: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..len as u64).collect();
    Random::new(seed).shuffle(&mut order);
    order
}

/// The times that one thread measured.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// Pages and seconds of the slices timed as a whole.
    pages: u64,
    seconds: f64,
    /// Seconds of calls that were timed one by one.
    calls: Vec<f32>,
    slices: u64,
}

impl Times {
    /// Times `calls` calls on `pages` pages in total: one slice.
    pub fn slice<E>(
        &mut self,
        pages: usize,
        calls: usize,
        mut call: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<(), E> {
        self.slices += 1;
        // Every fourth slice is timed call by call and is left out of the rate.
        if self.slices.is_multiple_of(4) {
            // One reading of the clock ends a call and begins the next.
            let mut last = Instant::now();
            for number in 0..calls {
                call(number)?;
                let now = Instant::now();
                self.calls.push((now - last).as_secs_f32());
                last = now;
            }
            return Ok(());
        }
        let start = Instant::now();
        for number in 0..calls {
            call(number)?;
        }
        self.seconds += start.elapsed().as_secs_f64();
        self.pages += pages as u64;
        Ok(())
    }

    /// Seconds of all calls, including those that were timed one by one.
    pub fn lasted_s(&self) -> f64 {
        self.seconds + self.calls.iter().map(|call| f64::from(*call)).sum::<f64>()
    }

    /// How many times of single calls are kept.
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Discards the times of single calls once there are enough of them.
    pub fn forget_calls(&mut self) {
        self.calls = Vec::new();
    }

    /// Pages a second, over the slices that were timed as a whole.
    pub fn rate(&self) -> f64 {
        self.pages as f64 / self.seconds
    }

    /// The quantiles of the calls of all threads, in seconds, as metrics. Empty if there were too
    /// few slices.
    pub fn quantiles(all: &[Times]) -> Vec<(String, f64)> {
        let mut calls: Vec<f32> = all
            .iter()
            .flat_map(|times| times.calls.iter().copied())
            .collect();
        calls.sort_by(f32::total_cmp);
        of_sorted(&calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_every_number_once() {
        let mut order = shuffled(1000, 5);
        assert_ne!(order, shuffled(1000, 6));
        order.sort_unstable();
        assert!(order.into_iter().eq(0..1000));
    }

    #[test]
    fn every_fourth_slice_is_timed_call_by_call() {
        let mut times = Times::default();
        for _ in 0..8 {
            times
                .slice(10, 5, |_| Ok::<(), ()>(()))
                .expect("nothing fails");
        }
        assert_eq!((times.pages, times.calls.len()), (60, 10));
        let quantiles = Times::quantiles(&[times]);
        assert!(quantiles.len() == 5 && quantiles[0].1 <= quantiles[1].1);
        assert!(Times::quantiles(&[]).is_empty());
    }
}
