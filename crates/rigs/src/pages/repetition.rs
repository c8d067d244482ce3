//! A store's passes, repeated for as long as was asked for, by one or more threads.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use dyno_pages::{PAGE_BYTES, Page};

use super::PagesError;
use super::passes::{SLICE, Times, shuffled};
use super::source::Source;
use super::store::{Op, StoreParams, fill};
use super::system::{PageSystem, Worker, aligned};

/// The warm-up, which is not counted, lasts this fraction (1/5) of the measured time.
const WARM_UP: u32 = 5;
/// How many times of single calls are kept. Quantiles need no more, and memory is what some cases
/// measure.
const CALLS_MAX: usize = 4_000_000;

/// The result of all measured passes.
pub(super) struct Ran {
    pub(super) times: Vec<Times>,
    /// Pages a second of each pass, in order.
    pub(super) rates: Vec<f64>,
    /// Mean seconds of a pass; all passes do the same work.
    pub(super) window_s: f64,
    /// The number of the last pass.
    pub(super) last_pass: u64,
}

/// Runs passes until their number or the time that was asked for is reached. Passes of the warm-up
/// are not counted.
pub(super) fn repeat(system: &PageSystem, params: &StoreParams) -> Result<Ran, PagesError> {
    let mut pass = 0;
    if let Some(lasts) = params.lasts {
        let warming = Instant::now();
        while warming.elapsed() < lasts / WARM_UP {
            one_pass(system, params, pass)?;
            pass += 1;
        }
    }
    let (mut times, mut rates) = (Vec::new(), Vec::new());
    // Pages are compared outside the clock, so only the time of the passes counts.
    let mut measured_s = 0.0;
    let goes_on = |done: usize, measured_s: f64| match params.lasts {
        Some(lasts) => measured_s < lasts.as_secs_f64(),
        None => (done as u64) < params.passes,
    };
    // Whole passes only, because all of them do the same work and so their rates can be compared.
    while goes_on(rates.len(), measured_s) {
        let of_pass = one_pass(system, params, pass)?;
        pass += 1;
        // Threads of a pass run at once, so the pass lasts as long as the slowest of them; their
        // rates add up.
        measured_s += of_pass.iter().map(Times::lasted_s).fold(0.0, f64::max);
        rates.push(of_pass.iter().map(Times::rate).sum::<f64>());
        keep(&mut times, of_pass);
    }
    let window_s = measured_s / rates.len() as f64;
    Ok(Ran {
        times,
        rates,
        window_s,
        last_pass: pass - 1,
    })
}

/// Adds the times of a pass, and those of its single calls while there is room for them.
fn keep(times: &mut Vec<Times>, mut of_pass: Vec<Times>) {
    let kept: usize = times.iter().map(Times::calls).sum();
    if kept > CALLS_MAX {
        of_pass.iter_mut().for_each(Times::forget_calls);
    }
    times.extend(of_pass);
}

/// The pages at which the calls of one thread begin.
fn calls_of(params: &StoreParams, thread: usize, pass: u64) -> Vec<u64> {
    let units = params.source.count().div_ceil(params.batch as u64);
    let mut starts: Vec<u64> = if params.random {
        shuffled(units as usize, 7 + pass)
    } else {
        (0..units).collect()
    };
    // Only the order of the calls is random; the pages of a call are consecutive.
    let each = (units as usize).div_ceil(params.threads);
    let end = starts.len().min((thread + 1) * each);
    starts.truncate(end);
    starts.drain(..end.min(thread * each));
    starts
        .iter()
        .map(|unit| unit * params.batch as u64)
        .collect()
}

/// Runs one pass on all threads and returns their times.
pub(super) fn one_pass(
    system: &PageSystem,
    params: &StoreParams,
    pass: u64,
) -> Result<Vec<Times>, PagesError> {
    if params.op == Op::Fill {
        let mut times = Times::default();
        fill(system, &params.source, &mut times)?;
        return Ok(vec![times]);
    }
    let barrier = Barrier::new(params.threads);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..params.threads)
            .map(|thread| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let starts = calls_of(params, thread, pass);
                    let worker = system.worker();
                    // All threads pass the barrier before the result is looked at. One that left
                    // early with an error would leave the others waiting for ever.
                    barrier.wait();
                    one_thread(&mut worker?, params, &starts, pass)
                })
            })
            .collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| PagesError::Panicked)?);
        joined.collect()
    })
}

fn one_thread(
    worker: &mut Worker<'_>,
    params: &StoreParams,
    starts: &[u64],
    pass: u64,
) -> Result<Times, PagesError> {
    let mut times = Times::default();
    let calls = (SLICE / params.batch).max(1);
    let buffer = aligned(calls * params.batch);
    let mut expected = [0; PAGE_BYTES];
    for starts in starts.chunks(calls) {
        let last = params.source.count();
        let batches: Vec<Vec<u64>> = starts
            .iter()
            .map(|&start| (start..last.min(start + params.batch as u64)).collect())
            .collect();
        let pages = batches.iter().map(Vec::len).sum();
        for (batch, pages) in batches.iter().zip(buffer.chunks_mut(params.batch)) {
            let reads = params.op.reads(batch[0]);
            for (&number, page) in batch.iter().zip(pages) {
                if reads {
                    // A buffer that still held the right page of an earlier read would hide a read
                    // that returned nothing, so it is overwritten.
                    page.fill(1);
                } else {
                    params.source.fill(params.content(number, pass), page);
                }
            }
        }
        times.slice(pages, batches.len(), |call| {
            let batch = &batches[call];
            let pages = &mut buffer[call * params.batch..][..batch.len()];
            if params.op.reads(batch[0]) {
                worker.read(batch, pages)
            } else {
                worker.write(batch[0], pages)
            }
        })?;
        for (batch, pages) in batches.iter().zip(buffer.chunks(params.batch)) {
            if params.op.reads(batch[0]) {
                compare(&params.source, batch, pages, &mut expected)?;
            }
        }
    }
    Ok(times)
}

fn compare(
    source: &Source,
    batch: &[u64],
    pages: &[Page],
    expected: &mut Page,
) -> Result<(), PagesError> {
    for (&number, page) in batch.iter().zip(pages) {
        source.fill(number, expected);
        if page != expected {
            return Err(PagesError::Wrong(format!(
                "page {number} came back different"
            )));
        }
    }
    Ok(())
}

/// Seconds a page of the same calls on pages that were never written: reads of them, or writes of
/// zeros, which are noted in the device's table and not packed. The system call and the block layer
/// are in it, and the kernel's clearing of the page, or its look at it, which it does for other
/// pages as well.
pub(super) fn call_time(
    system: &PageSystem,
    params: &StoreParams,
    from: u64,
) -> Result<f64, PagesError> {
    let mut worker = system.worker()?;
    let mut times = Times::default();
    let calls = (SLICE / params.batch).max(1);
    let buffer = aligned(calls * params.batch);
    buffer.iter_mut().for_each(|page| page.fill(0));
    let starts = calls_of(params, 0, 0);
    for starts in starts.chunks(calls) {
        let batches: Vec<Vec<u64>> = starts
            .iter()
            .map(|&start| {
                (from + start..from + params.source.count().min(start + params.batch as u64))
                    .collect()
            })
            .collect();
        let pages = batches.iter().map(Vec::len).sum();
        times.slice(pages, batches.len(), |call| {
            let batch = &batches[call];
            let pages = &mut buffer[call * params.batch..][..batch.len()];
            match params.op {
                Op::Read => worker.read(batch, pages),
                _ => worker.write(batch[0], pages),
            }
        })?;
    }
    Ok(times.rate().recip())
}
