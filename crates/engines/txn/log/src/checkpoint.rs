//! Checkpoints. A checkpoint is a file of opaque chunks that becomes current when the manifest
//! names it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_io::{
    Access, AlignedBuffer, Blocks, Caching, DirectSink, Durability, FileSink, Sink, Storage,
    Syncing,
};

use crate::error::LogError;
use crate::home::Home;
use crate::manifest::{Manifest, VERSION, check_front, open_direct, read_into};
use crate::position::{BLOCK_BYTES, Lsn, crc_seed, u32_at, u64_at};

const MAGIC: &[u8; 8] = b"DYNOCKPT";
const FRAME_BYTES: usize = 8;
const BUFFER_BYTES: usize = 1 << 20;

/// The longest chunk of a checkpoint.
pub const MOST_CHUNK_BYTES: usize = 16 << 20;

/// Writes checkpoints and backups of a log that continues meanwhile. Its calls block, so they
/// belong on another thread than the one that polls the log.
#[derive(Debug, Clone)]
pub struct Checkpointer {
    home: Arc<Home>,
}

impl Checkpointer {
    pub(crate) fn new(home: Arc<Home>) -> Self {
        Self { home }
    }

    pub(crate) fn home(&self) -> &Arc<Home> {
        &self.home
    }

    /// How far the log is on the disk.
    pub fn durable(&self) -> Lsn {
        self.home.durable()
    }

    /// Begins a checkpoint. A log writes one checkpoint at a time.
    ///
    /// # Errors
    /// [`LogError::CheckpointUnderWay`] and I/O errors.
    pub fn begin(&self) -> Result<CheckpointWriter, LogError> {
        let mut state = self.home.state();
        if state.checkpoint_under_way {
            return Err(LogError::CheckpointUnderWay {
                directory: self.home.directory.clone(),
            });
        }
        let number = state.next_checkpoint;
        state.next_checkpoint = number.saturating_add(1);
        let identity = state.manifest.identity;
        let path = Manifest::checkpoint_path(&self.home.directory, number);
        let storage = &*self.home.storage;
        let file = open_direct(storage, &path, Access::Create, Syncing::AtSync)?;
        let mut sink: Box<dyn Sink> = match file.caching() {
            Caching::Direct => Box::new(DirectSink::over(file, BUFFER_BYTES, None)),
            Caching::Cached => Box::new(FileSink::over(file, BUFFER_BYTES)),
        };
        sink.write(&header(identity, number))?;
        state.checkpoint_under_way = true;
        drop(state);
        Ok(CheckpointWriter {
            home: Arc::clone(&self.home),
            sink,
            path,
            number,
            identity,
            chunks: 0,
            committed: false,
        })
    }
}

fn header(identity: u64, number: u64) -> Vec<u8> {
    let mut block = vec![0u8; BLOCK_BYTES];
    block[..8].copy_from_slice(MAGIC);
    block[8..12].copy_from_slice(&VERSION.to_le_bytes());
    block[16..24].copy_from_slice(&identity.to_le_bytes());
    block[24..32].copy_from_slice(&number.to_le_bytes());
    let crc = dyno_checksum::crc32c(&block[16..]);
    block[12..16].copy_from_slice(&crc.to_le_bytes());
    block
}

/// A checkpoint that is being written. Dropping it without [`CheckpointWriter::commit`] removes it.
#[derive(Debug)]
pub struct CheckpointWriter {
    home: Arc<Home>,
    sink: Box<dyn Sink>,
    path: PathBuf,
    number: u64,
    identity: u64,
    chunks: u64,
    committed: bool,
}

impl CheckpointWriter {
    /// Appends a chunk. Recovery returns the chunks in this order.
    ///
    /// # Errors
    /// [`LogError::RecordTooLarge`] above [`MOST_CHUNK_BYTES`], and I/O errors.
    pub fn chunk(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        if bytes.len() > MOST_CHUNK_BYTES {
            return Err(LogError::RecordTooLarge {
                len_bytes: bytes.len(),
                most_bytes: MOST_CHUNK_BYTES,
            });
        }
        let len = (bytes.len() as u32).to_le_bytes();
        // The number of the chunk is in the seed, so chunks that change places are found.
        let seed = crc_seed(self.chunks, self.number, self.identity);
        let crc = dyno_checksum::append(dyno_checksum::append(seed, &len), bytes);
        self.sink.write(&crc.to_le_bytes())?;
        self.sink.write(&len)?;
        self.sink.write(bytes)?;
        self.chunks += 1;
        Ok(())
    }

    /// Bytes of the file so far, with its header and frames.
    pub fn written_bytes(&self) -> u64 {
        self.sink.written_bytes()
    }

