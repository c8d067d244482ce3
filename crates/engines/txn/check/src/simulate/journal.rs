//! The log of one partition: the real one (`dyno-txn-log`) on a simulated disk that fails, tears
//! writes, loses what was not synced, and crashes in the middle of a step. What the log was given
//! is kept beside it, to be compared with what it reads back.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use dyno_io::Meanwhile;
use dyno_sim::{Disk, Failure, Faults, Lie, Random};
use dyno_txn_core::Position;
use dyno_txn_log::{FileLog, LogError, Lsn, Options, Recovery};

const DIRECTORY: &str = "/log";
/// A fault comes within this many steps of the disk, and a lie within fewer.
const FAULT_STEPS: usize = 400;
const LIE_STEPS: usize = 60;

/// What the disk does until the next start of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weather {
    /// The disk works without faults.
    Calm,
    /// A write may fail, or the machine may crash during one.
    Storm,
    /// The disk confirms a write that it did not do. No log can keep its promise on it, so the
    /// judges must notice.
    Lying,
}

/// The reason for which a log cannot continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// Its disk failed or its machine crashed as planned. It is read again.
    Struck,
    /// It broke its promise, as the sentence says.
    Broken(String),
}

/// What the log was given, and so must read back.
#[derive(Debug, Default)]
struct Expected {
    checkpoint: Vec<Vec<u8>>,
    /// The records after number `before`.
    records: Vec<Vec<u8>>,
    /// The number of the last record that is not kept.
    before: Position,
    /// A checkpoint that a crash may have interrupted, and the last record that it includes.
    next: Option<(Vec<Vec<u8>>, Position)>,
}

impl Expected {
    fn appended(&self) -> Position {
        self.before + self.records.len() as Position
    }

    /// The checkpoint in `next` has become current.
    fn replace(&mut self) {
        if let Some((checkpoint, upto)) = self.next.take() {
            self.checkpoint = checkpoint;
            self.records.drain(..(upto - self.before) as usize);
            self.before = upto;
        }
    }
}

/// The log of a partition, with its disk.
#[derive(Debug)]
pub(super) struct Journal {
    disk: Disk,
    options: Options,
    /// What the thread does during each of its writes.
    meanwhile: Meanwhile,
    log: Option<FileLog>,
    expected: Expected,
    /// The number of the last record that the log has accepted.
    taken: Position,
    /// Positions in the log, each with the number of the last record before it.
    marks: VecDeque<(Lsn, Position)>,
    durable: Position,
    /// Whether the driver is going to check what was written.
    looking: bool,
    faults: Faults,
    end: Option<End>,
}

impl Journal {
    /// An empty log on a disk of its own.
    pub fn new(identity: u64, seed: u64) -> Self {
        let mut journal = Self {
            disk: Disk::new(seed ^ identity, Faults::default()),
            options: Options {
                identity,
                segment_bytes: 128 << 10,
                segments: 2,
                segments_most: 1 << 20,
                buffer_bytes: 32 << 10,
                depth: 1 + (seed % 3) as usize,
            },
            meanwhile: match seed % 2 {
                0 => Meanwhile::GoesOn,
                _ => Meanwhile::Sleeps,
            },
            log: None,
            expected: Expected::default(),
            taken: 0,
            marks: VecDeque::new(),
            durable: 0,
            looking: false,
            faults: Faults::default(),
            end: None,
        };
        journal.end = journal.read().err();
        journal
    }

    /// Decides what the disk does from now on.
    pub fn expose(&mut self, weather: Weather, random: &mut Random) {
        let steps = self.disk.steps();
        let mut soon = |within: usize| steps + 1 + random.below(within) as u64;
        let (crash, failure, lie) = (soon(FAULT_STEPS), soon(FAULT_STEPS), soon(LIE_STEPS));
        let calm = Faults {
            slow_one_in: 1 + random.below(4),
            ..Faults::default()
        };
        self.faults = match weather {
            Weather::Calm => calm,
            Weather::Storm => Faults {
                crash_step: random.one_in(3).then_some(crash),
                failure: random.one_in(6).then_some(Failure::Once { step: failure }),
                ..calm
            },
            Weather::Lying => Faults {
                lie: Some(Lie::Lost { step: lie }),
                ..calm
            },
        };
        self.disk.set_faults(self.faults);
    }

    pub fn append(&mut self, record: &[u8]) {
        self.expected.records.push(record.to_vec());
    }

    /// The number of the last record that was appended.
    pub fn appended(&self) -> Position {
        self.expected.appended()
    }

    pub fn durable(&self) -> Position {
        self.durable
    }

