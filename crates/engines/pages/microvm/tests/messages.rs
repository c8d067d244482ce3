//! Messages and working sets made by rule and by chance: nothing panics, and what is accepted is
//! sound.

mod any_bytes;

use dyno_pages_microvm::stand_in::message;
use dyno_pages_microvm::{Layout, Region};
use proptest::prelude::*;

/// Regions that mostly fit: in pages, near each other.
fn regions() -> impl Strategy<Value = Vec<Region>> {
    let region = (0..40u64, 0..12u64, 0..30u64, 0..20u64);
    let region = region.prop_map(|(base, pages, offset, odd)| Region {
        base: base * 4096 + u64::from(odd == 0),
        bytes: pages * 4096,
        offset: offset * 4096,
    });
    proptest::collection::vec(region, 0..5)
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        any_bytes::check(&bytes);
    }

    #[test]
    fn a_message_that_is_cut_or_changed_is_read_or_refused(
        regions in regions(), cut in any::<prop::sample::Index>(), other: u8,
    ) {
        let whole = message(&regions);
        any_bytes::check(&whole);
        let at = cut.index(whole.len());
        any_bytes::check(&whole[..at]);
        let mut changed = whole;
        changed[at] = other;
        any_bytes::check(&changed);
    }

    /// Against the obvious way: every page and every address by itself.
    #[test]
    fn regions_that_overlap_are_refused_and_others_are_not(regions in regions()) {
        let aligned = regions.iter().all(|region| region.base % 4096 == 0 && region.bytes > 0);
        let overlaps = |start: fn(&Region) -> u64| {
            let pages = regions.iter().flat_map(|region| {
                let first = start(region) / 4096;
                first..first + region.bytes / 4096
            });
            let mut pages: Vec<u64> = pages.collect();
            let all = pages.len();
            pages.sort_unstable();
            pages.dedup();
            pages.len() < all
        };
        let sound = !regions.is_empty()
            && aligned
            && !overlaps(|region| region.base)
            && !overlaps(|region| region.offset);
        let parsed = Layout::parse(&message(&regions), 1000 * 4096);
        prop_assert_eq!(parsed.is_ok(), sound, "{:?}", parsed);
    }
}
