//! Recovery of a log: the first byte says how much of the input is a second segment, the rest is
//! the bytes of segments beside a sound manifest and checkpoint.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/engines/txn/log/tests/bytes/mod.rs"]
mod bytes;

const MANIFEST: &[u8] =
    include_bytes!("../../crates/engines/txn/log/tests/fixture-v1/manifest");
const CHECKPOINT: &[u8] =
    include_bytes!("../../crates/engines/txn/log/tests/fixture-v1/checkpoint-000001");

fuzz_target!(|input: &[u8]| {
    if let Some((&first, rest)) = input.split_first() {
        let (one, two) = rest.split_at(rest.len() * usize::from(first) / 256);
        bytes::check(&[
            ("manifest", MANIFEST),
            ("checkpoint-000001", CHECKPOINT),
            ("segment-000000", one),
            ("segment-000001", two),
        ]);
    }
});
