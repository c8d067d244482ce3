//! The writer's side: what each store lacks, and how far enough stores have the log.

use super::PersistError;
use crate::error::LogError;
use crate::group::FRAME_BYTES;
use crate::position::{Lsn, crc_seed, u32_at};

/// Settings of a remote log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteOptions {
    /// The number that names the log in every store.
    pub log: u64,
    /// The writer's epoch, with which it opened the log at every store.
    pub epoch: u64,
    /// How many stores there are.
    pub stores: usize,
    /// How many must have a record before it is durable; at least 1.
    pub needed: usize,
    /// Bytes of records that may wait for stores.
    pub window_bytes: usize,
    /// The most bytes of one message, which also bounds a record.
    pub message_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
struct Replica {
    connected: bool,
    sent: Lsn,
    acked: Lsn,
    /// The store lacks bytes that have left the window.
    behind: bool,
    /// The store is sent a checkpoint and all records after it, and counts only once it has the
    /// checkpoint.
    joining: bool,
}

/// Bytes to send to one store in [`super::Request::Append`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// The position of the first byte.
    pub at: Lsn,
    /// Frames of records, or parts of them.
    pub bytes: &'a [u8],
}

/// The sending side of a log that other processes keep in memory.
#[derive(Debug)]
pub struct RemoteLog {
    options: RemoteOptions,
    /// Frames that some store may still need.
    window: Vec<u8>,
    /// Position of the window's first byte.
    base: Lsn,
    replicas: Vec<Replica>,
    durable: Lsn,
    failed: Option<String>,
}

impl RemoteLog {
    /// Makes a log that continues at `end`, with no store connected.
    ///
    /// # Errors
    /// [`LogError::Settings`].
    pub fn new(options: RemoteOptions, end: Lsn) -> Result<Self, LogError> {
        let sound = (1..=options.stores).contains(&options.needed)
            && options.message_bytes > FRAME_BYTES
            && options.window_bytes >= options.message_bytes;
        if !sound {
            let what = "a remote log needs 1 to all of its stores, and a window of a message";
            return Err(LogError::Settings {
                what: what.to_owned(),
            });
        }
        let replica = Replica {
            connected: false,
            sent: end,
            acked: end,
            behind: false,
            joining: false,
        };
        Ok(Self {
            window: Vec::new(),
            base: end,
            replicas: vec![replica; options.stores],
            durable: end,
            failed: None,
            options,
        })
    }

    /// Appends a record to the window.
    ///
    /// # Errors
    /// [`LogError::Busy`] while the window is full, [`LogError::RecordTooLarge`],
    /// [`LogError::Poisoned`] once another writer has the log.
    pub fn append(&mut self, record: &[u8]) -> Result<Lsn, LogError> {
        self.check()?;
        let most = self.most_record_bytes();
        if record.len() > most {
            return Err(LogError::RecordTooLarge {
                len_bytes: record.len(),
                most_bytes: most,
            });
        }
        let more = FRAME_BYTES + record.len();
        // A slow store must not stop the log while enough others are fast. It is given up, and is
        // brought up to date with a checkpoint.
        if self.window.len() + more > self.options.window_bytes {
            self.leave_behind();
        }
        if self.window.len() + more > self.options.window_bytes {
            let in_flight = self.replicas.iter().filter(|r| r.connected).count();
            return Err(LogError::Busy { in_flight });
        }
        let at = self.end();
        // The epoch is not in the checksum: a later writer leaves these bytes as they are.
        let len = (record.len() as u32).to_le_bytes();
        let seed = crc_seed(at.0, 0, self.options.log);
        let crc = dyno_checksum::append(dyno_checksum::append(seed, &len), record);
        self.window.extend_from_slice(&crc.to_le_bytes());
        self.window.extend_from_slice(&len);
        self.window.extend_from_slice(record);
        Ok(self.end())
    }

    /// The longest record in bytes that one message can carry.
    pub fn most_record_bytes(&self) -> usize {
        self.options.message_bytes - FRAME_BYTES
    }

    /// The end of the last record appended.
    pub fn end(&self) -> Lsn {
        Lsn(self.base.0 + self.window.len() as u64)
    }

    /// The position up to which `needed` stores have the log.
    pub fn durable(&self) -> Lsn {
        self.durable
    }

