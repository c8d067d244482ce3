//! Reading segments: group after group, and what follows a break.

use std::path::PathBuf;

use dyno_io::{Access, AlignedBuffer, Storage, Syncing};

use crate::error::LogError;
use crate::group::{Flaw, Header, Kind, check_body};
use crate::manifest::{Manifest, open_direct, read_into};
use crate::position::{BLOCK_BYTES, Layout, Lsn};
use crate::segment::Slot;

/// A segment in memory.
pub(crate) struct Image {
    pub index: u64,
    pub path: PathBuf,
    pub bytes: AlignedBuffer,
}

impl Image {
    /// Reads a whole segment into `buffer`, which is as long as one. What a short file lacks reads
    /// as zeros.
    pub fn read(
        storage: &dyn Storage,
        slot: &Slot,
        index: u64,
        mut buffer: AlignedBuffer,
    ) -> Result<Self, LogError> {
        let file = open_direct(storage, &slot.path, Access::Read, Syncing::AtSync)?;
        let filled = read_into(&*file, 0, &mut buffer)?;
        buffer[filled..].fill(0);
        Ok(Self {
            index,
            path: slot.path.clone(),
            bytes: buffer,
        })
    }
}

/// What groups must be like at some point of a scan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    pub layout: Layout,
    pub identity: u64,
    /// That of the group before: epochs never fall.
    pub epoch: u64,
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

    /// The group at `at`, which lies in `image`, with all of it checked.
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

    /// A header after `broken` in `image` that says `broken` was durable when it was written: then
    /// what is missing there was lost later, and is not a torn end.
    pub fn proof(&self, image: &Image, broken: Lsn) -> Option<Header> {
        let blocks = image.bytes.chunks_exact(BLOCK_BYTES).enumerate().skip(1);
        blocks
            .filter_map(|(number, block)| self.proves(number, block, broken))
            .next()
    }

    pub fn proves(&self, number: usize, block: &[u8], broken: Lsn) -> Option<Header> {
        let header = Header::read(block)?;
        let ours = header.identity == self.identity
            && header.epoch <= self.epoch_last
            && self.layout.offset(header.at) == (number * BLOCK_BYTES) as u64;
        (ours && header.at > broken && header.durable > broken).then_some(header)
    }
}
