//! The same load on several threads at once.

use std::sync::Barrier;
use std::time::{Duration, Instant};

/// A load that one thread repeats.
pub(super) trait Load {
    /// Works through the data once and returns the bytes it counts for.
    fn pass(&mut self) -> Result<u64, String>;

    /// Whether the result is what it must be.
    fn check(&mut self) -> Result<(), String>;
}

/// Runs `make(thread)` on each of `threads` threads, all starting together, for at least `duration`
/// in each of `repetitions`; gives bytes per second of all together. Memory is touched first by the
/// thread that uses it. The results are checked after the last repetition.
pub(super) fn rates<L: Load>(
    threads: usize,
    repetitions: usize,
    duration: Duration,
    make: impl Fn(usize) -> Result<L, String> + Sync,
) -> Result<Vec<f64>, String> {
    let barrier = Barrier::new(threads);
    let member = |index: usize| {
        let mut load = make(index);
        // A pass before the clock starts brings pages and files in.
        let mut failed = load.as_mut().err().cloned();
        if let Ok(load) = &mut load {
            failed = load.pass().err();
        }
        let mut spans = Vec::with_capacity(repetitions);
        // A failed member keeps the appointments: the others would wait for it for ever.
        for _ in 0..repetitions {
            barrier.wait();
            match &mut load {
                Ok(load) if failed.is_none() => match span(load, duration) {
                    Ok(span) => spans.push(span),
                    Err(reason) => failed = Some(reason),
                },
                _ => {}
            }
        }
        match (failed, load) {
            (None, Ok(mut load)) => load.check().map(|()| spans),
            (Some(reason), _) | (None, Err(reason)) => Err(reason),
        }
    };
    let members: Result<Vec<Vec<Span>>, String> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|index| {
                scope.spawn({
                    let member = &member;
                    move || member(index)
                })
            })
            .collect();
        let joined = handles.into_iter().map(|handle| handle.join());
        joined
            .map(|result| result.unwrap_or_else(|_| Err("a thread panicked".to_owned())))
            .collect()
    });
    // One member that failed makes every repetition one of fewer threads than it is said to be of.
    let members = members?;
    Ok((0..repetitions)
        .map(|i| together(members.iter().map(|spans| spans[i])))
        .collect())
}

#[derive(Debug, Clone, Copy)]
struct Span {
    start: Instant,
    end: Instant,
    bytes: u64,
}

fn span<L: Load>(load: &mut L, duration: Duration) -> Result<Span, String> {
    let start = Instant::now();
    let mut bytes = 0;
    loop {
        bytes += load.pass()?;
        let end = Instant::now();
        if end - start >= duration {
            return Ok(Span { start, end, bytes });
        }
    }
}

/// From the first start to the last end: what all of them got done in the time it took.
fn together(spans: impl Iterator<Item = Span> + Clone) -> f64 {
    let bytes: u64 = spans.clone().map(|span| span.bytes).sum();
    // Adding up each thread's own rate would count work that ran alone, before the last one started
    // and after the first one ended, as if all had run at once.
    let start = spans.clone().map(|span| span.start).min();
    let end = spans.map(|span| span.end).max();
    match start.zip(end) {
        Some((start, end)) => bytes as f64 / (end - start).as_secs_f64(),
        None => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counter(u64);

    impl Load for Counter {
        fn pass(&mut self) -> Result<u64, String> {
            self.0 += 1;
            if self.0 > 3 {
                Err("broke".to_owned())
            } else {
                Ok(1)
            }
        }

        fn check(&mut self) -> Result<(), String> {
            if self.0 == 3 {
                Ok(())
            } else {
                Err(format!("{} passes", self.0))
            }
        }
    }

    #[test]
    fn every_repetition_is_counted_and_the_result_checked() {
        let rates = rates(2, 2, Duration::ZERO, |_| Ok(Counter(0))).unwrap();
        assert_eq!(rates.len(), 2);
        assert!(rates.iter().all(|rate| *rate > 0.0));
    }

    #[test]
    fn a_member_that_fails_ends_the_measurement_and_not_the_others() {
        let broken = rates(3, 4, Duration::ZERO, |i| {
            Ok(Counter(if i == 1 { 3 } else { 0 }))
        });
        assert_eq!(broken.unwrap_err(), "broke");
        let unmade = rates(2, 2, Duration::ZERO, |i| {
            if i == 0 {
                Err("no memory".to_owned())
            } else {
                Ok(Counter(0))
            }
        });
        assert_eq!(unmade.unwrap_err(), "no memory");
    }
}
