//! Gets the bytes of a file from a mapping, or by reading one column chunk at a time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;

/// The bytes of a file, in one of the two ways to get them.
#[derive(Debug)]
pub(super) enum Source {
    /// The whole file is mapped.
    Mapped(Bytes),
    /// Chunks are read from the file when they are needed.
    Read(File),
}

impl Source {
    /// The length of the file in bytes.
    pub(super) fn len(&self) -> io::Result<u64> {
        match self {
            Source::Mapped(bytes) => Ok(bytes.len() as u64),
            Source::Read(file) => Ok(file.metadata()?.len()),
        }
    }

    /// The bytes of one column chunk, which starts at `start` and has `len` bytes. Of a mapping it
    /// is the whole file, so that the caller must check where the chunk ends.
    pub(super) fn segment(&self, (start, len): (u64, u64)) -> io::Result<Segment> {
        match self {
            Source::Mapped(bytes) => Ok(Segment {
                start: 0,
                bytes: bytes.clone(),
            }),
            Source::Read(file) => {
                // A footer can claim any length, but the file bounds how much there can be. Memory
                // is reserved only for that.
                let there = self.len()?.saturating_sub(start);
                if len > there {
                    return Err(io::Error::other(format!(
                        "a column chunk of {len} bytes at {start}, where only {there} follow"
                    )));
                }
                let mut bytes = vec![0; len as usize];
                file.read_exact_at(&mut bytes, start)?;
                Ok(Segment {
                    start,
                    bytes: bytes.into(),
                })
            }
        }
    }
}

/// Bytes of a file that know their offset in it.
pub(super) struct Segment {
    start: u64,
    bytes: Bytes,
}

impl Segment {
    /// `len` bytes of the file from the offset `start` on, or `None` if not all of them are here.
    pub(super) fn bytes(&self, start: u64, len: u64) -> Option<Bytes> {
        let begin = self.index(start)?;
        let end = begin.checked_add(usize::try_from(len).ok()?)?;
        (end <= self.bytes.len()).then(|| self.bytes.slice(begin..end))
    }

    /// All bytes that are here from the offset `start` on, or `None` if it lies before them or
    /// behind them.
    pub(super) fn rest(&self, start: u64) -> Option<&[u8]> {
        self.bytes.get(self.index(start)?..)
    }

    fn index(&self, start: u64) -> Option<usize> {
        usize::try_from(start.checked_sub(self.start)?).ok()
    }
}
