//! Writers that hand over the next batch before the last one is acknowledged.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::thread;

use dyno_measure::{Call, Clock, LoadOutcome, Operation, Recorder, Schedule};

use super::FlowError;
use super::payload::fill_batch;
use super::shared::{Flow, INTERVAL_NS, Shared};
use super::way::Way;

/// Writes the flow's messages in a closed loop with a window. The first error of a writer stops the
/// flow, because readers would otherwise wait for messages that never come.
pub(super) fn write_all(
    way: &dyn Way,
    flow: &Flow,
    shared: &Shared,
) -> Result<LoadOutcome, FlowError> {
    let started_ns = shared.clock.now_ns();
    let mut outcome = LoadOutcome {
        schedule: Schedule::ClosedLoop,
        recorder: Recorder::new(started_ns, INTERVAL_NS)?,
        started_ns,
        ended_ns: started_ns,
        done: 0,
        failed: 0,
        first_error: None,
        skipped: 0,
        unsent: 0,
    };
    let parts: Vec<Result<Recorder, FlowError>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..flow.writers)
            .map(|writer| {
                scope.spawn(move || {
                    let part = write_one(way, flow, shared, writer, started_ns);
                    part.inspect_err(|error| shared.fail(FlowError::Way(error.to_string())))
                })
            })
            .collect();
        let joined = threads.into_iter().map(|t| t.join());
        joined
            .map(|part| part.unwrap_or(Err(FlowError::Panicked)))
            .collect()
    });
    for part in parts {
        let part = part?;
        outcome.done += part.raw.count();
        outcome.recorder.add(part)?;
    }
    outcome.ended_ns = shared.clock.now_ns();
    Ok(outcome)
}

fn write_one(
    way: &dyn Way,
    flow: &Flow,
    shared: &Shared,
    writer: usize,
    started_ns: u64,
) -> Result<Recorder, FlowError> {
    let mut to = way.writer(writer)?;
    let mut recorder = Recorder::new(started_ns, INTERVAL_NS)?;
    let mut messages = vec![vec![0; flow.payload]; flow.batch];
    // Starts of unacknowledged batches, and how many messages of the first are acknowledged.
    let mut under_way: VecDeque<u64> = VecDeque::with_capacity(flow.window);
    let mut ahead = 0;
    let batch = flow.batch;
    let mut acknowledge = |count: usize, under_way: &mut VecDeque<u64>| {
        shared.written.fetch_add(count as u64, Ordering::SeqCst);
        ahead += count;
        let ended_ns = shared.clock.now_ns();
        // Acknowledgements come in order but not batch by batch, so messages are added up until a
        // whole batch is covered, and the latency of a batch ends with its last message.
        while ahead >= batch
            && let Some(started_ns) = under_way.pop_front()
        {
            ahead -= batch;
            let one = Operation {
                intended_ns: started_ns,
                started_ns,
                ended_ns,
                was_waiting: true,
            };
            if let Err(error) = recorder.record(one) {
                shared.fail(error.into());
            }
        }
    };
    let writers = flow.writers as u64;
    let batches = flow.messages / batch as u64;
    // Without a number of messages this is a share of a number that is never reached.
    let own = batches / writers + u64::from((writer as u64) < batches % writers);
    let end_ns = flow
        .lasts
        .map_or(u64::MAX, |lasts| started_ns + lasts.as_nanos() as u64);
    for sequence in 0..own {
        let intended_ns = shared.clock.now_ns();
        if intended_ns >= end_ns || shared.stop.load(Ordering::Relaxed) {
            break;
        }
        let digest = fill_batch(
            &mut messages,
            writer,
            Call {
                sequence,
                intended_ns,
            },
        );
        under_way.push_back(intended_ns);
        to.write(&messages, &mut |count| acknowledge(count, &mut under_way))?;
        shared.digest.fetch_add(digest, Ordering::SeqCst);
    }
    to.flush(&mut |count| acknowledge(count, &mut under_way))?;
    Ok(recorder)
}
