//! The decoder of frames: the first byte chooses how the stream is cut, the rest is the stream.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/parts/net/tests/frames/mod.rs"]
mod frames;

fuzz_target!(|bytes: &[u8]| {
    if let Some((&first, stream)) = bytes.split_first() {
        frames::check(stream, 1 + usize::from(first));
    }
});
