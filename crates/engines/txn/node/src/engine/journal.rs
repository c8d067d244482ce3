//! The log of one partition as the partition counts it: record numbers on one side, positions in
//! files on the other.

use std::collections::VecDeque;
use std::sync::Arc;

use dyno_io::Meanwhile;
use dyno_txn_api::Result;
use dyno_txn_core::{Position, Records};
use dyno_txn_log::{Log, LogError, Lsn};

use crate::error::from_log;
use crate::persist::RemoteLogs;
use crate::pieces::cut;

/// A partition's log. Without one nothing is stored and nothing waits.
#[derive(Debug)]
pub(crate) struct Journal {
    log: Option<Log>,
    /// For a log in other processes' memory: nothing counts as durable before this is active.
    remote: Option<Arc<RemoteLogs>>,
    /// What the log could not take yet, in order.
    waiting: VecDeque<Waiting>,
    /// Records that the log has taken.
    appended: Position,
    /// Those of them that the partition has been told are durable.
    durable: Position,
    /// Which position must be durable for how many records, in order.
    marks: VecDeque<Mark>,
    /// The log is out of segments until a checkpoint frees some.
    full: bool,
    /// Where the log ended when the last checkpoint began, or when it was opened.
    checkpoint_at: Lsn,
    /// Groups handed to the device.
    pub writes: u64,
}

/// A record, or a piece of one that is longer than the log takes.
#[derive(Debug)]
struct Waiting {
    bytes: Vec<u8>,
    /// Whether the record ends here: only then does it count.
    ends_record: bool,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    end: Lsn,
    records: Position,
}

impl Journal {
    /// Continues a log. Its next record has the number 1, whatever the log holds already.
    pub fn new(log: Option<Log>, remote: Option<Arc<RemoteLogs>>) -> Self {
        let checkpoint_at = log.as_ref().map_or(Lsn(0), Log::end);
        Self {
            log,
            remote,
            waiting: VecDeque::new(),
            appended: 0,
            durable: 0,
            marks: VecDeque::new(),
            full: false,
            checkpoint_at,
            writes: 0,
        }
    }

