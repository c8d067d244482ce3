//! The log of one partition as the partition counts it: record numbers on one side, positions in files on
//! the other.

use std::collections::VecDeque;
use std::sync::Arc;

use dyno_txn_api::Result;
use dyno_txn_core::{Position, Records};
use dyno_txn_log::{Log, LogError, Lsn};

use crate::error::from_log;
use crate::persist::Remote;
use crate::pieces::cut;

/// A partition's log; without one nothing is kept, and nothing waits.
#[derive(Debug)]
pub(crate) struct Journal {
    log: Option<Log>,
    /// For a log in other processes' memory: nothing is durable before this says so.
    remote: Option<Arc<Remote>>,
    /// What the log could not take yet: whole records or pieces, and whether a record ends there.
    waiting: VecDeque<(Vec<u8>, bool)>,
    /// Records handed to the log.
    appended: Position,
    /// Up to where the log must be durable for how many records.
    marks: VecDeque<(Lsn, Position)>,
    /// The log is out of segments until a checkpoint frees some.
    full: bool,
    began: Lsn,
    /// Groups handed to the device.
    pub writes: u64,
}

impl Journal {
    /// Goes on with a log; its next record has the number 1.
    pub fn new(log: Option<Log>, remote: Option<Arc<Remote>>) -> Self {
        let began = log.as_ref().map_or(Lsn(0), Log::end);
        Self {
            log,
            remote,
            waiting: VecDeque::new(),
            appended: 0,
            marks: VecDeque::new(),
            full: false,
            began,
            writes: 0,
        }
    }

    /// Takes records in.
    pub fn append(&mut self, records: &Records) -> Result<()> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        for record in records.iter() {
            if record.len() > log.most_record_bytes() {
                let pieces: Vec<_> = cut(record, log.most_record_bytes()).collect();
                let count = pieces.len();
                let pieces = pieces.into_iter().enumerate();
                self.waiting
                    .extend(pieces.map(|(at, piece)| (piece, at + 1 == count)));
                continue;
            }
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
            self.waiting.push_back((record.to_vec(), true));
        }
        self.mark();
        self.retry()
    }

    fn mark(&mut self) {
        let Some(log) = &self.log else { return };
        if self
            .marks
            .back()
            .is_none_or(|(_, last)| *last < self.appended)
        {
            self.marks.push_back((log.end(), self.appended));
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
        while let Some((bytes, ends)) = self.waiting.front() {
            match log.append(bytes) {
                Ok(_) => {
                    self.appended += u64::from(*ends);
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

    /// Starts writes, and looks what was written: the number of the last record that is durable, when it
    /// has grown.
    pub fn step(&mut self) -> Result<Option<Position>> {
        let Some(log) = &mut self.log else {
            return Ok(None);
        };
        // Also when nothing waits: the log makes its next file ready meanwhile.
        let durable = log.poll().map_err(from_log)?;
        if self.marks.is_empty() && self.waiting.is_empty() {
            return Ok(None);
        }
        self.writes += u64::from(log.submit().map_err(from_log)?);
        self.retry()?;
        if self
            .remote
            .as_ref()
            .is_some_and(|remote| !remote.is_active())
        {
            return Ok(None);
        }
        let mut reached = None;
        while let Some(&(end, position)) = self.marks.front() {
            if end > durable {
                break;
            }
            reached = Some(position);
            self.marks.pop_front();
        }
        Ok(reached)
    }

    /// Whether something is not durable yet.
    pub fn is_busy(&self) -> bool {
        !self.marks.is_empty() || !self.waiting.is_empty()
    }

    /// Whether records wait for the log to take them: then nobody should bring more.
    pub fn is_behind(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether only a checkpoint lets it go on.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Bytes since the last checkpoint began, or since the log was opened.
    pub fn since_checkpoint_bytes(&self) -> u64 {
        self.log
            .as_ref()
            .map_or(0, |log| log.end().0 - self.began.0)
    }

    /// Where recovery would have to go on from a checkpoint that begins now.
    pub fn begin_checkpoint(&mut self) -> Option<(&mut Log, Lsn)> {
        let log = self.log.as_mut()?;
        self.began = log.end();
        Some((log, self.began))
    }

    /// The log.
    pub fn log(&self) -> Option<&Log> {
        self.log.as_ref()
    }

    /// The log, for who sends what it has.
    pub fn log_mut(&mut self) -> Option<&mut Log> {
        self.log.as_mut()
    }

    /// Ends the log in peace.
    pub fn close(self) -> Result<()> {
        match self.log {
            Some(Log::Files(log)) => log.close().map(drop).map_err(from_log),
            Some(Log::Memory(_) | Log::Remote(_)) | None => Ok(()),
        }
    }
}
