//! A checkpoint of one partition: its thread makes a piece between other work, and another thread writes
//! them, so that nobody waits for a disk.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dyno_txn_api::Result;
use dyno_txn_core::{Checkpoint, Partition};
use dyno_txn_log::{Checkpointer, LogError, Lsn, MOST_CHUNK_BYTES};

use super::journal::Journal;
use super::pieces::cut;
use crate::error::{of_log, unavailable};

/// Parts that may wait for the disk.
const PARTS_MAX: usize = 8;
/// How often it is looked whether the log has come far enough.
const LOOK: Duration = Duration::from_millis(2);

enum Part {
    Chunk(Vec<u8>),
    /// All are there. The log is needed from the first position on, and must be durable up to the second.
    End(Lsn, Lsn),
}

/// A checkpoint under way.
pub(crate) struct Writing {
    at: Option<Checkpoint>,
    first_needed: Lsn,
    parts: VecDeque<Part>,
    sender: Option<SyncSender<Part>>,
    thread: JoinHandle<std::result::Result<(), LogError>>,
    /// The log was full when it began, so that nothing happens in the partition until it is over.
    still: bool,
}

impl Writing {
    /// Begins one; none where there is no log, or where what the partition did waits for the log.
    pub fn begin(partition: &Partition, journal: &mut Journal) -> Result<Option<Self>> {
        if journal.is_behind() && !journal.is_full() {
            return Ok(None);
        }
        let Some((log, first_needed)) = journal.begin_checkpoint() else {
            return Ok(None);
        };
        let checkpointer = log.checkpointer();
        let (sender, receiver) = sync_channel(PARTS_MAX);
        let thread = thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(move || write(&checkpointer, &receiver))
            .map_err(unavailable)?;
        let mut parts = VecDeque::new();
        let at = partition.begin_checkpoint(&mut |record| add(&mut parts, record));
        let (at, sender, still) = (Some(at), Some(sender), journal.is_full());
        Ok(Some(Self {
            at,
            first_needed,
            parts,
            sender,
            thread,
            still,
        }))
    }

    /// Does a bounded piece of it. True: it is over, for [`Writing::finish`] to say how.
    pub fn step(&mut self, partition: &Partition, journal: &Journal) -> bool {
        while let Some(part) = self.parts.pop_front() {
            let Some(sender) = &self.sender else { break };
            match sender.try_send(part) {
                Ok(()) => {}
                Err(TrySendError::Full(part)) => {
                    self.parts.push_front(part);
                    return false;
                }
                Err(TrySendError::Disconnected(_)) => self.sender = None,
            }
        }
        let Some(at) = &mut self.at else {
            return self.thread.is_finished();
        };
        if journal.is_full() && !self.still {
            // It cannot end, for rows that it has are in no log; the next one begins while all is still.
            return true;
        }
        let parts = &mut self.parts;
        if !partition.go_on_checkpoint(at, &mut |record| add(parts, record)) {
            if journal.is_behind() && !self.still {
                return false;
            }
            self.at = None;
            // Rows were written as they stood in memory: up to here the log must have them too.
            let end = journal.log().map_or(self.first_needed, |log| log.end());
            self.parts.push_back(Part::End(self.first_needed, end));
        }
        self.thread.is_finished()
    }

    /// What the writing thread came to; it has ended, or ends now because it gets no more.
    pub fn finish(mut self) -> Result<()> {
        self.sender = None;
        match self.thread.join() {
            Ok(result) => result.map_err(of_log),
            Err(_) => Err(unavailable("the thread that writes a checkpoint panicked")),
        }
    }
}

fn add(parts: &mut VecDeque<Part>, record: &[u8]) {
    match record.len() <= MOST_CHUNK_BYTES {
        true => parts.push_back(Part::Chunk(record.to_vec())),
        false => parts.extend(cut(record, MOST_CHUNK_BYTES).map(Part::Chunk)),
    }
}

fn write(checkpointer: &Checkpointer, parts: &Receiver<Part>) -> std::result::Result<(), LogError> {
    let mut writer = checkpointer.begin()?;
    while let Ok(part) = parts.recv() {
        match part {
            Part::Chunk(bytes) => writer.chunk(&bytes)?,
            Part::End(first_needed, end) => {
                while checkpointer.durable() < end {
                    // Whoever began it waits for its end, and drops the channel when the log has failed.
                    if let Err(std::sync::mpsc::TryRecvError::Disconnected) = parts.try_recv() {
                        return Ok(());
                    }
                    thread::sleep(LOOK);
                }
                return writer.commit(first_needed);
            }
        }
    }
    Ok(())
}
