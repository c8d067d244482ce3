//! The store: bytes of several logs in memory, within bounds.

use std::collections::{BTreeMap, VecDeque};

use super::{Answer, PersistError, Read, Request};
use crate::position::Lsn;

/// Appended bytes are joined into pieces of up to this length, so that short appends take no more
/// memory than they are counted for.
const PIECE_BYTES: usize = 256 << 10;
/// What a chunk is counted for in addition to its bytes.
const CHUNK_COST: u64 = 64;
/// The highest position. No log becomes so long, and additions to positions above it could
/// overflow.
const LAST: Lsn = Lsn(u64::MAX / 2);

/// Keeps the logs of several partitions. One thread owns it.
#[derive(Debug)]
pub struct PersistStore {
    logs: BTreeMap<u64, Stored>,
    used_bytes: u64,
    most_bytes: u64,
    most_logs: usize,
}

#[derive(Debug, Default)]
struct Stored {
    epoch: u64,
    written_epoch: u64,
    /// Whether the log was reset and no checkpoint was installed since.
    rebuilding: bool,
    /// Bytes of the log with the position of each piece, without gaps.
    pieces: VecDeque<(Lsn, Vec<u8>)>,
    end: Lsn,
    first_needed: Lsn,
    chunks: Vec<Vec<u8>>,
    /// Chunks of a checkpoint that is being sent.
    aside: Vec<Vec<u8>>,
    aside_number: u64,
}

impl Stored {
    fn begin(&self) -> Lsn {
        self.pieces.front().map_or(self.end, |piece| piece.0)
    }

    /// Drops pieces that are completely before `first_needed`. Returns how many bytes they had.
    fn forget(&mut self) -> u64 {
        let mut freed = 0;
        while let Some((at, bytes)) = self.pieces.front() {
            if at.0 + bytes.len() as u64 > self.first_needed.0 {
                break;
            }
            freed += bytes.len() as u64;
            self.pieces.pop_front();
        }
        freed
    }
}

fn size(chunks: &[Vec<u8>]) -> u64 {
    let cost = |chunk: &Vec<u8>| chunk.len() as u64 + CHUNK_COST;
    chunks.iter().map(cost).sum()
}

impl PersistStore {
    /// Makes a store that keeps at most `most_bytes` of at most `most_logs` logs.
    pub fn new(most_bytes: u64, most_logs: usize) -> Self {
        Self {
            logs: BTreeMap::new(),
            used_bytes: 0,
            most_bytes,
            most_logs,
        }
    }

    /// Logs that were opened here.
    pub fn logs(&self) -> usize {
        self.logs.len()
    }

    /// The bound that it was made with.
    pub fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    /// Bytes of records and checkpoints in the store, as counted against the bound.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// Carries out a request of a writer.
    ///
    /// # Errors
    /// [`PersistError`]; nothing has changed then.
    pub fn handle(&mut self, request: Request) -> Result<Answer, PersistError> {
        match request {
            Request::Open { log, epoch } => self.open(log, epoch),
            Request::Append {
                log,
                epoch,
                at,
                bytes,
            } => self.append(log, epoch, at, &bytes),
            Request::Cut { log, epoch, end } => self.cut(log, epoch, end),
            Request::Reset { log, epoch, at } => {
                let stored = writer(&mut self.logs, log, epoch)?;
                if at > LAST {
                    let what = format!("{at}, which is above the highest position");
                    return Err(PersistError::NotKept { log, what });
                }
                let pieces = std::mem::take(&mut stored.pieces);
                let chunks = size(&std::mem::take(&mut stored.chunks));
                // Epoch 0 until the checkpoint is installed: a recovery must not choose a log whose
                // beginning is missing, however long its end is.
                (stored.written_epoch, stored.rebuilding) = (0, true);
                (stored.end, stored.first_needed) = (at, at);
                let bytes: u64 = pieces.iter().map(|piece| piece.1.len() as u64).sum();
                self.used_bytes -= bytes + chunks;
                Ok(Answer::Kept { end: at })
            }
            Request::Chunk {
                log,
                epoch,
                number,
                bytes,
            } => self.chunk(log, epoch, number, bytes),
            Request::Install {
                log,
                epoch,
                number,
                chunks,
                first_needed,
            } => self.install(log, epoch, (number, chunks), first_needed),
        }
    }

    /// Answers a request of a reader, with at most as many bytes as it may have and none at the end
    /// of the log.
    ///
    /// # Errors
    /// [`PersistError::Unknown`] and [`PersistError::NotKept`].
    pub fn read(&self, log: u64, read: Read) -> Result<Vec<u8>, PersistError> {
        let stored = self.logs.get(&log).ok_or(PersistError::Unknown { log })?;
        let missing = |what: String| PersistError::NotKept { log, what };
        match read {
            Read::Chunk { index } => {
                let found = stored.chunks.get(index).cloned();
                found.ok_or_else(|| missing(format!("chunk {index} of the checkpoint")))
            }
            Read::Bytes { from, most_bytes } => {
                if from < stored.begin() || from > stored.end {
                    return Err(missing(format!("bytes from {from} on")));
                }
                let mut found = Vec::new();
                for (at, bytes) in &stored.pieces {
                    let past = at.0 + bytes.len() as u64;
                    let next = from.0 + found.len() as u64;
                    if past > next {
                        let rest = &bytes[(next - at.0) as usize..];
                        let most = rest.len().min(most_bytes - found.len());
                        found.extend_from_slice(&rest[..most]);
                    }
                    if found.len() == most_bytes {
                        break;
                    }
                }
                Ok(found)
            }
        }
    }

