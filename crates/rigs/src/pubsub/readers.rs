//! The reading side of a flow: each group reads every message, each reader on a thread of its own.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::thread;

use dyno_measure::{Clock, Latencies};

use super::FlowError;
use super::flow::{Flow, Shared};
use super::payload;
use super::way::Way;

/// What readers have read, summed over them.
#[derive(Debug)]
pub(super) struct Read {
    pub messages: u64,
    pub digest: u64,
    /// Messages that arrived after a later one of the same writer.
    pub disordered: u64,
    /// Time of polls that found something, claim and read together.
    pub polls: Latencies,
    /// How many polls found nothing.
    pub empty: u64,
    /// From the intended start of a message to its reader; empty without a rate.
    pub end_to_end: Latencies,
    /// When the last message was read.
    pub last_ns: u64,
}

impl Read {
    fn new() -> Result<Read, FlowError> {
        Ok(Read {
            messages: 0,
            digest: 0,
            disordered: 0,
            polls: Latencies::new()?,
            empty: 0,
            end_to_end: Latencies::new()?,
            last_ns: 0,
        })
    }

    fn add(&mut self, other: &Read) -> Result<(), FlowError> {
        self.messages += other.messages;
        self.digest = self.digest.wrapping_add(other.digest);
        self.disordered += other.disordered;
        self.empty += other.empty;
        self.last_ns = self.last_ns.max(other.last_ns);
        self.polls.add(&other.polls)?;
        self.end_to_end.add(&other.end_to_end)?;
        Ok(())
    }
}

/// Reads until every group has everything or the flow is stopped.
pub(super) fn read_all(way: &dyn Way, flow: &Flow, shared: &Shared) -> Result<Read, FlowError> {
    let mut sum = Read::new()?;
    let parts: Vec<Result<Read, FlowError>> = thread::scope(|scope| {
        let places = (0..flow.groups).flat_map(|g| (0..flow.readers).map(move |r| (g, r)));
        let threads: Vec<_> = places
            .map(|(group, reader)| {
                scope.spawn(move || {
                    let read = read_one(way, flow, shared, group, reader);
                    read.inspect_err(|error| shared.fail(FlowError::Way(error.to_string())))
                })
            })
            .collect();
        let joined = threads.into_iter().map(|t| t.join());
        joined
            .map(|part| part.unwrap_or(Err(FlowError::Panicked)))
            .collect()
    });
    for part in parts {
        sum.add(&part?)?;
    }
    Ok(sum)
}

fn read_one(
    way: &dyn Way,
    flow: &Flow,
    shared: &Shared,
    group: usize,
    reader: usize,
) -> Result<Read, FlowError> {
    let mut from = way.reader(group, reader)?;
    shared.ready.fetch_add(1, Ordering::SeqCst);
    let mut read = Read::new()?;
    let mut last: HashMap<(u32, u32), u64> = HashMap::new();
    let counted = &shared.read[group];
    while !shared.stop.load(Ordering::Relaxed)
        && counted.load(Ordering::Relaxed) < shared.wanted.load(Ordering::Relaxed)
    {
        // `wanted` may still be unknown while writers write for a time; it is set when they have
        // ended, and the loop looks again.
        let started_ns = shared.clock.now_ns();
        let mut wrong = None;
        let count = from.poll(&mut |partition, message| {
            let Some(stamp) = payload::stamp(message) else {
                wrong = Some(FlowError::Wrong("a message is not one of ours".to_string()));
                return;
            };
            if flow.rate.is_some() {
                let waited_ns = shared.clock.now_ns().saturating_sub(stamp.intended_ns);
                if let Err(error) = read.end_to_end.record(waited_ns) {
                    wrong = Some(error.into());
                }
            }
            read.digest = read.digest.wrapping_add(payload::digest(message));
            let before = last.insert((partition, stamp.writer), stamp.sequence);
            read.disordered += u64::from(before.is_some_and(|before| before >= stamp.sequence));
        })?;
        if let Some(error) = wrong {
            return Err(error);
        }
        let ended_ns = shared.clock.now_ns();
        if count == 0 {
            read.empty += 1;
            continue;
        }
        // Empty polls are counted apart, because their time depends on how long the reader chooses
        // to wait.
        read.polls.record(ended_ns - started_ns)?;
        read.messages += count as u64;
        read.last_ns = ended_ns;
        counted.fetch_add(count as u64, Ordering::SeqCst);
    }
    from.close()?;
    Ok(read)
}
