//! What a broker may send: packets are read from the front until there is none, or the bytes make
//! no sense.
#![no_main]

use dyno_ingest_collect::packet::{PACKET_BYTES_MAX, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    while let Ok(Some((_, length))) = read(rest) {
        assert!((2..=PACKET_BYTES_MAX).contains(&length));
        rest = &rest[length..];
    }
});
