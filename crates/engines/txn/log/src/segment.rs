//! Files of segments: their header, and how a file is made before it is used.

use std::path::{Path, PathBuf};

use dyno_io::{Access, AlignedBuffer, Caching, IoError, Opening, Queue, Storage, Syncing};
use dyno_io::{Meanwhile, Request, Settled, write_whole};

use crate::error::LogError;
use crate::group::Life;
use crate::manifest::{VERSION, check_front, open_direct};
use crate::position::{BLOCK_BYTES, u64_at};

const MAGIC: &[u8; 8] = b"DYNOSEGM";
pub(crate) const PREFIX: &str = "segment-";
/// Zeros in one write while a file is made.
const ZEROS_BYTES: usize = 1 << 20;

/// The index in the header of a whole file that holds no segment.
pub(crate) const FREE: u64 = u64::MAX;

/// The header of a file of a segment, in its first block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub life: Life,
    pub index: u64,
    pub segment_bytes: u64,
}

impl Header {
    pub fn block(&self) -> AlignedBuffer {
        let mut block = AlignedBuffer::zeroed(BLOCK_BYTES);
        block[..8].copy_from_slice(MAGIC);
        block[8..12].copy_from_slice(&VERSION.to_le_bytes());
        let fields = [
            self.life.identity,
            self.life.epoch,
            self.index,
            self.segment_bytes,
        ];
        for (at, field) in fields.iter().enumerate() {
            block[16 + 8 * at..24 + 8 * at].copy_from_slice(&field.to_le_bytes());
        }
        let crc = dyno_checksum::crc32c(&block[16..]);
        block[12..16].copy_from_slice(&crc.to_le_bytes());
        block
    }

    pub fn read(path: &Path, block: &[u8]) -> Result<Self, LogError> {
        check_front(path, block, MAGIC)?;
        Ok(Self {
            life: Life {
                identity: u64_at(block, 16),
                epoch: u64_at(block, 24),
            },
            index: u64_at(block, 32),
            segment_bytes: u64_at(block, 40),
        })
    }
}

/// A file that holds a segment or can hold one.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub path: PathBuf,
    pub number: u64,
    pub header: Option<Header>,
    /// The first block is not zeros and is not a header of this log: it is torn, damaged, or
    /// another log's.
    pub torn: bool,
    /// The header is another log's, and says that the file holds a segment.
    pub foreign: bool,
}

impl Slot {
    pub fn path_of(directory: &Path, number: u64) -> PathBuf {
        directory.join(format!("{PREFIX}{number:06}"))
    }

    /// The index of the segment that the file holds, if it holds one of this log.
    pub fn index(&self) -> Option<u64> {
        let header = self.header?;
        (header.index != FREE).then_some(header.index)
    }
}

/// Lists the files of segments in a directory, and reads their headers.
///
/// # Errors
/// [`LogError::NewerVersion`] and I/O errors. A damaged header is not an error here, because the
/// groups tell whether the file matters.
pub(crate) fn slots(
    storage: &dyn Storage,
    directory: &Path,
    identity: u64,
) -> Result<Vec<Slot>, LogError> {
    let mut found = Vec::new();
    for name in storage.list(directory)? {
        let Some(number) = name.strip_prefix(PREFIX).and_then(|n| n.parse().ok()) else {
            continue;
        };
        let path = directory.join(&name);
        let file = open_direct(storage, &path, Access::Read, Syncing::AtSync)?;
        let mut block = AlignedBuffer::zeroed(BLOCK_BYTES);
        let filled = file.read_at(0, &mut block)?;
        let found_header = match Header::read(&path, &block[..filled]) {
            Ok(header) => Some(header),
            // Else a file of a newer program would count as torn, and be made anew.
            Err(newer @ LogError::NewerVersion { .. }) => return Err(newer),
            Err(_) => None,
        };
        let header = found_header.filter(|header| header.life.identity == identity);
        let foreign = header.is_none() && found_header.is_some_and(|header| header.index != FREE);
        let torn = header.is_none() && block.iter().any(|&byte| byte != 0);
        found.push(Slot {
            path,
            number,
            header,
            torn,
            foreign,
        });
    }
    Ok(found)
}

/// How many files there are before the first missing number.
pub(crate) fn numbered(slots: &[Slot]) -> u64 {
    let there = |number: &u64| slots.iter().any(|slot| slot.number == *number);
    (0..).take_while(there).count() as u64
}

