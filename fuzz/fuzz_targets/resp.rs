//! Commands of Redis' clients.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/engines/txn/resp/tests/any_bytes/mod.rs"]
mod any_bytes;

fuzz_target!(|bytes: &[u8]| {
    let _ = any_bytes::check(bytes);
});