    /// Appends records in their order. Those that the log cannot take now wait in memory: the
    /// partition has carried their changes out already, so they cannot be refused any more.
    pub fn append(&mut self, records: &Records) -> Result<()> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        for record in records.iter() {
            if record.len() > log.most_record_bytes() {
                let pieces: Vec<_> = cut(record, log.most_record_bytes()).collect();
                let count = pieces.len();
                let pieces = pieces.into_iter().enumerate();
                self.waiting.extend(pieces.map(|(at, bytes)| Waiting {
                    bytes,
                    ends_record: at + 1 == count,
                }));
                continue;
            }
            // Once one record waits, all later ones wait behind it: a log with a gap would restore
            // changes without those that they build on.
            if self.waiting.is_empty() {
                match log.append(record) {
                    Ok(_) => {
                        self.appended += 1;
                        continue;
                    }
                    Err(error) if error.is_passing() => {
                        self.full |= matches!(error, LogError::Full { .. });
                    }
                    Err(error) => return Err(from_log(error)),
                }
            }
            self.waiting.push_back(Waiting {
                bytes: record.to_vec(),
                ends_record: true,
            });
        }
        self.mark();
        self.retry()
    }

    /// Notes where the records end that the log has taken since the last mark. One mark for all
    /// records of a call is enough, because a group of them becomes durable at once.
    fn mark(&mut self) {
        let Some(log) = &self.log else { return };
        let last = self.marks.back();
        if last.is_none_or(|mark| mark.records < self.appended) {
            self.marks.push_back(Mark {
                end: log.end(),
                records: self.appended,
            });
        }
    }

    fn retry(&mut self) -> Result<()> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.full = false;
        while let Some(first) = self.waiting.front() {
            match log.append(&first.bytes) {
                Ok(_) => {
                    self.appended += u64::from(first.ends_record);
                    self.waiting.pop_front();
                }
                Err(error) if error.is_passing() => {
                    self.full |= matches!(error, LogError::Full { .. });
                    break;
                }
                Err(error) => return Err(from_log(error)),
            }
        }
        self.mark();
        Ok(())
    }

    /// Starts writes and looks for those that have ended. Returns the number of the last durable
    /// record if it has grown, unless that is to be held back for a later call.
    pub fn step(&mut self, holds_back: bool, meanwhile: Meanwhile) -> Result<Option<Position>> {
        let Some(log) = &mut self.log else {
            return Ok(None);
        };
        // Even if nothing waits, because the log prepares its next segment meanwhile.
        let durable = log.poll().map_err(from_log)?;
        if self.marks.is_empty() && self.waiting.is_empty() {
            return Ok(None);
        }
        // What this thread writes itself is told at the next step, after what has arrived meanwhile
        // was carried out. Its clients are then answered together, and share later writes.
        let started = log.submit(meanwhile).map_err(from_log)?;
        self.writes += u64::from(started);
        self.retry()?;
        // Until the disk names this start as the newest that answered anything, a restart would be
        // content with the stores' logs of an earlier one. So nothing may be answered before that,
        // even if all stores have the bytes.
        let remote = self.remote.as_ref();
        if holds_back || remote.is_some_and(|remote| !remote.is_active()) {
            return Ok(None);
        }
        let mut reached = None;
        while let Some(&Mark { end, records }) = self.marks.front() {
            if end > durable {
                break;
            }
            reached = Some(records);
            self.durable = records;
            self.marks.pop_front();
        }
        Ok(reached)
    }

    /// Records that are not durable yet.
    pub fn records_waiting(&self) -> u64 {
        self.appended - self.durable + self.waiting.len() as u64
    }

    /// Whether something is not durable yet.
    pub fn is_busy(&self) -> bool {
        !self.marks.is_empty() || !self.waiting.is_empty()
    }

    /// Whether records wait for the log to take them. No further ones should be brought about then.
    pub fn is_behind(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the log has no segment left, so that only a checkpoint lets it go on.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Bytes since the last checkpoint began, or since the log was opened.
    pub fn since_checkpoint_bytes(&self) -> u64 {
        self.log
            .as_ref()
            .map_or(0, |log| log.end().0 - self.checkpoint_at.0)
    }

    /// The log, and the position from which recovery has to read it after a checkpoint that begins
    /// now.
    pub fn begin_checkpoint(&mut self) -> Option<(&mut Log, Lsn)> {
        let log = self.log.as_mut()?;
        self.checkpoint_at = log.end();
        Some((log, self.checkpoint_at))
    }

    pub fn log(&self) -> Option<&Log> {
        self.log.as_ref()
    }

    pub fn log_mut(&mut self) -> Option<&mut Log> {
        self.log.as_mut()
    }

    /// Writes what is left of a log in files, and closes it.
    pub fn close(self) -> Result<()> {
        match self.log {
            Some(Log::Files(log)) => log.close().map(drop).map_err(from_log),
            Some(Log::Memory(_) | Log::Remote(_)) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use dyno_sim::{Disk, Faults};
    use dyno_txn_api::{Procedures, Timestamp};
    use dyno_txn_core::{Config, Effects, Partition, Timestamps};
    use dyno_txn_log::{MemoryLog, Options, Recovery};

    use super::*;

    struct NoTimestamps;

    impl Timestamps for NoTimestamps {
        fn next(&mut self) -> Option<Timestamp> {
            None
        }

        fn plausible(&mut self, _: Timestamp) -> bool {
            false
        }
    }

    /// The first record of an empty partition.
    fn one_record() -> Records {
        let config = Config::new(0, 1);
        let mut partition = Partition::new(config, Procedures::new(), Box::new(NoTimestamps));
        let mut effects = Effects::default();
        let finished = partition.finish_recovery(0, 1, &mut effects);
        finished.expect("an empty log has no timestamp");
        assert_eq!(effects.records.len(), 1);
        effects.records
    }

    #[test]
    fn what_is_durable_can_be_held_back_and_is_told_later() {
        let mut journal = Journal::new(Some(Log::Memory(MemoryLog::new())), None);
        journal.append(&one_record()).expect("memory has room");
        assert_eq!(journal.step(true, Meanwhile::GoesOn), Ok(None));
        assert!(journal.is_busy());
        assert_eq!(journal.records_waiting(), 1);
        assert_eq!(journal.step(false, Meanwhile::GoesOn), Ok(Some(1)));
        assert_eq!(journal.records_waiting(), 0);
        assert!(!journal.is_busy());
    }

    /// Clients that are answered together come back together, so one write serves two of them.
    #[test]
    fn what_the_thread_wrote_itself_is_told_together_with_what_came_meanwhile() {
        let disk = Arc::new(Disk::new(1, Faults::default()));
        let recovery = Recovery::open(disk, Path::new("/log"), Options::default());
        let (log, _) = recovery.expect("free").finish().expect("room");
        let mut journal = Journal::new(Some(Log::Files(Box::new(log))), None);
        let record = one_record();
        journal.append(&record).expect("room");
        assert_eq!(journal.step(false, Meanwhile::Sleeps), Ok(None));
        journal.append(&record).expect("room");
        journal.append(&record).expect("room");
        assert_eq!(journal.step(false, Meanwhile::Sleeps), Ok(Some(1)));
        assert_eq!(journal.step(false, Meanwhile::Sleeps), Ok(Some(3)));
        assert_eq!(journal.writes, 2);
    }
}
