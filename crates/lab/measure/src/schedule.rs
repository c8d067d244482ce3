//! When operations are meant to start.

use dyno_random::Random;

use crate::error::MeasureError;

/// When the operations of a load are meant to start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Schedule {
    /// Each thread starts the next operation when the last one ended: shows capacity, and says
    /// nothing about latency under a rate.
    ClosedLoop,
    /// Operations start at even distances, whether or not earlier ones have ended.
    Constant {
        /// Operations per second over all threads.
        rate_per_s: f64,
    },
    /// Operations start at exponential distances, as independent users do.
    Poisson {
        /// Operations per second over all threads, on average.
        rate_per_s: f64,
        /// The same seed gives the same distances.
        seed: u64,
    },
}

impl Schedule {
    /// The offered rate; absent for a closed loop.
    pub fn rate_per_s(&self) -> Option<f64> {
        match *self {
            Self::ClosedLoop => None,
            Self::Constant { rate_per_s } | Self::Poisson { rate_per_s, .. } => Some(rate_per_s),
        }
    }

    /// The arrivals of one of `threads` threads, from `start_ns` on. With a constant rate the
    /// threads take turns; with Poisson each runs its own process of an even share, whose sum is
    /// Poisson again. Such a share is for a thread that can begin the next operation while others
    /// are under way. [`drive`](crate::drive()), whose threads do one at a time, asks for the
    /// arrivals of a single thread and lets each go to the first of its threads that is free.
    ///
    /// # Errors
    /// On a rate that is not above zero, or no threads.
    pub fn arrivals(
        &self,
        thread: usize,
        threads: usize,
        start_ns: u64,
    ) -> Result<Arrivals, MeasureError> {
        if threads == 0 {
            return Err(MeasureError::Threads { threads });
        }
        if let Some(rate_per_s) = self.rate_per_s().filter(|r| !(r.is_finite() && *r > 0.0)) {
            return Err(MeasureError::Rate { rate_per_s });
        }
        let kind = match *self {
            Self::ClosedLoop => Kind::Immediate,
            Self::Constant { rate_per_s } => Kind::Even {
                distance_ns: 1e9 / rate_per_s,
                next: thread as u64,
                step: threads as u64,
            },
            Self::Poisson { rate_per_s, seed } => Kind::Exponential {
                mean_ns: 1e9 * threads as f64 / rate_per_s,
                at_ns: 0.0,
                random: Random::new(seed ^ (thread as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95)),
            },
        };
        Ok(Arrivals { start_ns, kind })
    }
}

/// The intended starts of one thread, without end; `None` stands for "as soon as you can".
#[derive(Debug, Clone)]
pub struct Arrivals {
    start_ns: u64,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Immediate,
    Even {
        distance_ns: f64,
        next: u64,
        step: u64,
    },
    Exponential {
        mean_ns: f64,
        at_ns: f64,
        random: Random,
    },
}

impl Arrivals {
    /// The next intended start, on the clock whose time `start_ns` was.
    pub fn next_ns(&mut self) -> Option<u64> {
        let offset_ns = match &mut self.kind {
            Kind::Immediate => return None,
            Kind::Even {
                distance_ns,
                next,
                step,
            } => {
                // From the index and not from the last arrival, so that errors do not add up.
                let offset_ns = (*next as f64 * *distance_ns).ceil();
                *next += *step;
                offset_ns
            }
            Kind::Exponential {
                mean_ns,
                at_ns,
                random,
            } => {
                *at_ns -= *mean_ns * (1.0 - random.fraction()).ln();
                at_ns.ceil()
            }
        };
        Some(self.start_ns.saturating_add(offset_ns as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn first(schedule: Schedule, thread: usize, threads: usize, n: usize) -> Vec<u64> {
        let mut arrivals = schedule.arrivals(thread, threads, 1_000).unwrap();
        (0..n).map(|_| arrivals.next_ns().unwrap()).collect()
    }

    #[test]
    fn threads_take_turns() {
        let schedule = Schedule::Constant { rate_per_s: 1e6 };
        assert_eq!(first(schedule, 0, 2, 3), [1_000, 3_000, 5_000]);
        assert_eq!(first(schedule, 1, 2, 3), [2_000, 4_000, 6_000]);
    }

    #[test]
    fn a_million_seconds_do_not_drift() {
        let mut arrivals = Schedule::Constant { rate_per_s: 3.0 }
            .arrivals(0, 1, 0)
            .unwrap();
        let last = (0..=3_000_000)
            .filter_map(|_| arrivals.next_ns())
            .last()
            .unwrap();
        assert_eq!(last, 1_000_000 * 1_000_000_000);
    }

    #[test]
    fn poisson_has_the_rate_and_the_spread_of_poisson() {
        let times = first(
            Schedule::Poisson {
                rate_per_s: 1_000.0,
                seed: 7,
            },
            0,
            1,
            20_000,
        );
        let gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // An exponential distribution's deviation equals its mean.
        assert!((mean / 1e6 - 1.0).abs() < 0.03, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "{variance}");
    }

    #[test]
    fn rates_without_meaning_are_refused() {
        for rate_per_s in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Schedule::Constant { rate_per_s }.arrivals(0, 1, 0).is_err());
        }
        assert!(Schedule::ClosedLoop.arrivals(0, 0, 0).is_err());
        assert_eq!(
            Schedule::ClosedLoop.arrivals(0, 1, 0).unwrap().next_ns(),
            None
        );
    }

    proptest! {
        #[test]
        fn a_constant_schedule_is_never_early(
            rate_per_s in 0.001f64..1e7, threads in 1usize..9, start_ns in 0u64..1 << 50,
        ) {
            let schedule = Schedule::Constant { rate_per_s };
            for thread in 0..threads {
                let mut arrivals = schedule.arrivals(thread, threads, start_ns).unwrap();
                for i in 0..50usize {
                    let due = (thread + i * threads) as f64 * 1e9 / rate_per_s;
                    let offset = arrivals.next_ns().unwrap() - start_ns;
                    prop_assert!(offset as f64 >= due.floor(), "{offset} before {due}");
                    prop_assert!(offset as f64 <= due.ceil() + 1.0);
                }
            }
        }

        #[test]
        fn a_poisson_schedule_never_goes_back_and_repeats_from_its_seed(
            rate_per_s in 0.1f64..1e7, seed: u64,
        ) {
            let schedule = Schedule::Poisson { rate_per_s, seed };
            let times = first(schedule, 1, 3, 100);
            prop_assert!(times.windows(2).all(|w| w[0] <= w[1]) && times[0] >= 1_000);
            prop_assert_eq!(times, first(schedule, 1, 3, 100));
        }
    }
}
