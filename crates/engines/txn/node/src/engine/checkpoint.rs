//! A checkpoint of one partition. Its thread makes it piece by piece between other work; another
//! thread writes the pieces, so that no client waits for a disk, or they go to the processes that
//! keep the log.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dyno_txn_api::Result;
use dyno_txn_core::{Checkpoint, Partition};
use dyno_txn_log::{Checkpointer, Log, LogError, Lsn, MOST_CHUNK_BYTES};

use super::journal::Journal;
use crate::error::{from_log, unavailable};
use crate::persist::{CheckpointPart, Stores};
use crate::pieces::cut;

/// Pieces that may wait for the disk.
const PIECES_MAX: usize = 8;
/// How often the writing thread looks whether the log has come far enough.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

enum Piece {
    Chunk(Vec<u8>),
    /// All chunks are there.
    End {
        /// Recovery reads the log from here.
        first_needed: Lsn,
        /// The log must be durable up to here before the checkpoint counts.
        durable_to: Lsn,
    },
}

/// Where the pieces go.
enum Sink {
    Disk {
        /// `None` once the thread has ended by itself, which is an error that `finish` returns.
        sender: Option<SyncSender<Piece>>,
        thread: JoinHandle<std::result::Result<(), LogError>>,
    },
    Stores {
        number: u64,
        chunks: u64,
        ended: bool,
    },
}

/// A checkpoint under way.
pub(crate) struct Checkpointing {
    /// How far the partition has come; `None` when it has been written down whole.
    cursor: Option<Checkpoint>,
    first_needed: Lsn,
    pieces: VecDeque<Piece>,
    sink: Sink,
    /// The log was full when it began, so nothing happens in the partition until it is over.
    stalled: bool,
}

/// The stores of a thread's logs, and the slot of one of its partitions.
pub(crate) struct StoreSlot<'a> {
    pub stores: &'a mut Stores,
    pub slot: usize,
}

impl Checkpointing {
    /// Begins a checkpoint. Returns `None` if the partition has no log, or if records wait for the
    /// log, because the checkpoint could not end before the log has them. A full log is the
    /// exception: only a checkpoint makes room for those records. It is right without them, because
    /// the partition is stalled until it is over and so the checkpoint shows one moment, with all
    /// their effects.
    pub fn begin(
        partition: &Partition,
        journal: &mut Journal,
        stores: Option<StoreSlot<'_>>,
    ) -> Result<Option<Self>> {
        if journal.is_behind() && !journal.is_full() {
            return Ok(None);
        }
        let stalled = journal.is_full();
        let Some((log, first_needed)) = journal.begin_checkpoint() else {
            return Ok(None);
        };
        let sink = match (log, stores) {
            (Log::Files(log), _) => {
                let checkpointer = log.checkpointer();
                let (sender, receiver) = sync_channel(PIECES_MAX);
                let thread = thread::Builder::new()
                    .name("checkpoint".to_owned())
                    .spawn(move || write(&checkpointer, &receiver))
                    .map_err(unavailable)?;
                let sender = Some(sender);
                Sink::Disk { sender, thread }
            }
            (Log::Remote(log), Some(StoreSlot { stores, slot })) => {
                stores.begin_checkpoint(slot, log);
                Sink::Stores {
                    number: dyno_txn_log::fresh_identity(),
                    chunks: 0,
                    ended: false,
                }
            }
            (Log::Memory(_) | Log::Remote(_), _) => return Ok(None),
        };
        let mut pieces = VecDeque::new();
        let cursor = partition.begin_checkpoint(&mut |record| add(&mut pieces, record));
        Ok(Some(Self {
            cursor: Some(cursor),
            first_needed,
            pieces,
            sink,
            stalled,
        }))
    }

    /// Does a bounded piece of it. Returns true if it is over; [`Checkpointing::finish`] then says
    /// how it ended.
    pub fn step(
        &mut self,
        partition: &Partition,
        journal: &mut Journal,
        stores: Option<StoreSlot<'_>>,
    ) -> bool {
        // Pieces that are there go first: no further rows are copied while the disk is behind, so
        // the memory for them stays bounded.
        if let Some(over) = self.hand_over(journal, stores) {
            return over;
        }
        let Some(cursor) = &mut self.cursor else {
            return self.is_written();
        };
        if journal.is_full() && !self.stalled {
            // The log has filled up meanwhile. This checkpoint cannot end: rows that it copied
            // while the partition was running have records that wait for room, and only the end of
            // a checkpoint makes room. It is given up for one that is begun now, while the
            // partition is stalled.
            return true;
        }
        let pieces = &mut self.pieces;
        if !partition.go_on_checkpoint(cursor, &mut |record| add(pieces, record)) {
            if journal.is_behind() && !self.stalled {
                return false;
            }
            self.cursor = None;
            // Rows were copied as they stood in memory, so the checkpoint may hold changes whose
            // records are not durable yet. It counts only when the log has them: else a crash would
            // restore changes of transactions that were never answered, and perhaps only half of
            // each.
            let durable_to = journal.log().map_or(self.first_needed, Log::end);
            self.pieces.push_back(Piece::End {
                first_needed: self.first_needed,
                durable_to,
            });
        }
        self.is_written()
    }

