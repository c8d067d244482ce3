//! The reading side of a flow: each group reads every message, each reader on a thread of its own.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use dyno_measure::{Clock, Latencies};

use super::FlowError;
use super::payload;
use super::shared::{Flow, Shared};
use super::way::Way;

/// How often a reader that waits for the clock looks whether it has started.
const LOOK: Duration = Duration::from_millis(1);

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
    /// When the first reader was let go.
    pub since_ns: u64,
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
            since_ns: u64::MAX,
            last_ns: 0,
        })
    }

    fn add(&mut self, other: &Read) -> Result<(), FlowError> {
        self.messages += other.messages;
        self.digest = self.digest.wrapping_add(other.digest);
        self.disordered += other.disordered;
        self.empty += other.empty;
        self.since_ns = self.since_ns.min(other.since_ns);
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

/// Waits until the clock of the flow starts, if the log holds messages before: what was read by
/// then would count as read in no time. Without such messages there is nothing to read, and readers
/// that share the partitions of a group out must poll, so that those that are still joining get
/// theirs.
fn wait_for_clock(flow: &Flow, shared: &Shared) {
    while flow.before > 0
        && shared.writing_since_ns.get().is_none()
        && !shared.stop.load(Ordering::Relaxed)
    {
        thread::sleep(LOOK);
    }
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
    wait_for_clock(flow, shared);
    let mut read = Read::new()?;
    read.since_ns = shared.clock.now_ns();
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::pubsub::payload::{HEADER, Stamp};
    use crate::pubsub::way::{Reader, Writer};

    /// A log with one message, which tells whether a reader has asked for it.
    #[derive(Default)]
    struct OneMessage {
        polled: Arc<AtomicBool>,
    }

    struct OneReader {
        polled: Arc<AtomicBool>,
    }

    impl Way for OneMessage {
        fn prepare(&self) -> Result<(), FlowError> {
            Ok(())
        }

        fn writer(&self, _writer: usize) -> Result<Box<dyn Writer>, FlowError> {
            Err(FlowError::Way("the log is only read".to_string()))
        }

        fn reader(&self, _group: usize, _reader: usize) -> Result<Box<dyn Reader>, FlowError> {
            let polled = Arc::clone(&self.polled);
            Ok(Box::new(OneReader { polled }))
        }
    }

    impl Reader for OneReader {
        fn poll(&mut self, each: &mut dyn FnMut(u32, &[u8])) -> Result<usize, FlowError> {
            self.polled.store(true, Ordering::SeqCst);
            let mut message = vec![0; HEADER];
            let stamp = Stamp {
                intended_ns: 0,
                writer: 1,
                sequence: 0,
            };
            payload::fill(&mut message, stamp);
            each(0, &message);
            Ok(1)
        }
    }

    #[test]
    fn what_was_there_before_is_not_read_before_the_clock() {
        let flow = Flow {
            writers: 1,
            readers: 1,
            groups: 1,
            batch: 1,
            messages: 0,
            lasts: None,
            payload: HEADER,
            rate: None,
            before: 1,
            window: 1,
            ordered: true,
            report: None,
        };
        let (way, shared) = (OneMessage::default(), Shared::new(1, 1));
        let read = thread::scope(|scope| {
            let reading = scope.spawn(|| read_all(&way, &flow, &shared));
            while shared.ready.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            thread::sleep(20 * LOOK);
            assert!(!way.polled.load(Ordering::SeqCst));
            shared
                .writing_since_ns
                .get_or_init(|| shared.clock.now_ns());
            reading.join().expect("it ended")
        })
        .expect("one message");
        assert_eq!(read.messages, 1);
        let since_ns = shared.writing_since_ns.get().copied().expect("it was set");
        assert!((since_ns..=read.last_ns).contains(&read.since_ns));
    }
}
