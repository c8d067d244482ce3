//! One interface to the three kinds of log that a core may have.

use dyno_io::Meanwhile;

use crate::error::LogError;
use crate::files::FileLog;
use crate::memory::MemoryLog;
use crate::position::Lsn;
use crate::remote::RemoteLog;

/// A log of one of the three kinds. Positions of different kinds are not comparable.
#[derive(Debug)]
pub enum Log {
    /// Into files, on stable storage.
    Files(Box<FileLog>),
    /// Nowhere: records are counted and dropped.
    Memory(MemoryLog),
    /// To other processes, which keep them in memory.
    Remote(Box<RemoteLog>),
}

impl Log {
    /// Appends a record; it is durable when [`Log::durable`] reaches the position that is returned.
    ///
    /// # Errors
    /// [`LogError::Busy`], [`LogError::Full`] and [`LogError::RecordTooLarge`]: nothing was
    /// appended, and the log goes on. [`LogError::Poisoned`].
    pub fn append(&mut self, record: &[u8]) -> Result<Lsn, LogError> {
        match self {
            Self::Files(log) => log.append(record),
            Self::Memory(log) => Ok(log.append(record)),
            Self::Remote(log) => log.append(record),
        }
    }

    /// Starts to write what was appended, if the device is free, and returns whether it did. The
    /// bytes of a remote log are fetched with [`RemoteLog::outgoing`] instead.
    ///
    /// # Errors
    /// [`LogError::Poisoned`].
    pub fn submit(&mut self, meanwhile: Meanwhile) -> Result<bool, LogError> {
        match self {
            Self::Files(log) => log.submit(meanwhile),
            Self::Memory(_) | Self::Remote(_) => Ok(false),
        }
    }

    /// Handles the writes that have ended, without waiting. Returns how far the log is durable.
    ///
    /// # Errors
    /// [`LogError::Poisoned`].
    pub fn poll(&mut self) -> Result<Lsn, LogError> {
        match self {
            Self::Files(log) => log.poll(),
            Self::Memory(_) | Self::Remote(_) => Ok(self.durable()),
        }
    }

    /// How far the log is durable: on the disk, at enough stores, or at once for a memory log.
    pub fn durable(&self) -> Lsn {
        match self {
            Self::Files(log) => log.durable(),
            Self::Memory(log) => log.end(),
            Self::Remote(log) => log.durable(),
        }
    }

    /// The end of the last record appended.
    pub fn end(&self) -> Lsn {
        match self {
            Self::Files(log) => log.end(),
            Self::Memory(log) => log.end(),
            Self::Remote(log) => log.end(),
        }
    }

    /// The longest record in bytes that [`Log::append`] accepts.
    pub fn most_record_bytes(&self) -> usize {
        match self {
            Self::Files(log) => log.most_record_bytes(),
            Self::Memory(_) => usize::MAX,
            Self::Remote(log) => log.most_record_bytes(),
        }
    }
}
