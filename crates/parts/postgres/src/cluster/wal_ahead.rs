//! Creates segments of the write-ahead log before they are needed.
//!
//! A server that needs the next segment and finds none to recycle fills one with zeros and syncs it
//! while all commits wait: 16 MiB, tens of milliseconds, again and again until the first checkpoint
//! leaves some to recycle. It takes a file of the right name and length as it is, which is what
//! recycled ones are (XLogFileInitInternal in xlog.c), so a new cluster gets some while no client
//! waits.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::PgError;
use crate::os::{Owner, sync_dir};

/// One write's worth of zeros.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
/// Bytes of log covered by the segments whose names share the first two words.
const LOG_BYTES: u64 = 1 << 32;

/// Creates the segments that follow the last one in `dir`, about `bytes` of them. The server must
/// not be running.
pub(super) fn make_ahead(dir: &Path, bytes: u64, owner: &Owner) -> Result<(), PgError> {
    let Some((last, segment_bytes)) = last_segment(dir).map_err(PgError::io("read", dir))? else {
        return Ok(());
    };
    for ahead in 1..=bytes / segment_bytes {
        let path = dir.join(last.after(ahead, segment_bytes));
        let mut options = OpenOptions::new();
        let made = options.write(true).create_new(true).mode(0o600).open(&path);
        let file = made.map_err(PgError::io("create", &path))?;
        owner.give_file(&file, &path)?;
        fill(&file, segment_bytes).map_err(PgError::io("write", &path))?;
    }
    sync_dir(dir)
}

/// Writes zeros instead of only reserving room, because a first write into reserved room would cost
/// each commit a write of the file system's journal.
fn fill(mut file: &File, bytes: u64) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        let piece = left.min(ZEROS.len() as u64);
        file.write_all(&ZEROS[..piece as usize])?;
        left -= piece;
    }
    file.sync_data()
}

/// The parts of a segment's name: its timeline and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Segment {
    timeline: u32,
    log: u32,
    within: u32,
}

impl Segment {
    fn parse(name: &str) -> Option<Segment> {
        let digits = name.len() == 24 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let word = |at: usize| u32::from_str_radix(&name[at..at + 8], 16).ok();
        if !digits {
            return None;
        }
        Some(Segment {
            timeline: word(0)?,
            log: word(8)?,
            within: word(16)?,
        })
    }

    /// The name of the segment that comes `ahead` after this one (XLogFileName in xlog_internal.h).
    fn after(self, ahead: u64, segment_bytes: u64) -> String {
        let in_log = LOG_BYTES / segment_bytes;
        let number = u64::from(self.log) * in_log + u64::from(self.within) + ahead;
        let (log, within) = (number / in_log, number % in_log);
        format!("{:08X}{log:08X}{within:08X}", self.timeline)
    }
}

/// The last segment in a directory, and its length.
fn last_segment(dir: &Path) -> io::Result<Option<(Segment, u64)>> {
    let mut last = None;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if let Some(segment) = entry.file_name().to_str().and_then(Segment::parse) {
            last = last.max(Some((segment, entry.metadata()?.len())));
        }
    }
    // A length that is not a power of two is not a whole segment and says nothing.
    Ok(last.filter(|(_, bytes)| bytes.is_power_of_two() && *bytes <= LOG_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn names_count_on_into_the_next_log() {
        let first = Segment::parse("0000000100000000000000FE").unwrap();
        assert_eq!(first.after(1, 16 * MIB), "0000000100000000000000FF");
        assert_eq!(first.after(2, 16 * MIB), "000000010000000100000000");
        assert_eq!(first.after(2, MIB), "000000010000000000000100");
        assert_eq!(Segment::parse("archive_status"), None);
        assert_eq!(Segment::parse("00000001.history"), None);
    }

    #[test]
    fn segments_follow_the_last_one_and_are_as_long() {
        let dir = tempfile::tempdir().unwrap();
        let owner = match Owner::resolve(None) {
            Ok(owner) => owner,
            Err(error) => return println!("skipped: segments made ahead: {error}"),
        };
        for name in ["000000010000000000000001", "000000010000000000000002"] {
            fs::write(dir.path().join(name), vec![7; MIB as usize]).unwrap();
        }
        make_ahead(dir.path(), 3 * MIB + 5, &owner).unwrap();
        let length = |name: &str| dir.path().join(name).metadata().map(|m| m.len()).ok();
        for name in [3, 4, 5].map(|number| format!("00000001{number:016X}")) {
            assert_eq!(length(&name), Some(MIB), "{name}");
        }
        assert_eq!(length("000000010000000000000006"), None);
        assert_eq!(
            fs::read(dir.path().join("000000010000000000000002")).unwrap()[0],
            7
        );
    }
}
