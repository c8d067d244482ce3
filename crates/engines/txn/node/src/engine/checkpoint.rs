//! A checkpoint of one partition: its thread makes a piece between other work, and another thread writes
//! them, so that nobody waits for a disk; or they go to the processes that keep the log.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dyno_txn_api::Result;
use dyno_txn_core::{Checkpoint, Partition};
use dyno_txn_log::{Checkpointer, Log, LogError, Lsn, MOST_CHUNK_BYTES};

use super::journal::Journal;
use crate::error::{from_log, unavailable};
use crate::persist::{CheckpointPart, Stores};
use crate::pieces::cut;

/// Parts that may wait for the disk.
const PARTS_MAX: usize = 8;
/// How often it is looked whether the log has come far enough.
const LOOK: Duration = Duration::from_millis(2);

enum Part {
    Chunk(Vec<u8>),
    /// All are there. The log is needed from the first position on, and must be durable up to the second.
    End(Lsn, Lsn),
}

/// Where its parts go.
enum Sink {
    Disk {
        sender: Option<SyncSender<Part>>,
        thread: JoinHandle<std::result::Result<(), LogError>>,
    },
    Stores {
        number: u64,
        chunks: u64,
        ended: bool,
    },
}

/// A checkpoint under way.
pub(crate) struct Writing {
    at: Option<Checkpoint>,
    first_needed: Lsn,
    parts: VecDeque<Part>,
    sink: Sink,
    /// The log was full when it began, so that nothing happens in the partition until it is over.
    still: bool,
}

/// The stores of a log, and its place among those of its thread.
pub(crate) type At<'a> = Option<(&'a mut Stores, usize)>;

impl Writing {
    /// Begins one; none where there is no log, or where what the partition did waits for the log.
    pub fn begin(
        partition: &Partition,
        journal: &mut Journal,
        stores: At<'_>,
    ) -> Result<Option<Self>> {
        if journal.is_behind() && !journal.is_full() {
            return Ok(None);
        }
        let still = journal.is_full();
        let Some((log, first_needed)) = journal.begin_checkpoint() else {
            return Ok(None);
        };
        let sink = match (log, stores) {
            (Log::Files(log), _) => {
                let checkpointer = log.checkpointer();
                let (sender, receiver) = sync_channel(PARTS_MAX);
                let thread = thread::Builder::new()
                    .name("checkpoint".to_owned())
                    .spawn(move || write(&checkpointer, &receiver))
                    .map_err(unavailable)?;
                let sender = Some(sender);
                Sink::Disk { sender, thread }
            }
            (Log::Remote(log), Some((stores, place))) => {
                stores.begin_checkpoint(place, log);
                Sink::Stores {
                    number: dyno_txn_log::fresh_identity(),
                    chunks: 0,
                    ended: false,
                }
            }
            (Log::Memory(_) | Log::Remote(_), _) => return Ok(None),
        };
        let mut parts = VecDeque::new();
        let at = partition.begin_checkpoint(&mut |record| add(&mut parts, record));
        Ok(Some(Self {
            at: Some(at),
            first_needed,
            parts,
            sink,
            still,
        }))
    }

    /// Does a bounded piece of it. True: it is over, for [`Writing::finish`] to say how.
    pub fn step(&mut self, partition: &Partition, journal: &mut Journal, stores: At<'_>) -> bool {
        if let Some(over) = self.hand_over(journal, stores) {
            return over;
        }
        let Some(at) = &mut self.at else {
            return self.is_written();
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
            let end = journal.log().map_or(self.first_needed, Log::end);
            self.parts.push_back(Part::End(self.first_needed, end));
        }
        self.is_written()
    }

    /// Whether its thread has ended; stores say it in another way.
    fn is_written(&self) -> bool {
        match &self.sink {
            Sink::Disk { thread, .. } => thread.is_finished(),
            Sink::Stores { .. } => false,
        }
    }

    /// Gives parts on. Whether it is over, when nothing else is to be done now.
    fn hand_over(&mut self, journal: &mut Journal, stores: At<'_>) -> Option<bool> {
        match (&mut self.sink, stores) {
            (Sink::Disk { sender, .. }, _) => {
                while let Some(part) = self.parts.pop_front() {
                    let Some(to) = &*sender else { break };
                    match to.try_send(part) {
                        Ok(()) => {}
                        Err(TrySendError::Full(part)) => {
                            self.parts.push_front(part);
                            return Some(false);
                        }
                        Err(TrySendError::Disconnected(_)) => *sender = None,
                    }
                }
                None
            }
            (
                Sink::Stores {
                    number,
                    chunks,
                    ended,
                },
                Some((stores, place)),
            ) => {
                let number = *number;
                while let Some(part) = self.parts.pop_front() {
                    match part {
                        Part::Chunk(bytes) if stores.has_room() => {
                            *chunks += 1;
                            let part = CheckpointPart::Chunk { number, bytes };
                            stores.send_checkpoint(place, part);
                        }
                        Part::End(first_needed, end) if stores.have(place, end) => {
                            let part = CheckpointPart::End {
                                number,
                                chunks: *chunks,
                                first_needed,
                            };
                            stores.send_checkpoint(place, part);
                            *ended = true;
                        }
                        part => {
                            self.parts.push_front(part);
                            return Some(false);
                        }
                    }
                }
                let over = *ended && stores.confirmed(place);
                if over && let Some(Log::Remote(log)) = journal.log_mut() {
                    stores.end_checkpoint(place, log);
                }
                (over || *ended).then_some(over)
            }
            (Sink::Stores { .. }, None) => Some(true),
        }
    }

    /// What the writing thread came to; it has ended, or ends now because it gets no more.
    pub fn finish(self) -> Result<()> {
        match self.sink {
            Sink::Disk { sender, thread } => {
                drop(sender);
                match thread.join() {
                    Ok(result) => result.map_err(from_log),
                    Err(_) => Err(unavailable("the thread that writes a checkpoint panicked")),
                }
            }
            // What a store refuses ends the engine, or the store's part in it.
            Sink::Stores { .. } => Ok(()),
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