/// How a file is opened whose writes are stable when they end, without a separate sync.
pub(crate) const WRITING: Opening = Opening {
    access: Access::Update,
    caching: Caching::Direct,
    syncing: Syncing::EachWrite,
};

/// Opens a queue of writes. Falls back to the page cache where the file system refuses O_DIRECT.
pub(crate) fn queue(
    storage: &dyn Storage,
    path: &Path,
    opening: Opening,
    depth: usize,
) -> Result<Box<dyn Queue>, LogError> {
    match storage.queue(path, opening, depth) {
        Err(IoError::DirectRefused { .. }) => {
            let caching = Caching::Cached;
            Ok(storage.queue(path, Opening { caching, ..opening }, depth)?)
        }
        queue => Ok(queue?),
    }
}

/// Replaces a file's header, and returns when the new one is stable.
pub(crate) fn write_header(
    storage: &dyn Storage,
    path: &Path,
    header: &Header,
) -> Result<(), LogError> {
    let file = open_direct(storage, path, Access::Update, Syncing::EachWrite)?;
    Ok(write_whole(&*file, 0, &header.block())?)
}

/// A file of a segment that is being made. Its room is allocated, then all of it is written once,
/// because the first write to room that was only allocated changes the file's metadata and takes
/// twice as long.
#[derive(Debug)]
pub(crate) struct Growing {
    pub number: u64,
    path: PathBuf,
    queue: Box<dyn Queue>,
    zeros: Option<AlignedBuffer>,
    written: u64,
    header: Header,
    headed: bool,
}

impl Growing {
    /// Creates the file and allocates its room.
    ///
    /// # Errors
    /// [`LogError::NoRoom`] and I/O errors.
    pub fn begin(
        storage: &dyn Storage,
        directory: &Path,
        number: u64,
        header: Header,
    ) -> Result<Self, LogError> {
        let segment_bytes = header.segment_bytes;
        let path = Slot::path_of(directory, number);
        let opening = Opening {
            access: Access::Create,
            ..WRITING
        };
        let queue = queue(storage, &path, opening, 1)?;
        // Some file systems cannot allocate. The zeros then take the room, unless it is clear by
        // now that there is not enough.
        if !queue.device().allocate(segment_bytes)? {
            let free_bytes = storage.room_bytes(directory)?;
            if free_bytes < segment_bytes {
                // The empty file may stay: it has no header, so no reader takes it for a segment,
                // and the next attempt creates the same file again.
                return Err(LogError::NoRoom {
                    directory: directory.to_path_buf(),
                    needed_bytes: segment_bytes,
                    free_bytes,
                });
            }
        }
        Ok(Self {
            number,
            path,
            queue,
            zeros: Some(AlignedBuffer::zeroed(ZEROS_BYTES)),
            written: 0,
            header,
            headed: false,
        })
    }

    /// Does the next piece of work without waiting. Returns true when the file is whole.
    pub fn step(&mut self) -> Result<bool, LogError> {
        if let Some(ended) = self.queue.poll() {
            match ended.settle(self.queue.device())? {
                Settled::Written(request) => self.zeros = Some(request.buffer),
                Settled::Short(request) => self.queue.submit(request, Meanwhile::GoesOn)?,
            }
        }
        let Some(zeros) = self.zeros.take() else {
            // The buffer is in the write that is under way, so there is one write at a time.
            return Ok(false);
        };
        let left = self.header.segment_bytes - self.written;
        if left > 0 {
            let most = left.min(zeros.len() as u64);
            let request = Request::new(zeros, self.written, most as usize);
            self.queue.submit(request, Meanwhile::GoesOn)?;
            self.written += most;
        } else if !self.headed {
            // The header comes last, so that a file which has one is whole.
            let block = self.header.block();
            let request = Request::new(block, 0, BLOCK_BYTES);
            self.queue.submit(request, Meanwhile::GoesOn)?;
            self.headed = true;
        } else {
            return Ok(true);
        }
        Ok(false)
    }

    /// The file as a slot; it is valid once [`Growing::step`] has returned true.
    pub fn slot(&self) -> Slot {
        Slot {
            path: self.path.clone(),
            number: self.number,
            header: Some(self.header),
            torn: false,
            foreign: false,
        }
    }
}
