//! Opening a log: the checkpoint, then the records after it, then the log to go on with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_io::{Access, AlignedBuffer, Claim, Storage, Syncing};

use crate::checkpoint::CheckpointReader;
use crate::error::LogError;
use crate::files::FileLog;
use crate::group::{FRAME_BYTES, Flaw, HEADER_BYTES, Header, Kind, Life, frame};
use crate::home::{Home, Options, claim};
use crate::judge::{Break, judge};
use crate::manifest::{Manifest, open_direct};
use crate::position::{BLOCK_BYTES, Layout, Lsn};
use crate::scan::{Expected, Image};
use crate::segment::{self, FREE, Growing, Slot};

/// A record as it is read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Where it begins.
    pub at: Lsn,
    /// Where it ends: what [`crate::Log::append`] returned for it.
    pub end: Lsn,
    /// What was appended.
    pub bytes: &'a [u8],
}

/// What a recovery found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Where the log goes on.
    pub end: Lsn,
    /// Chunks of the checkpoint.
    pub chunks: u64,
    /// Records after it.
    pub records: u64,
    /// Bytes of segments that were read.
    pub read_bytes: u64,
    /// A write that a crash cut short after its first block, never confirmed: the file, and where
    /// in it the first thing is missing.
    pub torn: Option<(PathBuf, u64)>,
}

/// A log that is being read. Take all chunks, then all records, then [`Recovery::finish`].
pub struct Recovery {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    options: Options,
    claim: Claim,
    manifest: Manifest,
    layout: Layout,
    slots: Vec<Slot>,
    checkpoint: Option<CheckpointReader>,
    image: Option<Image>,
    spare: Option<AlignedBuffer>,
    expected: Expected,
    /// Where the next group begins.
    next: Lsn,
    group: Option<Cursor>,
    ended: bool,
    found: Recovered,
    /// There was no log.
    fresh: bool,
}

/// A checked group that is being handed out.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    header: Header,
    at: usize,
    left: u32,
}

impl Recovery {
    /// Begins to read the log in `directory`, which was made before: it refuses to make a new one.
    /// Nothing else can open it meanwhile.
    ///
    /// # Errors
    /// As [`Recovery::open`], and [`LogError::NoManifest`] where there is no log.
    pub fn open_existing(
        storage: Arc<dyn Storage>,
        directory: &Path,
        options: Options,
    ) -> Result<Self, LogError> {
        // Looked for before the directory is claimed, which would make it.
        match Manifest::load(&*storage, directory)? {
            Some(_) => Self::open(storage, directory, options),
            None => Err(LogError::no_manifest(&*storage, directory)?),
        }
    }

    /// Begins to read the log in `directory`, or makes a new one there. Nothing else can open it
    /// meanwhile.
    ///
    /// # Errors
    /// [`LogError::InUse`], [`LogError::NewerVersion`], [`LogError::Damaged`],
    /// [`LogError::NoManifest`], [`LogError::Settings`], and the system's.
    pub fn open(
        storage: Arc<dyn Storage>,
        directory: &Path,
        options: Options,
    ) -> Result<Self, LogError> {
        let claim = claim(&*storage, directory)?;
        let found = Manifest::load(&*storage, directory)?;
        let fresh = found.is_none();
        let manifest = found.unwrap_or(Manifest {
            identity: options.identity,
            epoch: 0,
            epoch_start: Lsn(BLOCK_BYTES as u64),
            proven: Lsn(BLOCK_BYTES as u64),
            segment_bytes: options.segment_bytes,
            first_needed: Lsn(BLOCK_BYTES as u64),
            checkpoint: 0,
            checkpoint_chunks: 0,
            checkpoint_bytes: 0,
            files: 0,
        });
        let options = match fresh {
            true => options,
            false => options.fitted(manifest.segment_bytes),
        };
        options.check(manifest.segment_bytes)?;
        let slots = segment::slots(&*storage, directory, manifest.identity)?;
        // A log's first files are made before its manifest, and hold no segment until it is there.
        // A new log has a number of its own, so a segment that was written tells by any number that
        // a manifest is missing.
        let written = |slot: &Slot| slot.index().is_some() || slot.foreign;
        if fresh && slots.iter().any(written) {
            return Err(LogError::no_manifest(&*storage, directory)?);
        }
        check_files(directory, &manifest, &slots)?;
        let checkpoint = match manifest.checkpoint {
            0 => None,
            _ => Some(CheckpointReader::open(&*storage, directory, &manifest)?),
        };
        let layout = Layout {
            segment_bytes: manifest.segment_bytes,
        };
        Ok(Self {
            storage,
            directory: directory.to_path_buf(),
            options,
            claim,
            layout,
            slots,
            checkpoint,
            image: None,
            spare: None,
            expected: Expected::new(&manifest),
            next: layout.first_group(layout.index(manifest.first_needed)),
            group: None,
            ended: fresh,
            found: Recovered {
                end: manifest.first_needed,
                chunks: 0,
                records: 0,
                read_bytes: 0,
                torn: None,
            },
            fresh,
            manifest,
        })
    }

