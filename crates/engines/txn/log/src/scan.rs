//! Reads segments group by group, and looks for proof of damage behind a break.

use std::path::PathBuf;

use dyno_io::{Access, AlignedBuffer, Storage, Syncing};

use crate::error::LogError;
use crate::group::{Flaw, Header, Kind, check_body};
use crate::manifest::{Manifest, open_direct, read_into};
use crate::position::{BLOCK_BYTES, Layout, Lsn};
use crate::segment::Slot;

/// The bytes of a file of a segment, as read by recovery.
pub(crate) struct Image {
    pub index: u64,
    pub path: PathBuf,
    pub bytes: AlignedBuffer,
}

impl Image {
    /// Fills `buffer` from the front of a file. The buffer may be shorter than a segment, and what
    /// a short file lacks reads as zeros.
    pub fn read(
        storage: &dyn Storage,
        slot: &Slot,
        index: u64,
        mut buffer: AlignedBuffer,
    ) -> Result<Self, LogError> {
        let file = open_direct(storage, &slot.path, Access::Read, Syncing::AtSync)?;
        let filled = read_into(&*file, 0, &mut buffer)?;
        // The buffer may hold the segment before this one, whose groups must not be found again.
        buffer[filled..].fill(0);
        Ok(Self {
            index,
            path: slot.path.clone(),
            bytes: buffer,
        })
    }
}

/// What the next group of a scan must look like to belong to the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    pub layout: Layout,
    pub identity: u64,
    /// The epoch of the group before. Epochs never fall along the log.
    pub epoch: u64,
    /// The epoch of the manifest. Groups from `epoch_start` on must have it.
    pub epoch_last: u64,
    pub epoch_start: Lsn,
}

impl Expected {
    pub fn new(manifest: &Manifest) -> Self {
        Self {
            layout: Layout {
                segment_bytes: manifest.segment_bytes,
            },
            identity: manifest.identity,
            epoch: 0,
            epoch_last: manifest.epoch,
            epoch_start: manifest.epoch_start,
        }
    }

    /// Reads the group at `at`, which is in `image`, and checks all of it.
    pub fn group(&self, image: &Image, at: Lsn) -> Result<Header, Flaw> {
        let offset = self.layout.offset(at) as usize;
        let flaw = |what| Flaw { offset, what };
        let bytes = image.bytes.get(offset..).unwrap_or_default();
        let Some(header) = Header::read(bytes) else {
            return Err(flaw("no header of a group"));
        };
        if header.at != at || header.identity != self.identity {
            return Err(flaw("a group of another place or log"));
        }
        // What an earlier opening wrote from `epoch_start` on was judged not to be part of the log,
        // and a later write must not bring it back.
        let lowest = if at >= self.epoch_start {
            self.epoch_last
        } else {
            self.epoch
        };
        if !(lowest..=self.epoch_last).contains(&header.epoch) {
            return Err(flaw("a group of an earlier life of the log"));
        }
        let Some(body) = bytes.get(..header.span()) else {
            return Err(flaw("a group is longer than its segment"));
        };
        match header.kind {
            Kind::Skip => Ok(header),
            Kind::Records => check_body(&header, body)
                .map(|()| header)
                .map_err(|found| Flaw {
                    offset: offset + found.offset,
                    what: found.what,
                }),
        }
    }

    /// Finds a header after `broken` in `image` that says that `broken` was durable when it was
    /// written. What is missing at `broken` was then lost later, and is not a torn end.
    pub fn proof(&self, image: &Image, broken: Lsn) -> Option<Header> {
        // Groups begin at blocks, so every block is tried: the chain of groups is broken, and
        // cannot lead to the next header. The first block is the header of the segment.
        let blocks = image.bytes.chunks_exact(BLOCK_BYTES).enumerate().skip(1);
        blocks
            .filter_map(|(number, block)| self.proves(number, block, broken))
            .next()
    }

    pub fn proves(&self, number: usize, block: &[u8], broken: Lsn) -> Option<Header> {
        let header = Header::read(block)?;
        // The bytes of a record may look like a header. The position in it must be that of the
        // block, and the identity is not known to a client.
        let ours = header.identity == self.identity
            && header.epoch <= self.epoch_last
            && self.layout.offset(header.at) == (number * BLOCK_BYTES) as u64;
        (ours && header.at > broken && header.durable > broken).then_some(header)
    }
}
