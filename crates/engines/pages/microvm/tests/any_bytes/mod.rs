//! Any bytes as the message of a VMM, and as the file of a working set.

use dyno_pages::PAGE_BYTES;
use dyno_pages_microvm::{Layout, MOST_REGIONS, WorkingSet};

const PAGE: u64 = PAGE_BYTES as u64;
const PAGES: u64 = 1000;
const CONTENT: &str = "00112233445566778899aabbccddeeff";

/// Reads the bytes as both. What is accepted keeps what the rest of the program relies on.
pub fn check(bytes: &[u8]) {
    if let Ok(Some(layout)) = Layout::parse(bytes, PAGES * PAGE) {
        check_layout(&layout);
    }
    if let Ok(set) = WorkingSet::parse(bytes, CONTENT, PAGES) {
        assert!(set.pages().iter().all(|&page| u64::from(page) < PAGES));
        assert_eq!(set.encode(CONTENT, PAGES), bytes);
    }
}

fn check_layout(layout: &Layout) {
    let regions = layout.regions();
    assert!((1..=MOST_REGIONS).contains(&regions.len()));
    for pair in regions.windows(2) {
        assert!(pair[0].base + pair[0].bytes <= pair[1].base, "{pair:?}");
    }
    let mut pages = 0;
    for page in 0..PAGES {
        if let Some(address) = layout.address_of(page) {
            pages += 1;
            assert_eq!(layout.page_at(address), Some(page));
            assert_eq!(layout.page_at(address + PAGE - 1), Some(page));
        }
    }
    assert_eq!(pages * PAGE, layout.bytes());
    let all = layout.pages_in(&(0..u64::MAX));
    assert_eq!(all.map(|run| run.end - run.start).sum::<u64>(), pages);
}
