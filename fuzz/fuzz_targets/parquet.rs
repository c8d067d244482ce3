//! The reader of Parquet on any bytes.
#![no_main]

use std::fs::File;

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/parts/formats/tests/parquet_damaged/mod.rs"]
mod parquet_damaged;

fuzz_target!(|bytes: &[u8]| {
    // In memory, so that the disk does not bound how many files are tried in a second.
    let path = format!("/dev/shm/dyno-fuzz-parquet-{}", std::process::id());
    let options = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path);
    let file = options.expect("a file in memory");
    let _ = std::fs::remove_file(&path);
    parquet_damaged::read(file, bytes);
});
