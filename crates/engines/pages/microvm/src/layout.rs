//! Where the memory of a virtual machine is, as its VMM says it: a pure function from the bytes of
//! the message to regions that were checked.
//!
//! The message is Firecracker's: a JSON array of objects with `base_host_virt_addr`, `size` and
//! `offset` (in the snapshot), all in bytes, and `page_size`. Older versions have `page_size_kib`
//! beside it or alone, which holds bytes in spite of its name; versions before pages could be huge
//! have neither.

use std::ops::Range;

use dyno_pages::PAGE_BYTES;
use serde::Deserialize;

use crate::PagerError;

/// The most regions of one virtual machine. Firecracker has two, and one more for each device that
/// adds memory.
pub const MOST_REGIONS: usize = 64;
/// The longest message that is read.
pub const MOST_MESSAGE_BYTES: usize = 64 << 10;

const PAGE: u64 = PAGE_BYTES as u64;

/// A part of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// Address of its first byte in the VMM.
    pub base: u64,
    /// Its length in bytes, in whole pages.
    pub bytes: u64,
    /// Where its contents are in the snapshot, in bytes.
    pub offset: u64,
}

/// All memory of a virtual machine: regions that overlap neither in the VMM nor in the snapshot, so
/// that each page of the snapshot has at most one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// In the order of addresses.
    regions: Vec<Region>,
    /// Indices of regions in the order of the snapshot.
    by_offset: Vec<usize>,
}

/// An element of the message.
#[derive(Deserialize)]
#[serde(expecting = "an object with base_host_virt_addr, size and offset")]
struct Described {
    base_host_virt_addr: u64,
    size: u64,
    offset: u64,
    page_size: Option<u64>,
    page_size_kib: Option<u64>,
}

impl Layout {
    /// Reads a message, or what has come of it. Returns `None` if it is not complete yet.
    ///
    /// # Errors
    /// [`PagerError::Message`], [`PagerError::Regions`], [`PagerError::Region`].
    pub fn parse(message: &[u8], snapshot_bytes: u64) -> Result<Option<Self>, PagerError> {
        let mut values = serde_json::Deserializer::from_slice(message).into_iter();
        let described: Vec<Described> = match values.next() {
            None => return Ok(None),
            Some(Err(error)) if error.is_eof() => return Ok(None),
            Some(Err(error)) => return Err(PagerError::Message(error.to_string())),
            Some(Ok(described)) => described,
        };
        let rest = &message[values.byte_offset()..];
        if rest.iter().any(|byte| !byte.is_ascii_whitespace()) {
            let what = format!("{} bytes follow it", rest.len());
            return Err(PagerError::Message(what));
        }
        for (region, described) in described.iter().enumerate() {
            described.check_page_size(region)?;
        }
        let regions = described.iter().map(|described| Region {
            base: described.base_host_virt_addr,
            bytes: described.size,
            offset: described.offset,
        });
        Self::from_regions(regions.collect(), snapshot_bytes).map(Some)
    }

    /// Checks regions, in any order.
    ///
    /// # Errors
    /// [`PagerError::Regions`], [`PagerError::Region`].
    pub fn from_regions(regions: Vec<Region>, snapshot_bytes: u64) -> Result<Self, PagerError> {
        if !(1..=MOST_REGIONS).contains(&regions.len()) {
            return Err(PagerError::Regions {
                regions: regions.len(),
                most: MOST_REGIONS,
            });
        }
        for (at, region) in regions.iter().enumerate() {
            region
                .check(snapshot_bytes)
                .map_err(|why| PagerError::Region { region: at, why })?;
        }
        refuse_overlaps(&regions, "memory", Region::addresses)?;
        let in_snapshot = |region: &Region| region.offset..region.offset + region.bytes;
        refuse_overlaps(&regions, "part of the snapshot", in_snapshot)?;
        let mut regions = regions;
        regions.sort_by_key(|region| region.base);
        let mut by_offset: Vec<usize> = (0..regions.len()).collect();
        by_offset.sort_by_key(|&at| regions[at].offset);
        Ok(Self { regions, by_offset })
    }

    /// The regions in the order of addresses.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Bytes of memory in all regions.
    pub fn bytes(&self) -> u64 {
        self.regions.iter().map(|region| region.bytes).sum()
    }

