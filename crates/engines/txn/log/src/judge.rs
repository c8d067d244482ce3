//! Tells the end of the log from damage in the middle of it.
//!
//! A scan stops at the first position without a whole group. That is the end, unless something says
//! that the position was durable once: the manifest, which is written at each opening, closing and
//! checkpoint, or the header of a later group, which says what was durable when it was written.
//! Writes that were in flight together do not prove anything about each other, so what a crash left
//! of them after a gap does not turn the gap into damage. Damage to the very last writes before a
//! crash cannot be told from a torn end, because nothing was written after them.

use dyno_io::{Access, AlignedBuffer, Storage, Syncing};

use crate::error::LogError;
use crate::group::Flaw;
use crate::manifest::{Manifest, open_direct};
use crate::position::{BLOCK_BYTES, Lsn};
use crate::scan::{Expected, Image};
use crate::segment::Slot;

/// The position at which a scan found no whole group.
pub(crate) struct Break<'a> {
    pub at: Lsn,
    /// The segment that the position is in, if there is a file for it.
    pub image: Option<&'a Image>,
    pub flaw: Flaw,
}

/// Returns `Ok` if the break is the end of the log.
///
/// # Errors
/// [`LogError::Damaged`] if it is not, and I/O errors.
pub(crate) fn judge(
    storage: &dyn Storage,
    slots: &[Slot],
    manifest: &Manifest,
    found: &Break<'_>,
) -> Result<(), LogError> {
    let expected = Expected::new(manifest);
    // The manifest may count the header of a segment as durable before that segment has a group. A
    // break at its beginning then loses nothing.
    if expected.layout.past_header(found.at) < manifest.proven {
        let proof = format!("the manifest knows {} as durable", manifest.proven);
        return Err(damage(storage, slots, &expected, found, &proof));
    }
    let broken = expected.layout.index(found.at);
    if let Some(image) = found.image
        && let Some(proof) = expected.proof(image, found.at)
    {
        let proof = format!("a group at {} was written after it", proof.at);
        return Err(damage(storage, slots, &expected, found, &proof));
    }
    for slot in slots {
        let whole = slot.torn || slot.index().is_some_and(|index| index > broken);
        let segment_bytes = expected.layout.segment_bytes as usize;
        // If the header names an older segment, or none, the first group is enough to tell whether
        // the header is right. Reading all files whole would take long for a large log.
        let bytes = if whole {
            segment_bytes
        } else {
            2 * BLOCK_BYTES
        };
        if found.image.is_some_and(|image| image.path == slot.path) {
            continue;
        }
        let buffer = AlignedBuffer::zeroed(bytes);
        let image = Image::read(storage, slot, broken, buffer)?;
        if let Some(proof) = expected.proof(&image, found.at) {
            let proof = format!("a group at {} was written after it", proof.at);
            return Err(damage(storage, slots, &expected, found, &proof));
        }
    }
    Ok(())
}

fn damage(
    storage: &dyn Storage,
    slots: &[Slot],
    expected: &Expected,
    found: &Break<'_>,
    proof: &str,
) -> LogError {
    let what = format!("{} ({}), although {proof}", found.flaw.what, found.at);
    match found.image {
        Some(image) => LogError::damaged(&image.path, found.flaw.offset as u64, what),
        None => match lost_header(storage, slots, expected, found.at) {
            Some(slot) => LogError::damaged(&slot.path, 0, format!("its header is wrong: {what}")),
            None => {
                let directory = slots.first().and_then(|slot| slot.path.parent());
                let path = directory.unwrap_or(std::path::Path::new(""));
                LogError::damaged(path, 0, format!("a segment is missing: {what}"))
            }
        },
    }
}

/// Finds the file whose first group belongs to the segment of `at`, whatever the file's header
/// says. It only makes the message better, so files that cannot be read are skipped.
fn lost_header<'a>(
    storage: &dyn Storage,
    slots: &'a [Slot],
    expected: &Expected,
    at: Lsn,
) -> Option<&'a Slot> {
    let holds = |slot: &&Slot| {
        let mut block = AlignedBuffer::zeroed(BLOCK_BYTES);
        let file = open_direct(storage, &slot.path, Access::Read, Syncing::AtSync).ok()?;
        file.read_at(BLOCK_BYTES as u64, &mut block).ok()?;
        let header = crate::group::Header::read(&block)?;
        let same = expected.layout.index(header.at) == expected.layout.index(at);
        (same && header.identity == expected.identity).then_some(())
    };
    slots.iter().find(|slot| holds(slot).is_some())
}