    /// Makes the checkpoint current. Recovery then begins with it and continues with the records
    /// that begin at or after `first_needed`. Segments before that are recycled.
    ///
    /// # Errors
    /// [`LogError::CheckpointPosition`] if `first_needed` is not durable or is before the last
    /// checkpoint's: the last checkpoint then stays current. I/O errors: either checkpoint may then
    /// be current after a restart, and both are whole.
    pub fn commit(mut self, first_needed: Lsn) -> Result<(), LogError> {
        let bytes = self.sink.finish(Durability::Stable)?;
        let low = self.home.state().manifest.first_needed;
        let high = self.home.durable();
        if !(low..=high).contains(&first_needed) {
            return Err(LogError::CheckpointPosition {
                asked: first_needed,
                low,
                high,
            });
        }
        // The name of the file must be stable before the manifest that refers to it.
        self.home.storage.sync_directory(&self.home.directory)?;
        let (number, chunks) = (self.number, self.chunks);
        // From here on the new file may be current even if storing the manifest fails, because the
        // rename may have happened. The destructor must not remove the file any more.
        self.committed = true;
        let changed = self.home.change(|manifest| {
            manifest.proven = high.max(manifest.proven);
            manifest.first_needed = first_needed;
            manifest.checkpoint = number;
            manifest.checkpoint_chunks = chunks;
            manifest.checkpoint_bytes = bytes;
        });
        // Only now. A checkpoint that began before this could also be committed before this, and
        // then this commit would bring back a `first_needed` whose segments are recycled already.
        self.home.state().checkpoint_under_way = false;
        changed?;
        self.home.remove_old_checkpoints()
    }
}

impl Drop for CheckpointWriter {
    fn drop(&mut self) {
        if !self.committed {
            self.home.state().checkpoint_under_way = false;
            // If that fails, the next recovery removes the file, because no manifest names it.
            let _ = self.home.storage.remove(&self.path);
        }
    }
}

/// Reads the chunks of a checkpoint in order, through a window of four buffers.
pub(crate) struct CheckpointReader {
    file: Box<dyn Blocks>,
    path: PathBuf,
    manifest: Manifest,
    window: AlignedBuffer,
    /// The offset in the file of the window's first byte.
    base: u64,
    filled: usize,
    at: usize,
    read_chunks: u64,
    chunk: Vec<u8>,
}

impl CheckpointReader {
    pub fn open(
        storage: &dyn Storage,
        directory: &Path,
        manifest: &Manifest,
    ) -> Result<Self, LogError> {
        let path = Manifest::checkpoint_path(directory, manifest.checkpoint);
        if !storage.exists(&path)? {
            return Err(LogError::damaged(
                &path,
                0,
                "the current checkpoint is gone",
            ));
        }
        let file = open_direct(storage, &path, Access::Read, Syncing::AtSync)?;
        // A cut file must not pass: its chunks would check out one by one.
        let len = file.len_bytes()?;
        if len != manifest.checkpoint_bytes {
            let wanted = manifest.checkpoint_bytes;
            let what = format!("a checkpoint of {wanted} bytes is {len} bytes long");
            return Err(LogError::damaged(&path, len.min(wanted), what));
        }
        let mut reader = Self {
            file,
            path,
            manifest: *manifest,
            window: AlignedBuffer::zeroed(4 * BUFFER_BYTES),
            base: 0,
            filled: 0,
            at: 0,
            read_chunks: 0,
            chunk: Vec::new(),
        };
        reader.fill()?;
        let front = &reader.window[..reader.filled.min(BLOCK_BYTES)];
        check_front(&reader.path, front, MAGIC)?;
        let stated = (u64_at(front, 16), u64_at(front, 24));
        if stated != (manifest.identity, manifest.checkpoint) {
            let what = "a checkpoint of another log";
            return Err(LogError::damaged(&reader.path, 16, what));
        }
        reader.at = BLOCK_BYTES;
        Ok(reader)
    }

    pub fn next_chunk(&mut self) -> Result<Option<&[u8]>, LogError> {
        let begin = self.base + self.at as u64;
        if self.read_chunks == self.manifest.checkpoint_chunks {
            let end = self.manifest.checkpoint_bytes;
            if begin != end {
                return Err(LogError::damaged(&self.path, begin, "more than all chunks"));
            }
            return Ok(None);
        }
        let mut frame = [0u8; FRAME_BYTES];
        self.read(&mut frame, begin)?;
        let len = u32_at(&frame, 4) as usize;
        // The length is not covered by a checksum that was checked yet, so it is bounded before
        // memory is allocated for it.
        if len > MOST_CHUNK_BYTES {
            return Err(LogError::damaged(&self.path, begin, "a chunk is too long"));
        }
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.resize(len, 0);
        self.read(&mut chunk, begin)?;
        let seed = crc_seed(
            self.read_chunks,
            self.manifest.checkpoint,
            self.manifest.identity,
        );
        let crc = dyno_checksum::append(dyno_checksum::append(seed, &frame[4..]), &chunk);
        self.chunk = chunk;
        if crc != u32_at(&frame, 0) {
            let what = "a chunk's checksum is wrong";
            return Err(LogError::damaged(&self.path, begin, what));
        }
        self.read_chunks += 1;
        Ok(Some(&self.chunk))
    }

    fn read(&mut self, into: &mut [u8], begin: u64) -> Result<(), LogError> {
        let mut taken = 0;
        while taken < into.len() {
            if self.at == self.filled {
                self.base += self.filled as u64;
                self.at = 0;
                self.fill()?;
                if self.filled == 0 {
                    let what = "a chunk is longer than its file";
                    return Err(LogError::damaged(&self.path, begin, what));
                }
            }
            let most = (self.filled - self.at).min(into.len() - taken);
            let from = &self.window[self.at..self.at + most];
            into[taken..taken + most].copy_from_slice(from);
            taken += most;
            self.at += most;
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<(), LogError> {
        self.filled = read_into(&*self.file, self.base, &mut self.window)?;
        Ok(())
    }
}