    /// Returns what to send to a store next. Each byte is returned once per connection.
    pub fn outgoing(&mut self, store: usize) -> Option<Outgoing<'_>> {
        let end = self.end();
        let replica = self.replicas.get_mut(store)?;
        if !replica.connected || replica.behind || replica.sent >= end {
            return None;
        }
        let at = replica.sent;
        let first = (at.0 - self.base.0) as usize;
        let past = self.window.len().min(first + self.options.message_bytes);
        replica.sent = Lsn(self.base.0 + past as u64);
        Some(Outgoing {
            at,
            bytes: &self.window[first..past],
        })
    }

    /// Notes that a store was opened with this log's epoch and has the log up to `end`. Returns
    /// false if it lacks bytes that have left the window, so that it must be brought up from
    /// another store first.
    pub fn connected(&mut self, store: usize, end: Lsn) -> bool {
        let reach = self.base..=self.end();
        // A store may also have more than this log, from a writer that was fenced before it could
        // tell anyone. It counts as behind until it is cut or reset.
        let Some(replica) = self.replicas.get_mut(store) else {
            return false;
        };
        (replica.connected, replica.joining) = (true, false);
        replica.behind = !reach.contains(&end);
        if !replica.behind {
            (replica.sent, replica.acked) = (end, end);
        }
        let fit = !replica.behind;
        self.settle();
        fit
    }

    /// Lets a store that has nothing join: it is sent everything from the current end on, and gets
    /// what is before that in a checkpoint. Its confirmations do not count before
    /// [`RemoteLog::joined`].
    pub fn join(&mut self, store: usize) -> Lsn {
        let end = self.end();
        if let Some(replica) = self.replicas.get_mut(store) {
            (replica.connected, replica.joining, replica.behind) = (true, true, false);
            replica.sent = end;
        }
        end
    }

    /// Notes that a joining store has its checkpoint, and all records after it up to `end`.
    pub fn joined(&mut self, store: usize, end: Lsn) {
        if let Some(replica) = self.replicas.get_mut(store)
            && replica.joining
        {
            replica.joining = false;
            replica.acked = replica.acked.max(end);
        }
        self.settle();
    }

    /// Notes that a store is gone. What it did not confirm is sent again when it comes back.
    pub fn disconnected(&mut self, store: usize) {
        if let Some(replica) = self.replicas.get_mut(store) {
            (replica.connected, replica.joining) = (false, false);
            replica.sent = replica.acked;
        }
    }

    /// Notes that a store has the log up to `end`. A position that was not sent yet is ignored,
    /// because the store cannot have it.
    pub fn acknowledged(&mut self, store: usize, end: Lsn) {
        if let Some(replica) = self.replicas.get_mut(store)
            && end <= replica.sent
            && !(replica.behind || replica.joining)
        {
            replica.acked = replica.acked.max(end);
        }
        self.settle();
    }

    /// Handles a refusal: sends again what the store lacks, or stops the log if another writer has
    /// it.
    pub fn refused(&mut self, store: usize, error: &PersistError) {
        match error {
            PersistError::Fenced { .. } => self.failed = Some(error.to_string()),
            PersistError::Gap { .. }
            | PersistError::Full { .. }
            | PersistError::Unknown { .. }
            | PersistError::NotKept { .. } => self.disconnected(store),
        }
    }

    /// The stores that must be brought up from another one before they count again.
    pub fn behind(&self) -> impl Iterator<Item = usize> + '_ {
        let replicas = self.replicas.iter().enumerate();
        replicas
            .filter(|(_, replica)| replica.behind)
            .map(|(at, _)| at)
    }

    /// Splits bytes of log `log` that were read back from `at` on into records, each with its end.
    /// Stops at the first frame that is not whole.
    ///
    /// # Errors
    /// The position of a frame that is whole and wrong.
    pub fn records(log: u64, at: Lsn, bytes: &[u8]) -> Result<Vec<(Lsn, &[u8])>, Lsn> {
        let mut found = Vec::new();
        let mut offset = 0;
        // A frame that is cut off is not damage: the caller reads on from its beginning.
        while let Some(rest) = bytes.get(offset..).filter(|rest| rest.len() >= FRAME_BYTES) {
            let place = Lsn(at.0 + offset as u64);
            let past = FRAME_BYTES + u32_at(rest, 4) as usize;
            let Some(frame) = rest.get(..past) else {
                break;
            };
            let seed = crc_seed(place.0, 0, log);
            if dyno_checksum::append(seed, &frame[4..]) != u32_at(frame, 0) {
                return Err(place);
            }
            offset += past;
            found.push((Lsn(at.0 + offset as u64), &frame[FRAME_BYTES..]));
        }
        Ok(found)
    }

    fn check(&self) -> Result<(), LogError> {
        match &self.failed {
            None => Ok(()),
            Some(reason) => Err(LogError::Poisoned {
                directory: format!("log {} (remote)", self.options.log).into(),
                reason: reason.clone(),
            }),
        }
    }

    /// Recomputes how far the log is durable, and drops what no store needs any more.
    fn settle(&mut self) {
        // The position that the `needed`th best store has is the one that at least `needed` stores
        // have.
        let mut acked: Vec<Lsn> = self.replicas.iter().map(|replica| replica.acked).collect();
        acked.sort_unstable_by(|a, b| b.cmp(a));
        let durable = acked.get(self.options.needed - 1).copied();
        self.durable = durable.unwrap_or(self.durable).max(self.durable);
        let lacking = self.replicas.iter().filter(|replica| !replica.behind);
        let least = lacking.map(|replica| replica.acked).min();
        self.forget(least.unwrap_or(self.durable).min(self.durable));
    }

    /// Gives up on stores that have not confirmed what is durable without them.
    fn leave_behind(&mut self) {
        let durable = self.durable;
        for replica in &mut self.replicas {
            replica.behind |= replica.acked < durable;
        }
        self.forget(durable);
    }

    /// Drops the front of the window, but only if that is at least half of it: each drop copies the
    /// rest, and so the copying stays proportional to what is appended.
    fn forget(&mut self, upto: Lsn) {
        let drop = upto.0.saturating_sub(self.base.0) as usize;
        if drop > 0 && drop >= self.window.len() / 2 {
            self.window.drain(..drop);
            self.base = upto;
        }
    }
}
