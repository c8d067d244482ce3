//! One partition's log: the real one (`dyno-txn-log`) on a disk that tears and loses what was not
//! synced, fails, and crashes in the middle of a step; beside it what the log was given, to compare
//! what comes back with.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use dyno_sim::{Disk, Failure, Faults, Lie, Random};
use dyno_txn_core::Position;
use dyno_txn_log::{FileLog, LogError, Lsn, Options, Recovery};

const DIRECTORY: &str = "/log";
/// Faults come within so many steps of the disk, lies within fewer.
const FAULT_STEPS: usize = 400;
const LIE_STEPS: usize = 60;

/// What the disk does in a life of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weather {
    /// Nothing goes wrong.
    Calm,
    /// Now and then a write fails, or the machine crashes at one.
    Storm,
    /// It confirms writes that it did not do: no log can keep its promise on it, so this must be
    /// noticed.
    Lying,
}

/// Why a log cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// Its disk failed, or its machine crashed, as was planned: it is read again.
    Struck,
    /// Its promise is broken, in a sentence.
    Broken(String),
}

/// What the log was given.
#[derive(Debug, Default)]
struct Given {
    checkpoint: Vec<Vec<u8>>,
    /// Those from behind `before` on.
    records: Vec<Vec<u8>>,
    /// The number of the first record that is kept, less one.
    before: Position,
    /// A checkpoint that a crash may have met, and the last record that it stands for.
    next: Option<(Vec<Vec<u8>>, Position)>,
}

impl Given {
    fn appended(&self) -> Position {
        self.before + self.records.len() as Position
    }

    fn replace(&mut self) {
        if let Some((checkpoint, upto)) = self.next.take() {
            self.checkpoint = checkpoint;
            self.records.drain(..(upto - self.before) as usize);
            self.before = upto;
        }
    }
}

/// A partition's log and checkpoint.
#[derive(Debug)]
pub(super) struct Journal {
    disk: Disk,
    options: Options,
    log: Option<FileLog>,
    given: Given,
    /// The number of the last record that the log has taken.
    taken: Position,
    /// Up to where the log must be durable for how many records.
    marks: VecDeque<(Lsn, Position)>,
    durable: Position,
    /// The driver will look what was written.
    looking: bool,
    faults: Faults,
    end: Option<End>,
}

impl Journal {
    /// A new log on a disk of its own.
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
            log: None,
            given: Given::default(),
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

    /// What the disk does from now on.
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
        self.given.records.push(record.to_vec());
    }

    /// The number of the last record.
    pub fn appended(&self) -> Position {
        self.given.appended()
    }

    pub fn durable(&self) -> Position {
        self.durable
    }

    /// Why it has ended, if it has.
    pub fn ended(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Begins to write what was appended. Returns whether the driver must look later what was
    /// written.
    pub fn write(&mut self) -> bool {
        self.attempt(|journal| journal.hand_over());
        let due = self.end.is_none() && !self.looking && self.durable < self.appended();
        self.looking |= due;
        due
    }

    /// Looks what was written: up to where the log is durable now.
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
            .given
            .records
            .get((self.taken - self.given.before) as usize)
        {
            match log.append(record) {
                Ok(_) => self.taken += 1,
                Err(LogError::Busy { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        if self.taken > from {
            self.marks.push_back((log.end(), self.taken));
        }
        log.submit().map(drop)
    }

    /// Where the records end that were appended; none while the log has not taken all of them.
    pub fn place(&self) -> Option<Lsn> {
        let log = self.log.as_ref()?;
        (self.taken == self.appended()).then(|| log.end())
    }

    /// A checkpoint takes the place of all records up to one, which ends there.
    pub fn replace(&mut self, checkpoint: Vec<Vec<u8>>, from: Lsn, upto: Position) {
        self.given.next = Some((checkpoint, upto));
        self.attempt(|journal| {
            if let (Some(log), Some((checkpoint, _))) = (&journal.log, &journal.given.next) {
                let mut writer = log.checkpointer().begin()?;
                checkpoint
                    .iter()
                    .try_for_each(|chunk| writer.chunk(chunk))?;
                writer.commit(from)?;
                journal.given.replace();
            }
            Ok(())
        });
    }

    /// The machine stops, or, if it is `killed`, only what ran on it.
    pub fn crash(&mut self, killed: bool, random: &mut Random) {
        // Before the log goes, which waits for what it has under way.
        self.disk = match killed {
            true => self.disk.after_kill(random.bits()),
            false => self.disk.after_crash(random.bits()),
        };
        self.log = None;
        self.looking = false;
        self.end = None;
        self.faults = Faults::default();
    }

    /// Reads the log back and goes on with it.
    ///
    /// # Errors
    /// Why it cannot go on.
    pub fn read(&mut self) -> Result<(), End> {
        let read = self.open();
        let (log, chunks, records) = read.map_err(|error| self.why(&error))?;
        if chunks != self.given.checkpoint {
            match &self.given.next {
                Some((next, _)) if chunks == *next => self.given.replace(),
                _ => return Err(broken("its checkpoint was never written")),
            }
        }
        self.given.next = None;
        let end = self.given.before + records.len() as Position;
        if !(self.durable..=self.taken).contains(&end) {
            return Err(broken(&format!(
                "{end} records are read back of {} that were durable and {} that it was given",
                self.durable, self.taken
            )));
        }
        if records != self.given.records[..records.len()] {
            return Err(broken("a record is not what was appended"));
        }
        self.given.records = records;
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

    /// What recovery reads: the checkpoint, then the records.
    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        let Given {
            checkpoint,
            records,
            ..
        } = &self.given;
        checkpoint.iter().chain(records).map(Vec::as_slice)
    }

    fn attempt(&mut self, act: impl FnOnce(&mut Self) -> Result<(), LogError>) {
        if self.end.is_none()
            && let Err(error) = act(self)
        {
            self.end = Some(self.why(&error));
        }
    }

    /// Whether the fault was planned.
    fn why(&self, error: &LogError) -> End {
        let Faults {
            crash_step,
            failure,
            ..
        } = self.faults;
        let failure = failure.map(|(Failure::Once { step } | Failure::From { step })| step);
        let mut planned = [crash_step, failure].into_iter().flatten();
        match planned.any(|step| step < self.disk.steps()) {
            true => End::Struck,
            false => broken(&error.to_string()),
        }
    }
}

fn broken(sentence: &str) -> End {
    End::Broken(sentence.to_owned())
}
