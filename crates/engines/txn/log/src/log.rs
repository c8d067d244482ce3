//! The three ways in which a core keeps its log, behind one face.

use crate::error::LogError;
use crate::files::FileLog;
use crate::memory::MemoryLog;
use crate::position::Lsn;
use crate::remote::RemoteLog;

/// Where records go.
#[derive(Debug)]
pub enum Log {
    /// Into files, on stable storage.
    Files(Box<FileLog>),
    /// Nowhere.
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

    /// Starts to write what was appended, if the device is free. What a remote log sends is asked
    /// for with [`RemoteLog::outgoing`].
    ///
    /// # Errors
    /// [`LogError::Poisoned`].
    pub fn submit(&mut self) -> Result<bool, LogError> {
        match self {
            Self::Files(log) => log.submit(),
            Self::Memory(_) | Self::Remote(_) => Ok(false),
        }
    }

    /// Looks what has been written, without waiting.
    ///
    /// # Errors
    /// [`LogError::Poisoned`].
    pub fn poll(&mut self) -> Result<Lsn, LogError> {
        match self {
            Self::Files(log) => log.poll(),
            Self::Memory(_) | Self::Remote(_) => Ok(self.durable()),
        }
    }

    /// How far the log is durable, in its way.
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

    /// The longest record that it takes.
    pub fn most_record_bytes(&self) -> usize {
        match self {
            Self::Files(log) => log.most_record_bytes(),
            Self::Memory(_) => usize::MAX,
            Self::Remote(log) => log.most_record_bytes(),
        }
    }
}
