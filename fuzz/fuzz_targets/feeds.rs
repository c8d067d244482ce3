//! The readers of feeds against their slow parsers: the first byte chooses the feed, the rest is
//! text.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/engines/ingest/feeds/tests/agree/mod.rs"]
mod agree;

fuzz_target!(|bytes: &[u8]| {
    if let Some((&first, text)) = bytes.split_first() {
        let feeds: Vec<_> = dyno_ingest_feeds::FEEDS
            .iter()
            .filter(|feed| feed.rows.is_some())
            .collect();
        agree::check(feeds[usize::from(first) % feeds.len()], text);
    }
});
