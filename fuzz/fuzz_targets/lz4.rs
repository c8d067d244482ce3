//! The page codecs against each other: the first byte says whether the rest is a block or a page.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/parts/codec/tests/lz4_agrees/mod.rs"]
mod lz4_agrees;

fuzz_target!(|bytes: &[u8]| {
    match bytes.split_first() {
        Some((first, block)) if first % 2 == 0 => lz4_agrees::check_block(block),
        Some((_, page)) if !page.is_empty() => lz4_agrees::check_page(page),
        _ => {}
    }
});
