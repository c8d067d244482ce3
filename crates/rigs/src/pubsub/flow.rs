//! A flow: writers write a given number of messages, groups of readers read all of them, and both
//! are counted.
//!
//! The number of messages is given, so that all systems answer the same, unless a time is asked
//! for. Rates are of work that was finished either way: writes count until the last
//! acknowledgement, reads until the last message of the last group.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, SystemTime};

use dyno_measure::{
    Call, Clock, DriveOptions, GeneratorVerdict, LoadOutcome, Schedule, Until, drive,
    write_interval_log,
};
use dyno_record::KEPT_SCHEDULE;

use super::FlowError;
use super::backlog::Backlog;
use super::disk_watch::{DiskWatch, Watched};
use super::intervals;
use super::payload::fill_batch;
use super::readers::{Read, read_all};
use super::server::Used;
use super::shared::{Flow, INTERVAL_NS, Interval, Shared};
use super::way::{Way, Writer};
use super::window;

/// The result of a flow.
#[derive(Debug)]
pub(super) struct Flowed {
    /// Messages that were written while the clock ran.
    pub messages: u64,
    /// One operation is one batch, timed from its intended start to its acknowledgement.
    pub writes: LoadOutcome,
    /// Sum of the digests of all messages written.
    pub written_digest: u64,
    pub read: Read,
    pub backlog: Backlog,
    /// What the disk did meanwhile; empty where it was not watched.
    pub disk: DiskWatch,
    /// When each write was due and when it was acknowledged, under a rate.
    pub written_at: Vec<Interval>,
    /// Resources used before the first message, which are subtracted because starting the server
    /// and connecting are not part of the flow.
    pub used_before: Used,
}

/// How long nothing may be read, once all is written, before the flow counts as stalled.
const STALL_MAX: Duration = Duration::from_secs(30);
impl Flow {
    /// Runs the flow over a protocol that has been prepared. Under a rate the disk of `watched` is
    /// watched. `used` returns the resources used so far.
    pub fn run(
        &self,
        way: &dyn Way,
        watched: Option<&Watched>,
        used: impl Fn() -> Result<Used, FlowError>,
    ) -> Result<Flowed, FlowError> {
        let shared = Shared::new(self.groups, self.messages.saturating_add(self.before));
        let shared = &shared;
        let before_digest = self.write_before(way)?;
        let (writes, read, backlog, disk, used_before) = thread::scope(|scope| {
            let disk = watched
                .filter(|_| self.rate.is_some())
                .map(|server| scope.spawn(|| DiskWatch::watch(shared, server)));
            let watching = scope.spawn(|| Backlog::watch(shared, self));
            let reading = scope.spawn(|| read_all(way, self, shared));
            if let Some(every) = self.report {
                scope.spawn(move || intervals::report(shared, every));
            }
            self.wait_until_connected(shared);
            let used_before = used();
            let since_ns = *shared
                .writing_since_ns
                .get_or_init(|| shared.clock.now_ns());
            let writes = self.write_all(way, shared);
            let sent_ns = self.schedule_ends_ns(since_ns, shared.clock.now_ns());
            // Failed writers stop everything, because readers would otherwise wait for messages
            // that never come.
            if writes.is_err() {
                shared.stop.store(true, Ordering::SeqCst);
            }
            if self.lasts.is_some() {
                // Every writer has ended, so nothing is acknowledged after this.
                let written = shared.written.load(Ordering::SeqCst) + self.before;
                shared.wanted.store(written, Ordering::SeqCst);
            }
            self.wait_for_readers(shared);
            shared.stop.store(true, Ordering::SeqCst);
            let read = reading.join().unwrap_or(Err(FlowError::Panicked));
            let backlog = watching.join().map_err(|_| FlowError::Panicked);
            let backlog = backlog.map(|b| b.until(sent_ns));
            let disk = disk.map_or_else(
                || Ok(DiskWatch::default()),
                |watch| watch.join().unwrap_or(Err(FlowError::Panicked)),
            );
            (writes, read, backlog, disk, used_before)
        });
        // An error of any thread is the reason for what the others report, so it comes first.
        if let Ok(mut wrong) = shared.wrong.lock()
            && let Some(error) = wrong.take()
        {
            return Err(error);
        }
        let flowed = Flowed {
            messages: shared.wanted.load(Ordering::SeqCst) - self.before,
            writes: writes?,
            written_digest: shared
                .digest
                .load(Ordering::SeqCst)
                .wrapping_add(before_digest),
            read: read?,
            backlog: backlog?,
            disk: disk?,
            written_at: shared.take_written_at(),
            used_before: used_before?,
        };
        self.check(&flowed)?;
        Ok(flowed)
    }

