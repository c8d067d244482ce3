//! Where the bytes of a file come from: a mapping, or reads of one column chunk at a time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;

/// The bytes of a file.
#[derive(Debug)]
pub(super) enum Source {
    /// All of them, mapped.
    Mapped(Bytes),
    /// To be read.
    Read(File),
}

impl Source {
    /// Bytes of the file.
    pub(super) fn len(&self) -> io::Result<u64> {
        match self {
            Source::Mapped(bytes) => Ok(bytes.len() as u64),
            Source::Read(file) => Ok(file.metadata()?.len()),
        }
    }

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
                let there = self.len()?.saturating_sub(start);
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
    /// So many bytes of the file from `start` on, where the part has them.
    pub(super) fn bytes(&self, start: u64, len: u64) -> Option<Bytes> {
        let begin = self.place(start)?;
        let end = begin.checked_add(usize::try_from(len).ok()?)?;
        (end <= self.bytes.len()).then(|| self.bytes.slice(begin..end))
    }

    /// All that the part has of the file from `start` on.
    pub(super) fn rest(&self, start: u64) -> Option<&[u8]> {
        self.bytes.get(self.place(start)?..)
    }

    fn place(&self, start: u64) -> Option<usize> {
        usize::try_from(start.checked_sub(self.start)?).ok()
    }
}