    fn open(&mut self, log: u64, epoch: u64) -> Result<Answer, PersistError> {
        // A hostile or broken writer could open logs without end, each of which takes memory.
        if !self.logs.contains_key(&log) && self.logs.len() >= self.most_logs {
            return Err(PersistError::Unknown { log });
        }
        let stored = self.logs.entry(log).or_default();
        // An equal epoch is refused as well. Two engines that started with the same epoch must not
        // both write.
        if epoch <= stored.epoch {
            let epoch = stored.epoch;
            return Err(PersistError::Fenced { log, epoch });
        }
        stored.epoch = epoch;
        // The chunks of the fenced writer can never be installed now.
        self.used_bytes -= size(&std::mem::take(&mut stored.aside));
        Ok(Answer::Opened {
            written_epoch: stored.written_epoch,
            first_needed: stored.first_needed,
            chunks: stored.chunks.len() as u64,
            end: stored.end,
        })
    }

    fn append(
        &mut self,
        log: u64,
        epoch: u64,
        at: Lsn,
        bytes: &[u8],
    ) -> Result<Answer, PersistError> {
        let stored = writer(&mut self.logs, log, epoch)?;
        // A gap would make the bytes behind it look like the log's. The writer is told where to
        // continue.
        let end = stored.end;
        if at > end {
            return Err(PersistError::Gap { log, end });
        }
        // A writer repeats what it has no confirmation for, so the store may have the front of the
        // bytes, or all of them.
        let known = (end.0 - at.0).min(bytes.len() as u64) as usize;
        let bytes = &bytes[known..];
        room(self.used_bytes, self.most_bytes, bytes.len() as u64)?;
        // A log that is rebuilt counts only from its checkpoint on, see `Reset`.
        if !stored.rebuilding {
            stored.written_epoch = epoch;
        }
        if !bytes.is_empty() {
            self.used_bytes += bytes.len() as u64;
            stored.end.0 += bytes.len() as u64;
            match stored.pieces.back_mut() {
                Some((_, last)) if last.len() + bytes.len() <= PIECE_BYTES => {
                    last.extend_from_slice(bytes);
                }
                _ => stored.pieces.push_back((end, bytes.to_vec())),
            }
        }
        Ok(Answer::Kept { end: stored.end })
    }

    fn cut(&mut self, log: u64, epoch: u64, end: Lsn) -> Result<Answer, PersistError> {
        let stored = writer(&mut self.logs, log, epoch)?;
        if end > stored.end {
            let end = stored.end;
            return Err(PersistError::Gap { log, end });
        }
        if end < stored.begin() {
            let what = format!("bytes before {end}");
            return Err(PersistError::NotKept { log, what });
        }
        // Pieces behind the new end go, and the one that contains it is shortened.
        while let Some((at, bytes)) = stored.pieces.back_mut() {
            let keep = end.0.saturating_sub(at.0).min(bytes.len() as u64) as usize;
            self.used_bytes -= (bytes.len() - keep) as u64;
            bytes.truncate(keep);
            if keep > 0 {
                break;
            }
            stored.pieces.pop_back();
        }
        stored.end = end;
        if !stored.rebuilding {
            stored.written_epoch = epoch;
        }
        Ok(Answer::Kept { end })
    }

    fn chunk(
        &mut self,
        log: u64,
        epoch: u64,
        number: u64,
        bytes: Vec<u8>,
    ) -> Result<Answer, PersistError> {
        let stored = writer(&mut self.logs, log, epoch)?;
        // A number that is new means that the last checkpoint was given up, and that its chunks are
        // of no use.
        if stored.aside_number != number {
            self.used_bytes -= size(&std::mem::take(&mut stored.aside));
            stored.aside_number = number;
        }
        let cost = bytes.len() as u64 + CHUNK_COST;
        room(self.used_bytes, self.most_bytes, cost)?;
        self.used_bytes += cost;
        stored.aside.push(bytes);
        Ok(Answer::Done)
    }

    fn install(
        &mut self,
        log: u64,
        epoch: u64,
        (number, chunks): (u64, u64),
        first_needed: Lsn,
    ) -> Result<Answer, PersistError> {
        let stored = writer(&mut self.logs, log, epoch)?;
        // The count tells a checkpoint of which a chunk was lost on the way. A position that goes
        // back would ask for log that was dropped before.
        let whole = stored.aside_number == number && stored.aside.len() as u64 == chunks;
        if !whole || first_needed > stored.end || first_needed < stored.first_needed {
            let what = format!("checkpoint {number} of {chunks} chunks, from {first_needed} on");
            return Err(PersistError::NotKept { log, what });
        }
        let new = std::mem::take(&mut stored.aside);
        self.used_bytes -= size(&std::mem::replace(&mut stored.chunks, new));
        stored.first_needed = first_needed;
        (stored.written_epoch, stored.rebuilding) = (epoch, false);
        self.used_bytes -= stored.forget();
        Ok(Answer::Done)
    }
}

/// The log, if the writer with this epoch is its last one.
fn writer(
    logs: &mut BTreeMap<u64, Stored>,
    log: u64,
    epoch: u64,
) -> Result<&mut Stored, PersistError> {
    let stored = logs.get_mut(&log).ok_or(PersistError::Unknown { log })?;
    if stored.epoch == epoch {
        return Ok(stored);
    }
    let epoch = stored.epoch;
    Err(PersistError::Fenced { log, epoch })
}

fn room(used_bytes: u64, most_bytes: u64, more: u64) -> Result<(), PersistError> {
    if used_bytes.saturating_add(more) <= most_bytes {
        return Ok(());
    }
    Err(PersistError::Full {
        used_bytes,
        most_bytes,
    })
}
