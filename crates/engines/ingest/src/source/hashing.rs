//! Hashes a file's bytes, while they are read or in a pass of its own.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use twox_hash::XxHash3_128;

use crate::{Error, Result};

/// Length and hash of what a [`HashingReader`] has read, for its owner at the end.
#[derive(Clone, Default)]
pub(super) struct Passed {
    bytes: Arc<AtomicU64>,
    hasher: Arc<Mutex<XxHash3_128>>,
}

impl Passed {
    /// Bytes read so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Their XXH3-128, 32 hex digits.
    pub(super) fn hash(&self) -> String {
        let hasher = self.hasher.lock();
        format!("{:032x}", hasher.finish_128())
    }
}

/// Hashes and counts the bytes that are read through it.
pub(super) struct HashingReader<R> {
    reader: R,
    passed: Passed,
    /// Bytes read by all readers together, for a progress display.
    total: Option<Arc<AtomicU64>>,
}

impl<R: Read> HashingReader<R> {
    pub(super) fn new(reader: R, passed: Passed, total: Option<Arc<AtomicU64>>) -> Self {
        HashingReader {
            reader,
            passed,
            total,
        }
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.reader.read(buffer)?;
        // The lock is not contended, because the owner asks for the hash after the last read. It
        // lets the reader move to the thread that inflates.
        self.passed.hasher.lock().write(&buffer[..n]);
        self.passed.bytes.fetch_add(n as u64, Ordering::Relaxed);
        if let Some(total) = &self.total {
            total.fetch_add(n as u64, Ordering::Relaxed);
        }
        Ok(n)
    }
}

/// Length and XXH3-128 (32 hex digits) of a file's bytes.
///
/// # Errors
/// [`Error::Io`].
pub fn hash_file(path: &Path) -> Result<(u64, String)> {
    let file = File::open(path).map_err(|e| Error::io("open", path, e))?;
    let passed = Passed::default();
    let mut reader = HashingReader::new(file, passed.clone(), None);
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok((passed.bytes(), passed.hash())),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io("read", path, e)),
        }
    }
}
