//! A client of the NBD server: the first byte chooses how far a decent one comes, the rest is what
//! it says then.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/engines/pages/nbd/tests/any_bytes/mod.rs"]
mod any_bytes;
#[path = "../../crates/engines/pages/nbd/tests/script/mod.rs"]
mod script;

fuzz_target!(|bytes: &[u8]| {
    if let Some((&first, said)) = bytes.split_first() {
        any_bytes::check(first, said);
    }
});
