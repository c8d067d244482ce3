//! Segments of shared libraries, cut at page boundaries as the loader would map them.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::CorpusError;
use super::files::walk;
use crate::PAGE_BYTES;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segments {
    Code,
    Data,
}

/// The most pages of each kind from one library, so that no single one makes up the corpus.
const MOST_PAGES_OF_ONE: usize = 1024;
const HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
const PT_LOAD: u32 = 1;
const PF_X: u32 = 1;

pub fn segments(
    folders: &[PathBuf],
    pages: usize,
    which: Segments,
) -> Result<Vec<u8>, CorpusError> {
    let mut bytes = Vec::new();
    for path in walk(folders)? {
        if bytes.len() >= pages * PAGE_BYTES {
            break;
        }
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        if name.contains(".so") {
            read_segments(&path, which, pages, &mut bytes)?;
        }
    }
    bytes.truncate(pages * PAGE_BYTES);
    Ok(bytes)
}

fn read_segments(
    path: &Path,
    which: Segments,
    pages: usize,
    bytes: &mut Vec<u8>,
) -> Result<(), CorpusError> {
    let fail = |error| CorpusError::read("read", path, error);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(()),
        Err(error) => return Err(CorpusError::read("open", path, error)),
    };
    let mut left = MOST_PAGES_OF_ONE;
    for (offset, len) in loaded(&file, which).map_err(fail)? {
        let from = offset.next_multiple_of(PAGE_BYTES as u64);
        let whole = (offset + len).saturating_sub(from) as usize / PAGE_BYTES;
        let take = whole.min(left).min(pages - bytes.len() / PAGE_BYTES);
        let start = bytes.len();
        bytes.resize(start + take * PAGE_BYTES, 0);
        if let Err(error) = file.read_exact_at(&mut bytes[start..], from) {
            bytes.truncate(start);
            // A header that points past the end belongs to a damaged library, not to the corpus.
            if error.kind() != ErrorKind::UnexpectedEof {
                return Err(fail(error));
            }
        }
        left -= take;
    }
    Ok(())
}

/// Offset and length in the file of its segments; empty for a file that is not ELF of 64 bits.
fn loaded(file: &File, which: Segments) -> std::io::Result<Vec<(u64, u64)>> {
    let mut header = [0; HEADER_BYTES];
    match file.read_exact_at(&mut header, 0) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Vec::new()),
        done => done?,
    }
    if header[..6] != [0x7f, b'E', b'L', b'F', 2, 1] {
        return Ok(Vec::new());
    }
    let table = u64_at(&header, 32);
    let count = u16::from_le_bytes([header[56], header[57]]);
    let mut found = Vec::new();
    for at in 0..u64::from(count) {
        let mut entry = [0; PROGRAM_HEADER_BYTES];
        let place = table.saturating_add(at * PROGRAM_HEADER_BYTES as u64);
        // The table's offset and count come from the file, so the end of the file ends the search.
        if file.read_exact_at(&mut entry, place).is_err() {
            break;
        }
        let word = |from: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| entry[from + i]));
        let code = word(4) & PF_X != 0;
        if word(0) == PT_LOAD && code == (which == Segments::Code) {
            found.push((u64_at(&entry, 8), u64_at(&entry, 32)));
        }
    }
    Ok(found)
}

fn u64_at(bytes: &[u8], from: usize) -> u64 {
    u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| bytes[from + i]))
}
