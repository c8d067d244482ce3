//! Where the bytes of a file come from: a mapping, or reads of one column chunk at a time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::{Buf, Bytes};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// The bytes of a file.
#[derive(Debug)]
pub(super) enum Source {
    /// All of them, mapped.
    Mapped(Bytes),
    /// To be read.
    Read(File),
}

impl Source {
    /// The bytes of one column chunk, which begins at the first number and has as many bytes as the
    /// second says.
    pub(super) fn part(&self, (start, len): (u64, u64)) -> io::Result<Part> {
        match self {
            Source::Mapped(bytes) => Ok(Part {
                start: 0,
                bytes: bytes.clone(),
            }),
            Source::Read(file) => {
                // A footer can claim any length; the file says how much there can be.
                let there = file.metadata()?.len().saturating_sub(start);
                if len > there {
                    return Err(io::Error::other(format!(
                        "a column chunk of {len} bytes at {start}, where only {there} follow"
                    )));
                }
                let mut bytes = vec![0; len as usize];
                file.read_exact_at(&mut bytes, start)?;
                Ok(Part {
                    start,
                    bytes: bytes.into(),
                })
            }
        }
    }
}

/// A piece of a file that knows where in the file it stands.
pub(super) struct Part {
    start: u64,
    bytes: Bytes,
}

impl Part {
    fn from(&self, start: u64) -> Result<Bytes> {
        let at = start
            .checked_sub(self.start)
            .and_then(|at| usize::try_from(at).ok())
            .filter(|&at| at <= self.bytes.len())
            .ok_or_else(|| {
                ParquetError::General(format!("byte {start} lies outside of its chunk"))
            })?;
        Ok(self.bytes.slice(at..))
    }
}

impl Length for Part {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Part {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.from(start)?;
        if length > bytes.len() {
            return Err(ParquetError::EOF(format!(
                "{length} bytes at {start}, where only {} follow in the chunk",
                bytes.len()
            )));
        }
        Ok(bytes.slice(..length))
    }
}