    /// Waits until every reader is connected, when the clock may start. Otherwise the first
    /// messages would wait for readers that join a group, and their latency would be that of
    /// joining.
    fn wait_until_connected(&self, shared: &Shared) {
        let readers = (self.groups * self.readers) as u64;
        while shared.ready.load(Ordering::SeqCst) < readers && !shared.stop.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// When the last message was due, under a rate; otherwise when it was written. What is read
    /// later is a backlog that shrinks.
    fn schedule_ends_ns(&self, since_ns: u64, written_ns: u64) -> u64 {
        let lasts_ns = |rate: f64| match self.lasts {
            Some(lasts) => lasts.as_nanos() as u64,
            None => (self.messages as f64 / rate * 1e9) as u64,
        };
        self.rate
            .map_or(written_ns, |rate| written_ns.min(since_ns + lasts_ns(rate)))
    }

    /// Writes the messages that are there before the clock starts, untimed and spread evenly over
    /// the writers' partitions, under writer numbers that the flow itself does not use. Returns the
    /// sum of their digests.
    fn write_before(&self, way: &dyn Way) -> Result<u64, FlowError> {
        if self.before == 0 {
            return Ok(0);
        }
        let mut digest = 0u64;
        let mut messages = vec![vec![0; self.payload]; self.batch];
        let writers: Result<Vec<_>, _> = (0..self.writers).map(|at| way.writer(at)).collect();
        let mut writers = writers?;
        for batch in 0..self.before / self.batch as u64 {
            let at = batch as usize % self.writers;
            let call = Call {
                sequence: batch / self.writers as u64,
                intended_ns: 0,
            };
            digest = digest.wrapping_add(fill_batch(&mut messages, self.writers + at, call));
            writers[at].write(&messages, &mut |_| ())?;
        }
        for writer in &mut writers {
            writer.flush(&mut |_| ())?;
        }
        Ok(digest)
    }

    fn write_all(&self, way: &dyn Way, shared: &Shared) -> Result<LoadOutcome, FlowError> {
        if self.window > 1 {
            return window::write_all(way, self, shared);
        }
        let batches = self.messages / self.batch as u64;
        let schedule = match self.rate {
            Some(rate) => Schedule::Constant {
                rate_per_s: rate / self.batch as f64,
            },
            None => Schedule::ClosedLoop,
        };
        let options = DriveOptions {
            schedule,
            threads: self.writers,
            until: match self.lasts {
                Some(lasts) => Until::DurationNs(lasts.as_nanos() as u64),
                None => Until::Operations(batches),
            },
            interval_ns: INTERVAL_NS,
            lag_max_ns: None,
            stop: Some(&shared.stop),
        };
        let load = drive(&shared.clock, &options, |thread| {
            let mut writer = way.writer(thread);
            let mut messages = vec![vec![0; self.payload]; self.batch];
            move |call: Call| {
                let result = match &mut writer {
                    Ok(writer) => {
                        let digest = fill_batch(&mut messages, thread, call);
                        let written = write(&mut **writer, &messages, digest, shared);
                        if self.rate.is_some() {
                            shared.note_written((call.intended_ns, shared.clock.now_ns()));
                        }
                        written
                    }
                    Err(error) => Err(FlowError::Way(error.to_string())),
                };
                result.map_err(|error| {
                    let message = error.to_string();
                    shared.fail(error);
                    message
                })
            }
        })?;
        Ok(load)
    }

    fn wait_for_readers(&self, shared: &Shared) {
        let total = || -> u64 { shared.read.iter().map(|n| n.load(Ordering::SeqCst)).sum() };
        let wanted = shared.wanted.load(Ordering::SeqCst) * self.groups as u64;
        let mut seen = (total(), shared.clock.now_ns());
        while !shared.stop.load(Ordering::SeqCst) && seen.0 < wanted {
            thread::sleep(Duration::from_millis(1));
            let now_ns = shared.clock.now_ns();
            if total() > seen.0 {
                seen = (total(), now_ns);
            } else if now_ns - seen.1 > STALL_MAX.as_nanos() as u64 {
                shared.fail(FlowError::Stalled {
                    read: seen.0,
                    wanted,
                });
            }
        }
    }

    /// Checks that every acknowledged message reached every group once and in order.
    fn check(&self, flowed: &Flowed) -> Result<(), FlowError> {
        let wrong = |reason: String| Err(FlowError::Wrong(reason));
        let groups = self.groups as u64;
        if flowed.read.messages != (flowed.messages + self.before) * groups {
            return wrong(format!(
                "{} messages were read and {} written for {groups} groups",
                flowed.read.messages,
                flowed.messages + self.before
            ));
        }
        // Lost and repeated messages may cancel each other out in the count, so digests are
        // compared too. Every group must have every message, hence the product.
        if flowed.read.digest != flowed.written_digest.wrapping_mul(groups) {
            return wrong("what was read is not what was written".to_string());
        }
        if self.ordered && flowed.read.disordered > 0 {
            return wrong(format!(
                "{} messages came before an earlier one of the same writer",
                flowed.read.disordered
            ));
        }
        Ok(())
    }
}

impl Flowed {
    /// Describes how well the rate was kept.
    pub fn rate_kept(&self, rate: f64) -> String {
        match (self.backlog.grew(rate), self.writes.generator()) {
            (Some(grew), _) => grew,
            (None, GeneratorVerdict::FellBehind(reasons)) => reasons.join("; "),
            (None, _) => "kept up".to_string(),
        }
    }

    /// Writes the histogram log of the writes into the scratch directory.
    pub fn write_log(&self, scratch: &Path) -> Result<PathBuf, FlowError> {
        let path = scratch.join("writes.hdr");
        let mut file = File::create(&path).map_err(|e| FlowError::Way(e.to_string()))?;
        let ran = Duration::from_nanos(self.writes.ended_ns - self.writes.started_ns);
        write_interval_log(&mut file, &self.writes, SystemTime::now() - ran)?;
        Ok(path)
    }

    /// Describes whether the writers began each call when it was due.
    pub fn generator_kept(&self) -> String {
        match self.writes.generator() {
            GeneratorVerdict::FellBehind(reasons) => reasons.join("; "),
            _ => KEPT_SCHEDULE.to_string(),
        }
    }
}

fn write(
    writer: &mut dyn Writer,
    messages: &[Vec<u8>],
    digest: u64,
    shared: &Shared,
) -> Result<(), FlowError> {
    writer.write(messages, &mut |_| ())?;
    shared
        .written
        .fetch_add(messages.len() as u64, Ordering::SeqCst);
    shared.digest.fetch_add(digest, Ordering::SeqCst);
    Ok(())
}
