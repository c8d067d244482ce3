//! A log under load on a simulated disk, and what must be true of it after a crash.

use std::path::Path;
use std::sync::Arc;

use dyno_io::Meanwhile;
use dyno_sim::{Disk, Random};
use dyno_txn_log::{FileLog, LogError, Lsn, Options, Recovered, Recovery};

/// Tiny, so that segments change and are used again soon.
pub const OPTIONS: Options = Options {
    identity: 7,
    segment_bytes: 64 << 10,
    segments: 2,
    segments_most: 6,
    buffer_bytes: 8 << 10,
    depth: 2,
};

pub const DIRECTORY: &str = "/log";

/// The record with number `number`: it says so, and every byte of it follows from that.
pub fn record(number: u64) -> Vec<u8> {
    let mut random = Random::new(number);
    let len = match random.below(4) {
        0 => random.below(4_000),
        _ => random.below(200),
    };
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend((0..len).map(|_| random.bits() as u8));
    bytes
}

/// What the load knows: how many records were appended, and how many were called durable.
#[derive(Debug, Clone, Default)]
pub struct LogModel {
    pub ends: Vec<Lsn>,
    pub durable: u64,
    /// Records that the checkpoint stands for.
    pub forgotten: u64,
}

impl LogModel {
    pub fn appended(&self) -> u64 {
        self.forgotten + self.ends.len() as u64
    }

    fn note(&mut self, durable: Lsn) {
        let ended = self.ends.iter().filter(|&&end| end <= durable).count() as u64;
        self.durable = self.durable.max(self.forgotten + ended);
    }
}

/// Appends, submits, polls and writes checkpoints at random for `steps` steps, or until an error
/// that does not pass.
pub fn work(
    log: &mut FileLog,
    model: &mut LogModel,
    random: &mut Random,
    steps: usize,
) -> Result<(), LogError> {
    for _ in 0..steps {
        match random.below(20) {
            0..12 => match log.append(&record(model.appended())) {
                Ok(end) => model.ends.push(end),
                Err(LogError::Full { .. }) => checkpoint(log, model)?,
                Err(error) if error.is_passing() => {}
                Err(error) => return Err(error),
            },
            12..15 => {
                let meanwhile = match random.below(3) {
                    0 => Meanwhile::Sleeps,
                    _ => Meanwhile::GoesOn,
                };
                log.submit(meanwhile)?;
            }
            15..19 => {
                let durable = log.poll()?;
                model.note(durable);
            }
            _ if random.one_in(8) => checkpoint(log, model)?,
            _ => {
                let durable = log.flush()?;
                model.note(durable);
            }
        }
    }
    Ok(())
}

/// A checkpoint that stands for all durable records.
pub fn checkpoint(log: &mut FileLog, model: &mut LogModel) -> Result<(), LogError> {
    let durable = log.flush()?;
    model.note(durable);
    let mut writer = log.checkpointer().begin()?;
    writer.chunk(&model.durable.to_le_bytes())?;
    writer.chunk(&vec![1; 5_000])?;
    writer.commit(durable)
}

/// Reads the log back and judges it. Returns the log, what was found, and how many records there
/// are with those that the checkpoint stands for.
pub fn recover(
    disk: &Disk,
    model: &LogModel,
    what: &str,
) -> Result<(FileLog, Recovered, LogModel), LogError> {
    let mut recovery = Recovery::open(Arc::new(disk.clone()), Path::new(DIRECTORY), OPTIONS)?;
    let mut found = LogModel::default();
    if let Some(chunk) = recovery.next_chunk()? {
        found.forgotten = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        let second = recovery.next_chunk()?.expect("two chunks");
        assert!(second.iter().all(|&byte| byte == 1) && second.len() == 5_000);
        assert!(recovery.next_chunk()?.is_none());
    }
    while let Some(read) = recovery.next_record()? {
        let number = found.appended();
        assert_eq!(read.bytes, record(number), "{what}: record {number}");
        found.ends.push(read.end);
    }
    assert!(
        (model.durable..=model.appended()).contains(&found.appended()),
        "{what}: {} records of {} durable and {} appended",
        found.appended(),
        model.durable,
        model.appended()
    );
    let (log, report) = recovery.finish()?;
    found.durable = found.appended();
    assert_eq!(report.records, found.ends.len() as u64);
    Ok((log, report, found))
}
