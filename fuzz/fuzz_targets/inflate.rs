//! The inflaters against each other: the first byte chooses the size of the window, the rest is a
//! stream.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/parts/codec/tests/inflate_agrees/mod.rs"]
mod inflate_agrees;

fuzz_target!(|bytes: &[u8]| {
    if let Some((&first, stream)) = bytes.split_first() {
        inflate_agrees::check(stream, usize::from(first) * 64);
    }
});