    /// The page of the snapshot whose place is at `address`.
    pub fn page_at(&self, address: u64) -> Option<u64> {
        let behind = self
            .regions
            .partition_point(|region| region.base <= address);
        let region = &self.regions[behind.checked_sub(1)?];
        let at = address - region.base;
        (at < region.bytes).then(|| (region.offset + at) / PAGE)
    }

    /// The address of a page of the snapshot; `None` if this machine does not have it.
    pub fn address_of(&self, page: u64) -> Option<u64> {
        let offset = page.checked_mul(PAGE)?;
        let by_offset = &self.by_offset;
        let behind = by_offset.partition_point(|&at| self.regions[at].offset <= offset);
        let region = &self.regions[by_offset[behind.checked_sub(1)?]];
        let at = offset - region.offset;
        (at < region.bytes).then(|| region.base + at)
    }

    /// Whether a region begins at `address`.
    pub fn begins_region(&self, address: u64) -> bool {
        let found = self
            .regions
            .binary_search_by_key(&address, |region| region.base);
        found.is_ok()
    }

    /// The pages of the snapshot whose places lie in these addresses, as runs.
    pub fn pages_in(&self, addresses: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
        self.regions.iter().filter_map(move |region| {
            let all = region.addresses();
            let start = addresses.start.max(all.start);
            let end = addresses.end.min(all.end);
            let page = |address: u64| (region.offset + (address - region.base)) / PAGE;
            (start < end).then(|| page(start)..page(end - 1) + 1)
        })
    }
}

impl Described {
    fn check_page_size(&self, region: usize) -> Result<(), PagerError> {
        let bytes = match (self.page_size, self.page_size_kib) {
            (Some(bytes), _) => bytes,
            // No page has as few bytes as the number of its KiB, so one number cannot be taken for
            // the other.
            (None, Some(kib)) if kib == PAGE / 1024 || kib == 2048 => kib * 1024,
            (None, Some(bytes)) => bytes,
            (None, None) => PAGE,
        };
        if bytes == PAGE {
            return Ok(());
        }
        let why = format!(
            "its pages have {bytes} bytes, and only pages of {PAGE} bytes are served: load the \
             snapshot with `huge_pages` set to `None`"
        );
        Err(PagerError::Region { region, why })
    }
}

impl Region {
    fn addresses(&self) -> Range<u64> {
        self.base..self.base + self.bytes
    }

    fn check(&self, snapshot_bytes: u64) -> Result<(), String> {
        let parts = [
            ("address", self.base),
            ("size", self.bytes),
            ("offset", self.offset),
        ];
        for (name, value) in parts {
            if value % PAGE != 0 {
                return Err(format!("its {name} {value} is not a multiple of {PAGE}"));
            }
        }
        if self.bytes == 0 {
            return Err("it has no bytes".to_owned());
        }
        if self.base.checked_add(self.bytes).is_none() {
            return Err(format!(
                "{} bytes from address {:#x} do not end within the address space",
                self.bytes, self.base
            ));
        }
        match self.offset.checked_add(self.bytes) {
            Some(end) if end <= snapshot_bytes => Ok(()),
            _ => Err(format!(
                "{} bytes from offset {} end behind the snapshot, which has {snapshot_bytes}",
                self.bytes, self.offset
            )),
        }
    }
}