    /// The reason for which the log has ended, if it has.
    pub fn ended(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Begins to write what was appended. Returns whether the driver has to check later what was
    /// written.
    pub fn write(&mut self) -> bool {
        self.attempt(|journal| journal.hand_over());
        let due = self.end.is_none() && !self.looking && self.durable < self.appended();
        self.looking |= due;
        due
    }

    /// Collects what was written. Returns the number of the last durable record.
    pub fn look(&mut self) -> Position {
        self.looking = false;
        self.attempt(|journal| {
            let Some(log) = &mut journal.log else {
                return Ok(());
            };
            let durable = log.poll()?;
            while let Some((_, upto)) = journal.marks.pop_front_if(|(end, _)| *end <= durable) {
                journal.durable = upto;
            }
            journal.hand_over()
        });
        self.durable
    }

    fn hand_over(&mut self) -> Result<(), LogError> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        let from = self.taken;
        while let Some(record) = self
            .expected
            .records
            .get((self.taken - self.expected.before) as usize)
        {
            match log.append(record) {
                Ok(_) => self.taken += 1,
                // The record stays in `expected`, and is handed over when writes have ended.
                Err(LogError::Busy { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        if self.taken > from {
            self.marks.push_back((log.end(), self.taken));
        }
        log.submit(self.meanwhile).map(drop)
    }

    /// The position at which the appended records end, or `None` until the log has accepted all of
    /// them.
    pub fn place(&self) -> Option<Lsn> {
        let log = self.log.as_ref()?;
        (self.taken == self.appended()).then(|| log.end())
    }

    /// Replaces all records up to `upto`, which end at `from`, by a checkpoint.
    pub fn replace(&mut self, checkpoint: Vec<Vec<u8>>, from: Lsn, upto: Position) {
        // It is noted before it is written. If the machine crashes in between, the old checkpoint
        // and the new one are both right.
        self.expected.next = Some((checkpoint, upto));
        self.attempt(|journal| {
            if let (Some(log), Some((checkpoint, _))) = (&journal.log, &journal.expected.next) {
                let mut writer = log.checkpointer().begin()?;
                checkpoint
                    .iter()
                    .try_for_each(|chunk| writer.chunk(chunk))?;
                writer.commit(from)?;
                journal.expected.replace();
            }
            Ok(())
        });
    }

    /// Ends the log with the machine or, if it is `killed`, with its process alone.
    pub fn crash(&mut self, killed: bool, random: &mut Random) {
        // The disk is copied before the log is dropped, because that waits for the writes in
        // flight.
        self.disk = if killed {
            self.disk.after_kill(random.bits())
        } else {
            self.disk.after_crash(random.bits())
        };
        self.log = None;
        self.looking = false;
        self.end = None;
        self.faults = Faults::default();
    }

    /// Reads the log back, compares it with what it was given, and continues it.
    ///
    /// # Errors
    /// The reason for which the log cannot continue.
    pub fn read(&mut self) -> Result<(), End> {
        let read = self.open();
        let (log, chunks, records) = read.map_err(|error| self.why(&error))?;
        if chunks != self.expected.checkpoint {
            match &self.expected.next {
                Some((next, _)) if chunks == *next => self.expected.replace(),
                _ => return Err(broken("its checkpoint was never written")),
            }
        }
        self.expected.next = None;
        // At least what it reported as durable must be back, and no record that it was never given.
        // Between the two the crash decides.
        let end = self.expected.before + records.len() as Position;
        if !(self.durable..=self.taken).contains(&end) {
            return Err(broken(&format!(
                "{end} records are read back of {} that were durable and {} that it was given",
                self.durable, self.taken
            )));
        }
        if records != self.expected.records[..records.len()] {
            return Err(broken("a record is not what was appended"));
        }
        self.expected.records = records;
        (self.taken, self.durable) = (end, end);
        self.marks.clear();
        self.log = Some(log);
        Ok(())
    }

    #[allow(clippy::type_complexity, reason = "a log, its chunks and its records")]
    fn open(&self) -> Result<(FileLog, Vec<Vec<u8>>, Vec<Vec<u8>>), LogError> {
        let disk = Arc::new(self.disk.clone());
        let mut recovery = Recovery::open(disk, Path::new(DIRECTORY), self.options)?;
        let (mut chunks, mut records) = (Vec::new(), Vec::new());
        while let Some(chunk) = recovery.next_chunk()? {
            chunks.push(chunk.to_vec());
        }
        while let Some(record) = recovery.next_record()? {
            records.push(record.bytes.to_vec());
        }
        let (log, _) = recovery.finish()?;
        Ok((log, chunks, records))
    }

    /// The records that recovery reads: the checkpoint, then those after it.
    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        let Expected {
            checkpoint,
            records,
            ..
        } = &self.expected;
        checkpoint.iter().chain(records).map(Vec::as_slice)
    }

    fn attempt(&mut self, act: impl FnOnce(&mut Self) -> Result<(), LogError>) {
        if self.end.is_none()
            && let Err(error) = act(self)
        {
            self.end = Some(self.why(&error));
        }
    }

    /// Tells a fault that was planned from one of the log.
    fn why(&self, error: &LogError) -> End {
        let Faults {
            crash_step,
            failure,
            ..
        } = self.faults;
        let failure = failure.map(|(Failure::Once { step } | Failure::From { step })| step);
        let mut planned = [crash_step, failure].into_iter().flatten();
        if planned.any(|step| step < self.disk.steps()) {
            End::Struck
        } else {
            broken(&error.to_string())
        }
    }
}

fn broken(sentence: &str) -> End {
    End::Broken(sentence.to_owned())
}
