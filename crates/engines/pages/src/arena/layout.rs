//! Where the parts of a store lie in its memory. docs/formats/page-store.md has the table, of
//! versions 1 to 6.

use dyno_checksum::crc32c;

use super::classes::SPAN_BYTES;
use crate::PAGE_BYTES;
use crate::error::StoreError;

/// The first bytes of the memory.
pub const MAGIC: [u8; 8] = *b"DYNOPAGE";
/// The version in which each entry has a slot of its own.
pub const VERSION: u32 = 5;
/// The version in which entries with equal content may point at one slot, so that the sums in slots
/// do not depend on the page number.
pub const VERSION_SHARED: u32 = 6;
/// The same two layouts without room for a dictionary behind the arena. Such a memory is used as it
/// is, because it cannot grow under a process that holds it.
const WITHOUT_DICTIONARY: [u32; 2] = [3, 4];
/// Those two without checks in their entries; such a memory is upgraded when it is opened.
const UNCHECKED: [u32; 2] = [1, 2];
/// Room for the dictionary, its header included. Memory that no dictionary touches costs nothing.
pub const DICTIONARY_BYTES: usize = 64 * 1024;
/// Length of the header, with its checksum at the end.
pub const HEADER_BYTES: usize = 36;

/// Sizes and offsets of a store's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Pages that the store can hold.
    pub pages: u64,
    pub spans: u32,
    /// Whether entries with equal content may share a slot.
    pub shared: bool,
    /// Whether entries that point at slots have a check; in versions 1 and 2 they have none.
    pub checked: bool,
    /// Whether there is room for a dictionary behind the arena; versions 1 to 4 have none.
    pub dictionary: bool,
}

impl Layout {
    /// The layout for `pages` pages in at most `limit_bytes` of arena.
    ///
    /// # Errors
    /// If a number does not fit into its bits of an index entry.
    pub fn new(pages: u64, limit_bytes: u64) -> Result<Self, StoreError> {
        let most_bytes = crate::MOST_LIMIT_BYTES;
        if pages == 0 || pages > 1 << 40 {
            return Err(StoreError::Settings(format!(
                "{pages} pages: a store has 1 to 2^40"
            )));
        }
        let least_bytes = SPAN_BYTES as u64;
        if !(least_bytes..=most_bytes).contains(&limit_bytes) {
            let text =
                format!("limit of {limit_bytes} bytes is not from {least_bytes} to {most_bytes}");
            return Err(StoreError::Settings(text));
        }
        Ok(Self {
            pages,
            spans: (limit_bytes / SPAN_BYTES as u64) as u32,
            shared: false,
            checked: true,
            dictionary: true,
        })
    }

    /// The most spans that an entry can point into.
    pub fn most_spans() -> u32 {
        (crate::MOST_LIMIT_BYTES / SPAN_BYTES as u64) as u32
    }

    fn version(&self) -> u32 {
        let shared = usize::from(self.shared);
        match (self.checked, self.dictionary) {
            (true, true) => [VERSION, VERSION_SHARED][shared],
            (true, false) => WITHOUT_DICTIONARY[shared],
            (false, _) => UNCHECKED[shared],
        }
    }

    pub fn index_at(&self) -> usize {
        PAGE_BYTES
    }

    /// Where the class of each span is stored, one byte each.
    pub fn classes_at(&self) -> usize {
        self.index_at() + (self.pages as usize * 8).next_multiple_of(PAGE_BYTES)
    }

    pub fn arena_at(&self) -> usize {
        let end = self.classes_at() + self.spans as usize;
        end.next_multiple_of(SPAN_BYTES)
    }

    pub fn arena_end(&self) -> usize {
        self.arena_at() + self.spans as usize * SPAN_BYTES
    }

    pub fn total_bytes(&self) -> usize {
        if self.dictionary {
            self.arena_end() + DICTIONARY_BYTES
        } else {
            self.arena_end()
        }
    }

    pub fn header(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.version().to_le_bytes());
        bytes[12..16].copy_from_slice(&(PAGE_BYTES as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.pages.to_le_bytes());
        bytes[24..28].copy_from_slice(&(SPAN_BYTES as u32).to_le_bytes());
        bytes[28..32].copy_from_slice(&self.spans.to_le_bytes());
        let sum = crc32c(&bytes[..HEADER_BYTES - 4]);
        bytes[HEADER_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads a header. Its bytes may come from any file, so everything in them is checked.
    ///
    /// # Errors
    /// [`StoreError::Format`] says what is wrong; a later version is named.
    pub fn from_header(bytes: &[u8; HEADER_BYTES]) -> Result<Self, StoreError> {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        let refuse = |text: String| Err(StoreError::Format(text));
        if bytes[..8] != MAGIC {
            return refuse(format!("it starts with {:02x?}", &bytes[..8]));
        }
        if !(1..=VERSION_SHARED).contains(&word(8)) {
            let text = format!(
                "version {}, this program reads 1 to {VERSION_SHARED}",
                word(8)
            );
            return refuse(text);
        }
        if word(HEADER_BYTES - 4) != crc32c(&bytes[..HEADER_BYTES - 4]) {
            return refuse("the header's checksum is wrong".into());
        }
        if word(12) as usize != PAGE_BYTES || word(24) as usize != SPAN_BYTES {
            return refuse(format!(
                "pages of {} bytes in spans of {}",
                word(12),
                word(24)
            ));
        }
        let pages = u64::from(word(16)) | u64::from(word(20)) << 32;
        let layout = Self::new(pages, u64::from(word(28)) * SPAN_BYTES as u64)?;
        Ok(Self {
            shared: word(8).is_multiple_of(2),
            checked: !UNCHECKED.contains(&word(8)),
            dictionary: word(8) >= VERSION,
            ..layout
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_and_others_are_refused_by_name() {
        let layout = Layout::new(1000, 10 << 20).expect("fits");
        let header = layout.header();
        assert_eq!(Layout::from_header(&header).expect("own"), layout);
        for (at, word) in [
            (0, "starts"),
            (8, "version 13"),
            (17, "checksum"),
            (35, "checksum"),
        ] {
            let mut bad = header;
            bad[at] ^= if at == 8 { 8 } else { 2 };
            let error = Layout::from_header(&bad).expect_err("damaged").to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_layout_with_shared_slots_is_version_6() {
        let layout = Layout::new(1000, 10 << 20).expect("fits");
        let shared = Layout {
            shared: true,
            ..layout
        };
        assert_eq!(shared.header()[8..12], [6, 0, 0, 0]);
        assert_eq!(Layout::from_header(&shared.header()).expect("own"), shared);
    }

    #[test]
    fn the_header_of_version_1_is_the_fixture() {
        let layout = Layout {
            checked: false,
            dictionary: false,
            ..Layout::new(0x0102_0304, 5 * 0x1_0000).expect("fits")
        };
        let bytes = layout.header();
        assert_eq!(Layout::from_header(&bytes).expect("an old one"), layout);
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(
            &hex[..64],
            "44594e4f504147450100000000100000040302010000000000000100050000".to_owned() + "00"
        );
    }
}