/// Names the region that begins within another one.
fn refuse_overlaps(
    regions: &[Region],
    what: &str,
    range: impl Fn(&Region) -> Range<u64>,
) -> Result<(), PagerError> {
    let mut order: Vec<usize> = (0..regions.len()).collect();
    order.sort_by_key(|&at| range(&regions[at]).start);
    for pair in order.windows(2) {
        if range(&regions[pair[1]]).start < range(&regions[pair[0]]).end {
            let why = format!("its {what} overlaps that of region {}", pair[0]);
            return Err(PagerError::Region {
                region: pair[1],
                why,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNAPSHOT: u64 = 16 * PAGE;

    fn said(message: &str) -> String {
        match Layout::parse(message.as_bytes(), SNAPSHOT) {
            Ok(Some(layout)) => format!("{} regions", layout.regions.len()),
            Ok(None) => "not complete".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    fn region(base: u64, size: u64, offset: u64) -> String {
        format!(r#"{{"base_host_virt_addr":{base},"size":{size},"offset":{offset}}}"#)
    }

    #[test]
    fn every_form_of_the_message_is_read() {
        let with = |more: &str| {
            format!(r#"[{{"base_host_virt_addr":65536,"size":4096,"offset":0{more}}}]"#)
        };
        for more in [
            "",
            r#","page_size":4096"#,
            r#","page_size":4096,"page_size_kib":4096"#,
            r#","page_size_kib":4096"#,
            r#","page_size_kib":4"#,
            r#","of_a_later_version":[1,{"a":null}]"#,
        ] {
            assert_eq!(said(&with(more)), "1 regions", "{more}");
        }
        assert_eq!(said(&format!(" {}\n ", with(""))), "1 regions");
    }

    #[test]
    fn huge_pages_are_refused_by_their_size() {
        for (more, bytes) in [
            (r#","page_size":2097152,"page_size_kib":2097152"#, 2_097_152),
            (r#","page_size_kib":2048"#, 2_097_152),
            (r#","page_size":1073741824"#, 1 << 30),
            (r#","page_size":0"#, 0),
        ] {
            let message = format!(r#"[{{"base_host_virt_addr":0,"size":4096,"offset":0{more}}}]"#);
            let expected = format!("region 0: its pages have {bytes} bytes, and only pages of");
            assert!(said(&message).starts_with(&expected), "{}", said(&message));
        }
    }

    #[test]
    fn a_message_that_is_cut_anywhere_is_not_complete() {
        let whole = format!(
            "[{},{}]",
            region(65536, 4096, 4096),
            region(4096, 8192, 8192)
        );
        for cut in 0..whole.len() {
            assert_eq!(said(&whole[..cut]), "not complete", "{cut}");
        }
        assert_eq!(said(&whole), "2 regions");
    }

    #[test]
    fn what_cannot_be_served_is_refused_by_name() {
        let all = |regions: &[String]| format!("[{}]", regions.join(","));
        let cases = [
            ("[]".to_owned(), "0 regions of memory: 1 to 64"),
            (all(&vec![region(0, 4096, 0); 65]), "65 regions of memory"),
            ("{}".to_owned(), "not an array of memory regions"),
            ("[7]".to_owned(), "not an array of memory regions"),
            (r#"[{"size":4096}]"#.to_owned(), "missing field"),
            (all(&[region(0, 4096, 0)]) + "x", "1 bytes follow it"),
            ("[".repeat(500), "expected u64"),
            (all(&[region(1, 4096, 0)]), "address 1 is not a multiple"),
            (all(&[region(0, 4097, 0)]), "size 4097 is not a multiple"),
            (all(&[region(0, 4096, 9)]), "offset 9 is not a multiple"),
            (all(&[region(0, 0, 0)]), "it has no bytes"),
            (
                all(&[region(u64::MAX - 4095, 8192, 0)]),
                "do not end within the address space",
            ),
            (
                all(&[region(0, 4096, SNAPSHOT)]),
                "4096 bytes from offset 65536 end behind the snapshot, which has 65536",
            ),
            (
                all(&[region(0, 4096, u64::MAX - 4095)]),
                "end behind the snapshot",
            ),
            (
                all(&[region(8192, 4096, 0), region(0, 12288, 4096)]),
                "region 0: its memory overlaps that of region 1",
            ),
            (
                all(&[region(0, 8192, 0), region(65536, 4096, 4096)]),
                "region 1: its part of the snapshot overlaps that of region 0",
            ),
        ];
        for (message, expected) in cases {
            let said = said(&message);
            assert!(said.contains(expected), "{expected:?} is not in {said:?}");
        }
    }

    #[test]
    fn addresses_and_pages_find_each_other() {
        let message = format!(
            "[{},{}]",
            region(0x10000, 3 * PAGE, 4 * PAGE),
            region(0x8000, 2 * PAGE, 10 * PAGE)
        );
        let layout = Layout::parse(message.as_bytes(), SNAPSHOT)
            .expect("right")
            .expect("whole");
        for page in 0..16 {
            let address = layout.address_of(page);
            let has = (4..7).contains(&page) || (10..12).contains(&page);
            assert_eq!(address.is_some(), has, "page {page}");
            if let Some(address) = address {
                assert_eq!(layout.page_at(address + 77), Some(page));
            }
        }
        for address in [0, 0x7fff, 0xa000, 0xffff, 0x13000, u64::MAX] {
            assert_eq!(layout.page_at(address), None, "{address:#x}");
        }
        let pages: Vec<_> = layout.pages_in(&(0x9000..0x11001)).collect();
        assert_eq!(pages, [11..12, 4..6]);
        assert_eq!(layout.pages_in(&(5..5)).count(), 0);
    }
}