    /// Whether it shows the moment at which it began and is not written down whole. Until then
    /// nothing in the partition may change: the records of changes could wait behind those that the
    /// log has no room for, and a crash would restore the part of them that was copied.
    pub fn needs_stall(&self) -> bool {
        self.stalled && self.cursor.is_some()
    }

    /// Whether the writing thread has ended. Stores confirm in `hand_over`.
    fn is_written(&self) -> bool {
        match &self.sink {
            Sink::Disk { thread, .. } => thread.is_finished(),
            Sink::Stores { .. } => false,
        }
    }

    /// Hands pieces over. Returns whether the checkpoint is over, or `None` if there is room for
    /// more.
    fn hand_over(&mut self, journal: &mut Journal, stores: Option<StoreSlot<'_>>) -> Option<bool> {
        match (&mut self.sink, stores) {
            (Sink::Disk { sender, .. }, _) => {
                while let Some(piece) = self.pieces.pop_front() {
                    let Some(to) = &*sender else { break };
                    match to.try_send(piece) {
                        Ok(()) => {}
                        Err(TrySendError::Full(piece)) => {
                            self.pieces.push_front(piece);
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
                Some(StoreSlot { stores, slot }),
            ) => {
                let number = *number;
                while let Some(piece) = self.pieces.pop_front() {
                    match piece {
                        Piece::Chunk(bytes) if stores.has_room() => {
                            *chunks += 1;
                            let part = CheckpointPart::Chunk { number, bytes };
                            stores.send_checkpoint(slot, part);
                        }
                        Piece::End {
                            first_needed,
                            durable_to,
                        } if stores.have_up_to(slot, durable_to) => {
                            // Only now, as on a disk: a store that installed the checkpoint earlier
                            // would drop the log that the rows in it still need.
                            let part = CheckpointPart::End {
                                number,
                                chunks: *chunks,
                                first_needed,
                            };
                            stores.send_checkpoint(slot, part);
                            *ended = true;
                        }
                        // Back to the front: the end must come after all chunks.
                        piece => {
                            self.pieces.push_front(piece);
                            return Some(false);
                        }
                    }
                }
                let over = *ended && stores.have_confirmed(slot);
                if over && let Some(Log::Remote(log)) = journal.log_mut() {
                    stores.end_checkpoint(slot, log);
                }
                (over || *ended).then_some(over)
            }
            (Sink::Stores { .. }, None) => Some(true),
        }
    }

    /// The result of the writing thread. If that still runs it gets no more pieces, and so ends
    /// without a checkpoint; the previous one stays.
    pub fn finish(self) -> Result<()> {
        match self.sink {
            Sink::Disk { sender, thread } => {
                drop(sender);
                match thread.join() {
                    Ok(result) => result.map_err(from_log),
                    Err(_) => Err(unavailable("the thread that writes a checkpoint panicked")),
                }
            }
            // A store that refuses a checkpoint ends the engine or is disconnected, in
            // `Stores::step`.
            Sink::Stores { .. } => Ok(()),
        }
    }
}

fn add(pieces: &mut VecDeque<Piece>, record: &[u8]) {
    if record.len() <= MOST_CHUNK_BYTES {
        pieces.push_back(Piece::Chunk(record.to_vec()))
    } else {
        pieces.extend(cut(record, MOST_CHUNK_BYTES).map(Piece::Chunk))
    }
}

fn write(
    checkpointer: &Checkpointer,
    pieces: &Receiver<Piece>,
) -> std::result::Result<(), LogError> {
    let mut writer = checkpointer.begin()?;
    while let Ok(piece) = pieces.recv() {
        match piece {
            Piece::Chunk(bytes) => writer.chunk(&bytes)?,
            Piece::End {
                first_needed,
                durable_to,
            } => {
                while checkpointer.durable() < durable_to {
                    // If the log has failed it never comes so far. The partition's thread then
                    // drops the channel and joins this one, which must not wait on.
                    if let Err(TryRecvError::Disconnected) = pieces.try_recv() {
                        return Ok(());
                    }
                    thread::sleep(POLL_INTERVAL);
                }
                return writer.commit(first_needed);
            }
        }
    }
    Ok(())
}
