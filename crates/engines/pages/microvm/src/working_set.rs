//! The pages that a restored machine touches first, in their order, in a file beside the snapshot:
//! the next restore gets them before it asks.
//!
//! Restores of one snapshot begin alike, so what the first one touched is mostly what the next one
//! will. A file that is damaged, or of another snapshot, is never followed: the worst that a wrong
//! one could do is work in vain, because pages come from the snapshot in any case. The layout is in
//! docs/formats/working-set.md.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use dyno_checksum::crc32c;
use dyno_io::{Existing, FileSink, HostFiles, Output, Sink, Staged};

use crate::PagerError;
use crate::snapshot::Snapshot;

const MAGIC: &[u8; 8] = b"DYNOWSET";
const VERSION: u32 = 1;
/// Magic, version, pages of the snapshot, the hash of its bytes, and how many pages follow.
const HEAD_BYTES: usize = 8 + 4 + 8 + 32 + 4;
const SUM_BYTES: usize = 4;
const BUFFER_BYTES: usize = 64 << 10;

/// Pages of a snapshot in the order of their first touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkingSet {
    pages: Vec<u32>,
}

impl WorkingSet {
    /// A set of pages, each of which occurs once.
    pub fn new(pages: Vec<u32>) -> Self {
        Self { pages }
    }

    /// The pages, in the order of their first touch.
    pub fn pages(&self) -> &[u32] {
        &self.pages
    }

    /// The bytes of the file, for the snapshot of this content and so many pages.
    pub fn encode(&self, content: &str, snapshot_pages: u64) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(snapshot_pages.to_le_bytes());
        bytes.extend(content.as_bytes());
        bytes.extend((self.pages.len() as u32).to_le_bytes());
        bytes.extend(self.pages.iter().flat_map(|page| page.to_le_bytes()));
        bytes.extend(crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// Reads the bytes of a file. The error says why they are not a working set of this snapshot.
    ///
    /// # Errors
    /// The reason, as a sentence about the file.
    pub fn parse(bytes: &[u8], content: &str, snapshot_pages: u64) -> Result<Self, String> {
        let Some((head, rest)) = bytes.split_at_checked(HEAD_BYTES) else {
            return Err(format!("it has only {} bytes", bytes.len()));
        };
        if !head.starts_with(MAGIC) {
            return Err("it is not a working set".to_owned());
        }
        let version = word(&head[8..12]);
        if version != VERSION {
            return Err(format!(
                "it has version {version}, this program knows {VERSION}"
            ));
        }
        let count = word(&head[HEAD_BYTES - 4..]) as usize;
        // Compared before anything is allocated, because a damaged count can be any number.
        if rest.len() as u64 != count as u64 * 4 + SUM_BYTES as u64 {
            return Err(format!(
                "it has {} bytes, which is not the length of {count} pages",
                bytes.len()
            ));
        }
        let (body, sum) = bytes.split_at(bytes.len() - SUM_BYTES);
        if crc32c(body) != word(sum) {
            return Err("its checksum is another one".to_owned());
        }
        if head[12..20] != snapshot_pages.to_le_bytes() || head[20..52] != *content.as_bytes() {
            return Err("it is of another snapshot".to_owned());
        }
        let (pages, _) = rest[..count * 4].as_chunks();
        let pages: Vec<u32> = pages.iter().copied().map(u32::from_le_bytes).collect();
        if let Some(page) = pages
            .iter()
            .find(|&&page| u64::from(page) >= snapshot_pages)
        {
            return Err(format!("page {page} is not in the snapshot"));
        }
        let mut seen = HashSet::with_capacity(pages.len());
        match pages.iter().find(|&&page| !seen.insert(page)) {
            Some(page) => Err(format!("page {page} is in it twice")),
            None => Ok(Self { pages }),
        }
    }

    /// Reads the file at `path`; `Ok(None)` if it does not exist. The error says why the file
    /// cannot be used.
    ///
    /// # Errors
    /// The reason, as a sentence about the file.
    pub fn read(path: &Path, snapshot: &Snapshot) -> Result<Option<Self>, String> {
        // A longer file cannot be one of this snapshot, and is not read.
        let most = HEAD_BYTES as u64 + snapshot.pages() * 4 + SUM_BYTES as u64;
        match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
            Ok(metadata) if metadata.len() > most => {
                return Err(format!("it has {} bytes, at most {most}", metadata.len()));
            }
            Ok(_) => {}
        }
        let bytes = fs::read(path).map_err(|error| error.to_string())?;
        Self::parse(&bytes, snapshot.content(), snapshot.pages()).map(Some)
    }

    /// Writes the file in one step: another process finds the old one or the new one.
    ///
    /// # Errors
    /// [`PagerError::File`].
    pub fn write(&self, path: &Path, snapshot: &Snapshot) -> Result<(), PagerError> {
        let bytes = self.encode(snapshot.content(), snapshot.pages());
        let open = |aside: &Path| -> Result<Box<dyn Sink>, dyno_io::IoError> {
            Ok(Box::new(FileSink::create(aside, BUFFER_BYTES)?))
        };
        let mut file = Staged::create(Arc::new(HostFiles), path, Existing::Replace, open)?;
        file.write(&bytes)?;
        Box::new(file).publish()?;
        Ok(())
    }
}

fn word(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .rev()
        .fold(0, |word, &byte| word << 8 | u32::from(byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CONTENT: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn version_1_stays_what_it_is() {
        let bytes = WorkingSet::new(vec![7, 3]).encode(CONTENT, 9);
        let mut expected = b"DYNOWSET\x01\0\0\0\x09\0\0\0\0\0\0\0".to_vec();
        expected.extend(CONTENT.as_bytes());
        expected.extend(b"\x02\0\0\0\x07\0\0\0\x03\0\0\0");
        expected.extend(crc32c(&expected).to_le_bytes());
        assert_eq!(bytes, expected);
    }

    #[test]
    fn what_is_not_a_set_of_this_snapshot_is_named() {
        let set = WorkingSet::new(vec![4, 2, 8]);
        let right = set.encode(CONTENT, 9);
        assert_eq!(WorkingSet::parse(&right, CONTENT, 9), Ok(set.clone()));
        let said = |bytes: &[u8], pages| WorkingSet::parse(bytes, CONTENT, pages).expect_err("no");
        for at in 0..right.len() {
            let mut wrong = right.clone();
            wrong[at] ^= 0x20;
            let said = said(&wrong, 9);
            assert!(!said.contains("another snapshot"), "byte {at}: {said}");
            assert!(WorkingSet::parse(&right[..at], CONTENT, 9).is_err());
        }
        assert_eq!(said(&right, 10), "it is of another snapshot");
        let other = set.encode("f123456789abcdef0123456789abcdef", 9);
        assert_eq!(said(&other, 9), "it is of another snapshot");
        let beyond = WorkingSet::new(vec![9]).encode(CONTENT, 9);
        assert_eq!(said(&beyond, 9), "page 9 is not in the snapshot");
        let twice = WorkingSet::new(vec![1, 2, 1]).encode(CONTENT, 9);
        assert_eq!(said(&twice, 9), "page 1 is in it twice");
        let mut later = right.clone();
        later[8] = 2;
        assert_eq!(said(&later, 9), "it has version 2, this program knows 1");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), magic: bool) {
            let mut bytes = bytes;
            if magic {
                bytes.splice(0..0, *b"DYNOWSET\x01\0\0\0");
            }
            if let Ok(set) = WorkingSet::parse(&bytes, CONTENT, 9) {
                prop_assert_eq!(set.encode(CONTENT, 9), bytes);
            }
        }
    }
}
