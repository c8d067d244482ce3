//! Opens a log: reads the checkpoint and the records after it, and returns the log to append to.

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

/// A record as it was read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The position of its frame, where it begins.
    pub at: Lsn,
    /// The position at which it ends, as [`crate::Log::append`] returned it.
    pub end: Lsn,
    /// The bytes that were appended, without the frame.
    pub bytes: &'a [u8],
}

/// The result of reading a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The position at which the log continues.
    pub end: Lsn,
    /// Chunks that the checkpoint had.
    pub chunks: u64,
    /// Records that were read after the checkpoint.
    pub records: u64,
    /// Bytes read from segments, which are always read as a whole.
    pub read_bytes: u64,
    /// The file, and the offset in it of the first flaw, of a write that a crash cut short after
    /// its first block. That write was never confirmed. `None` if the end is clean.
    pub torn: Option<(PathBuf, u64)>,
}

/// A log that is being read. Read all chunks, then all records, then call [`Recovery::finish`].
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
    /// The position of the next group.
    next: Lsn,
    group: Option<Cursor>,
    ended: bool,
    found: Recovered,
    /// Whether the directory had no log.
    fresh: bool,
}

/// A checked group whose records are being returned.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    header: Header,
    at: usize,
    left: u32,
}

impl Recovery {
    /// Begins to read an existing log in `directory`, and never makes a new one. No other process
    /// can open the log meanwhile.
    ///
    /// # Errors
    /// As [`Recovery::open`], and [`LogError::NoManifest`] where there is no log.
    pub fn open_existing(
        storage: Arc<dyn Storage>,
        directory: &Path,
        options: Options,
    ) -> Result<Self, LogError> {
        // This comes before the claim, which would make the directory.
        match Manifest::load(&*storage, directory)? {
            Some(_) => Self::open(storage, directory, options),
            None => Err(LogError::no_manifest(&*storage, directory)?),
        }
    }

    /// Begins to read the log in `directory`, or makes a new one there. No other process can open
    /// the log meanwhile.
    ///
    /// # Errors
    /// [`LogError::InUse`], [`LogError::NewerVersion`], [`LogError::Damaged`],
    /// [`LogError::NoManifest`], [`LogError::Settings`], and I/O errors.
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
        let options = if fresh {
            options
        } else {
            options.fitted(manifest.segment_bytes)
        };
        options.check(manifest.segment_bytes)?;
        let slots = segment::slots(&*storage, directory, manifest.identity)?;
        // The first files of a log are made before its manifest, and hold no segment until that
        // exists. A file that does hold one therefore proves that a manifest is missing, even if
        // its header has another identity, because a new log is given a new identity.
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
            // The segment is read from its first group, because `first_needed` may be in the middle
            // of a group. Records before it are skipped.
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

    /// Returns the next chunk of the checkpoint.
    ///
    /// # Errors
    /// [`LogError::Damaged`], and I/O errors.
    pub fn next_chunk(&mut self) -> Result<Option<&[u8]>, LogError> {
        let Some(reader) = &mut self.checkpoint else {
            return Ok(None);
        };
        let chunk = reader.next_chunk()?;
        self.found.chunks += u64::from(chunk.is_some());
        Ok(chunk)
    }

    /// Returns the next record after the checkpoint, in the order of appending.
    ///
    /// # Errors
    /// [`LogError::Damaged`], and I/O errors.
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

    /// Returns the position of the next record that is needed, and its first byte and end in the
    /// image.
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
            // This does not happen, because the group was checked when it was found.
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

    /// Finds the next group, or the end of the log.
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

    /// Reads a segment. Returns false if no file holds it.
    fn load(&mut self, index: u64) -> Result<bool, LogError> {
        let old = self.image.take().map(|image| image.bytes);
        let holders = self.slots.iter().filter(|slot| slot.index() == Some(index));
        // If two files hold it, the one of the later epoch counts: a crash may have lost the switch
        // to the segment in an earlier opening, which then began it again in another file.
        let Some(slot) = holders.max_by_key(|slot| slot.header.map(|h| h.life.epoch)) else {
            self.spare = old;
            return Ok(false);
        };
        let buffer = old.or_else(|| self.spare.take());
        // The buffer of the last segment is used again. A segment may have 1 GiB, and two of them
        // would double the memory of a recovery.
        let buffer =
            buffer.unwrap_or_else(|| AlignedBuffer::zeroed(self.layout.segment_bytes as usize));
        self.image = Some(Image::read(&*self.storage, slot, index, buffer)?);
        self.found.read_bytes += self.layout.segment_bytes;
        Ok(true)
    }

    /// Decides whether the flaw at `next` is the end of the log or damage.
    fn stop(&mut self, flaw: Flaw) -> Result<(), LogError> {
        let offset = self.layout.offset(self.next);
        // A header of this epoch that was written at this very position is what is left of the last
        // write. An older one is what the file had before.
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
    /// cut short is dropped. What is left of writes after it can never be taken for records again,
    /// because the epoch of the log grows. All that was read is made stable first.
    ///
    /// # Errors
    /// [`LogError::NoRoom`] if the first segments cannot be made, [`LogError::Damaged`], and I/O
    /// errors.
    pub fn finish(mut self) -> Result<(FileLog, Recovered), LogError> {
        self.drain()?;
        self.settle()?;
        let life = Life {
            identity: self.manifest.identity,
            epoch: self.manifest.epoch + 1,
        };
        // The order matters. Everything before the manifest leaves a log that the old manifest can
        // still open, so a crash in between only means that the next recovery does it again. No
        // group is written before the manifest has the new epoch.
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

    /// Reads to the end, checks everything, and leaves the directory as it was.
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

    /// Syncs the last two segments. What a killed process wrote can be read back and still be lost
    /// with the machine, and what it had in flight is in those two, see [`Options`].
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

    /// Frees files that hold no segment of the log any more: those behind its end, and a second
    /// file for the last segment.
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
        // A file without a header was being made when the process ended, and is made again.
        self.slots.retain(|slot| slot.header.is_some());
        Ok(())
    }

    /// Makes the segments that a log has at first, and one more if none is free for the next
    /// records: a process may have been killed after it filled the last segment and before it made
    /// the next.
    fn make_segments(&mut self, life: Life, end: Lsn) -> Result<(), LogError> {
        let keep = self.layout.index(self.manifest.first_needed);
        let next = self.layout.index(end);
        let takes = |slot: &Slot| {
            slot.index()
                .is_none_or(|index| index == next || index < keep)
        };
        while self.slots.len() < self.options.segments || !self.slots.iter().any(takes) {
            // The lowest free number, so that a file that was only half made is made again under
            // its name.
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

    /// Whether the directory had no log before.
    pub fn is_new(&self) -> bool {
        self.fresh
    }
}

/// Checks that all files of segments that the manifest counts exist.
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