    /// The next chunk of the checkpoint.
    ///
    /// # Errors
    /// [`LogError::Damaged`], and the system's.
    pub fn next_chunk(&mut self) -> Result<Option<&[u8]>, LogError> {
        let Some(reader) = &mut self.checkpoint else {
            return Ok(None);
        };
        let chunk = reader.next_chunk()?;
        self.found.chunks += u64::from(chunk.is_some());
        Ok(chunk)
    }

    /// The next record after the checkpoint, in the order in which they were appended.
    ///
    /// # Errors
    /// [`LogError::Damaged`], and the system's.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, LogError> {
        let Some((at, first, past)) = self.advance()? else {
            return Ok(None);
        };
        self.found.records += 1;
        let start = self.layout.start(self.layout.index(at)).0;
        let image = self.image.as_ref();
        Ok(image.map(|image| Record {
            at,
            end: Lsn(start + past as u64),
            bytes: &image.bytes[first..past],
        }))
    }

    /// Position, first byte and end in the image of the next record that is needed.
    fn advance(&mut self) -> Result<Option<(Lsn, usize, usize)>, LogError> {
        loop {
            let Some(mut cursor) = self.group else {
                if self.ended {
                    return Ok(None);
                }
                self.next_group()?;
                continue;
            };
            if cursor.left == 0 {
                self.group = None;
                continue;
            }
            let offset = self.layout.offset(cursor.header.at) as usize;
            let end = HEADER_BYTES + cursor.header.body_bytes as usize;
            let image = self.image.as_ref().map(|image| &image.bytes[offset..]);
            let found = image.and_then(|bytes| frame(bytes, cursor.at, end));
            // The group was checked when it was found.
            let Some((first, past)) = found else {
                self.group = None;
                continue;
            };
            let at = Lsn(cursor.header.at.0 + (first - FRAME_BYTES) as u64);
            cursor.at = past;
            cursor.left -= 1;
            self.group = Some(cursor);
            if at >= self.manifest.first_needed {
                return Ok(Some((at, offset + first, offset + past)));
            }
        }
    }

    fn next_group(&mut self) -> Result<(), LogError> {
        let index = self.layout.index(self.next);
        if self.image.as_ref().is_none_or(|image| image.index != index) && !self.load(index)? {
            return self.stop(Flaw {
                offset: 0,
                what: "no segment begins here",
            });
        }
        let Some(image) = &self.image else {
            return Ok(());
        };
        self.next = self.layout.past_header(self.next);
        match self.expected.group(image, self.next) {
            Ok(header) => {
                self.expected.epoch = header.epoch;
                let after = Lsn(self.next.0 + header.span() as u64);
                self.next = match header.kind {
                    Kind::Records => after,
                    Kind::Skip => self.layout.start(index + 1),
                };
                self.group = (header.kind == Kind::Records).then_some(Cursor {
                    header,
                    at: HEADER_BYTES,
                    left: header.records,
                });
                Ok(())
            }
            Err(flaw) => self.stop(flaw),
        }
    }

    /// Reads a segment; false when no file holds it.
    fn load(&mut self, index: u64) -> Result<bool, LogError> {
        let old = self.image.take().map(|image| image.bytes);
        let holders = self.slots.iter().filter(|slot| slot.index() == Some(index));
        // Of two the later: an earlier life may have begun the same segment and lost it.
        let Some(slot) = holders.max_by_key(|slot| slot.header.map(|h| h.life.epoch)) else {
            self.spare = old;
            return Ok(false);
        };
        let buffer = old.or_else(|| self.spare.take());
        let buffer =
            buffer.unwrap_or_else(|| AlignedBuffer::zeroed(self.layout.segment_bytes as usize));
        self.image = Some(Image::read(&*self.storage, slot, index, buffer)?);
        self.found.read_bytes += self.layout.segment_bytes;
        Ok(true)
    }

    fn stop(&mut self, flaw: Flaw) -> Result<(), LogError> {
        let offset = self.layout.offset(self.next);
        let image = self.image.as_ref();
        let left = image.and_then(|image| {
            let block = image.bytes.get(offset as usize..)?.get(..BLOCK_BYTES)?;
            let header = Header::read(block)?;
            let begun = header.at == self.next && header.epoch == self.manifest.epoch;
            begun.then(|| (image.path.clone(), flaw.offset as u64))
        });
        let found = Break {
            at: self.next,
            image,
            flaw,
        };
        judge(&*self.storage, &self.slots, &self.manifest, &found)?;
        self.found.torn = left;
        self.found.end = self.next;
        self.ended = true;
        Ok(())
    }

    /// Reads what is left, repairs the end, and returns the log to append to. A group that a crash
    /// cut short is dropped; leftovers of writes behind it can never be taken for records again,
    /// because the log's epoch grows. All that was read is made stable first.
    ///
    /// # Errors
    /// [`LogError::NoRoom`] when the first segments cannot be made, [`LogError::Damaged`], and the
    /// system's.
    pub fn finish(mut self) -> Result<(FileLog, Recovered), LogError> {
        self.drain()?;
        self.settle()?;
        let life = Life {
            identity: self.manifest.identity,
            epoch: self.manifest.epoch + 1,
        };
        self.repair(life)?;
        let end = self.found.end;
        self.make_segments(life, end)?;
        let manifest = Manifest {
            epoch: life.epoch,
            epoch_start: end,
            proven: end,
            files: segment::numbered(&self.slots),
            ..self.manifest
        };
        manifest.store(&*self.storage, &self.directory)?;
        let home = Home::new(self.storage, &self.directory, self.claim, manifest);
        home.remove_old_checkpoints()?;
        let log = FileLog::new(Arc::new(home), self.options, life, end, self.slots)?;
        Ok((log, self.found))
    }

    /// Reads to the end, checking everything, and leaves the directory as it was.
    ///
    /// # Errors
    /// As [`Recovery::next_chunk`] and [`Recovery::next_record`].
    pub fn verify(mut self) -> Result<Recovered, LogError> {
        self.drain()?;
        Ok(self.found)
    }

    pub(crate) fn drain(&mut self) -> Result<Lsn, LogError> {
        while self.next_chunk()?.is_some() {}
        while self.next_record()?.is_some() {}
        Ok(self.found.end)
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What a killed process wrote may be read back and still be lost with the machine: what was in
    /// flight lies in the last two segments, see [`Options`].
    fn settle(&self) -> Result<(), LogError> {
        let last = self.layout.index(self.found.end);
        for slot in &self.slots {
            if slot.index().is_some_and(|index| index + 2 > last) {
                let access = Access::Update;
                open_direct(&*self.storage, &slot.path, access, Syncing::AtSync)?.sync()?;
            }
        }
        Ok(self.storage.sync_directory(&self.directory)?)
    }

    /// Frees files that hold no segment of the log any more.
    fn repair(&mut self, life: Life) -> Result<(), LogError> {
        let last = self.layout.index(self.found.end);
        let current = self.image.as_ref().map(|image| image.path.clone());
        for slot in &mut self.slots {
            let Some(index) = slot.index() else { continue };
            let stale = index > last || (index == last && current.as_ref() != Some(&slot.path));
            if stale {
                let header = segment::Header {
                    life,
                    index: FREE,
                    segment_bytes: self.layout.segment_bytes,
                };
                segment::write_header(&*self.storage, &slot.path, &header)?;
                slot.header = Some(header);
            }
        }
        // A file without a header was being made when the process ended: it is made again.
        self.slots.retain(|slot| slot.header.is_some());
        Ok(())
    }

    /// Makes those that a log has at first, and one where none is left for the next records: a
    /// process that was killed may have filled the last one before the next was made.
    fn make_segments(&mut self, life: Life, end: Lsn) -> Result<(), LogError> {
        let keep = self.layout.index(self.manifest.first_needed);
        let next = self.layout.index(end);
        let takes = |slot: &Slot| {
            slot.index()
                .is_none_or(|index| index == next || index < keep)
        };
        while self.slots.len() < self.options.segments || !self.slots.iter().any(takes) {
            let used = |number: &u64| self.slots.iter().any(|slot| slot.number == *number);
            let number = (0..=u64::MAX).find(|number| !used(number)).unwrap_or(0);
            let header = segment::Header {
                life,
                index: FREE,
                segment_bytes: self.layout.segment_bytes,
            };
            let (storage, directory) = (&*self.storage, &self.directory);
            let mut growing = Growing::begin(storage, directory, number, header)?;
            while !growing.step()? {}
            self.slots.push(growing.slot());
        }
        self.storage.sync_directory(&self.directory)?;
        Ok(())
    }

    /// Whether the directory held no log.
    pub fn is_new(&self) -> bool {
        self.fresh
    }
}

/// Whether all files of segments that the manifest counts are there.
fn check_files(directory: &Path, manifest: &Manifest, slots: &[Slot]) -> Result<(), LogError> {
    let there = segment::numbered(slots);
    if there >= manifest.files {
        return Ok(());
    }
    let path = Slot::path_of(directory, there);
    let made = manifest.files;
    let what = format!("the file is missing, one of the log's {made} segments");
    Err(LogError::damaged(&path, 0, what))
}

impl std::fmt::Debug for Recovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recovery")
            .field("directory", &self.directory)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}
