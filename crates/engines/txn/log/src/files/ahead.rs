//! Prepares the file of the next segment before it is needed.

use super::{BESIDES, FileLog, Writing};
use crate::error::LogError;
use crate::segment::{self, FREE, Growing, Slot, WRITING};

impl FileLog {
    /// Opens a free file for the next segment, or continues to make one. A failure is reported only
    /// when the segment is needed, because it does not touch the records in the log.
    pub(super) fn prepare(&mut self) -> Result<(), LogError> {
        if self.ready.is_some() {
            return Ok(());
        }
        if self.growing.is_some() && !self.grow() {
            return Ok(());
        }
        let free = self.slots.iter().position(|slot| self.is_free(slot));
        if let Some(at) = free {
            let slot = &self.slots[at];
            let depth = self.options.depth + BESIDES;
            let queue = segment::queue(&*self.home.storage, &slot.path, WRITING, depth);
            match queue {
                Ok(queue) => {
                    self.ready = Some(Writing {
                        number: slot.number,
                        index: FREE,
                        queue,
                    });
                    self.growth_failure = None;
                }
                Err(error) => self.growth_failure = Some(error.to_string()),
            }
        } else if self.slots.len() < self.options.segments_most && self.growth_failure.is_none() {
            // After a failure no poll tries again, because the disk is most likely full. `switch`
            // does, once the segment is needed.
            self.begin_to_grow();
        }
        Ok(())
    }

    /// Whether the file may become the next segment.
    fn is_free(&self, slot: &Slot) -> bool {
        // A file whose writes are in flight is not free, even if a checkpoint has made its segment
        // unnecessary meanwhile: those writes would land in the new segment.
        let keep = self.layout.index(self.home.keep_from());
        let mut written = self.draining.iter().chain([&self.active]);
        slot.index().is_none_or(|index| index < keep)
            && !written.any(|writing| writing.number == slot.number)
    }

    /// The error for a switch without a free file. A file that is being made will be there soon;
    /// else only a checkpoint helps.
    pub(super) fn no_segment(&self) -> LogError {
        if self.growing.is_some() {
            return LogError::Busy {
                in_flight: self.spans.len(),
            };
        }
        LogError::Full {
            directory: self.home.directory.clone(),
            segments: self.slots.len(),
            why: self.growth_failure.clone(),
        }
    }

    fn begin_to_grow(&mut self) {
        let last = self.slots.iter().map(|slot| slot.number).max();
        let number = last.map_or(0, |last| last + 1);
        let header = segment::Header {
            life: self.life,
            index: FREE,
            segment_bytes: self.layout.segment_bytes,
        };
        let home = &self.home;
        match Growing::begin(&*home.storage, &home.directory, number, header) {
            Ok(growing) => self.growing = Some(growing),
            Err(error) => self.growth_failure = Some(error.to_string()),
        }
    }

    /// Continues to make a file. Returns true once it is whole or has failed.
    fn grow(&mut self) -> bool {
        let Some(growing) = &mut self.growing else {
            return true;
        };
        let stepped = growing.step().and_then(|whole| {
            if whole {
                self.home.storage.sync_directory(&self.home.directory)?;
            }
            Ok(whole)
        });
        let grown = growing.slot();
        let counted = stepped.and_then(|whole| {
            if whole {
                self.slots.push(grown);
                // Before anything is written to the file: from then on recovery must notice if it
                // is missing.
                let files = segment::numbered(&self.slots);
                self.home.change(|manifest| manifest.files = files)?;
            }
            Ok(whole)
        });
        match counted {
            Ok(false) => return false,
            Ok(true) => {}
            Err(error) => self.growth_failure = Some(error.to_string()),
        }
        self.growing = None;
        true
    }
}
