//! The scanner against the slow parser: the first byte chooses the size of blocks, the rest is
//! text.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/engines/ingest/tests/oracle/mod.rs"]
mod oracle;
#[path = "../../crates/engines/ingest/tests/scan_agrees/mod.rs"]
mod scan_agrees;

fuzz_target!(|bytes: &[u8]| {
    if let Some((&first, text)) = bytes.split_first() {
        scan_agrees::check(text, 1 + usize::from(first) * 8);
    }
});
