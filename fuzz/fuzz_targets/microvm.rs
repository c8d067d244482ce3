//! The message of a VMM to the pager of microVMs, and the file of a working set.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/engines/pages/microvm/tests/any_bytes/mod.rs"]
mod any_bytes;

fuzz_target!(|bytes: &[u8]| any_bytes::check(bytes));
