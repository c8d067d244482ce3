//! The body of the fuzz target `kafka` on a seeded corpus.

#[path = "any_bytes/mod.rs"]
mod any_bytes;

use dyno_random::Random;

/// ApiVersions and Metadata, each in a flexible version and in one before it.
const REQUESTS: [&[u8]; 4] = [
    b"\0\x12\0\0\0\0\0\x07\xff\xff",
    b"\0\x12\0\x03\0\0\0\x07\xff\xff\0\x02a\x02b\0",
    b"\0\x03\0\x04\0\0\0\x07\xff\xff\0\0\0\x01\0\x01t\0",
    b"\0\x03\0\x09\0\0\0\x07\xff\xff\0\x02\x02t\0\0\0\0\0",
];

#[test]
fn damaged_requests_and_batches_are_errors() {
    let mut random = Random::new(3);
    for request in REQUESTS {
        assert_eq!(any_bytes::check(request), (true, false), "{request:02x?}");
        for _ in 0..20_000 {
            let mut bytes = request.to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] = random.bits() as u8;
            }
            bytes.truncate(1 + random.below(bytes.len()));
            any_bytes::check(&bytes);
        }
    }
    for length in 0..200 {
        for _ in 0..100 {
            let mut bytes = vec![0; length];
            random.fill(&mut bytes);
            any_bytes::check(&bytes);
        }
    }
}
