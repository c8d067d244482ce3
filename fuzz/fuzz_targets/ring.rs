//! A ring whose other end writes anything anywhere: the bytes are its steps.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/parts/net/tests/scribbled/mod.rs"]
mod scribbled;

fuzz_target!(|steps: &[u8]| scribbled::check(steps));
