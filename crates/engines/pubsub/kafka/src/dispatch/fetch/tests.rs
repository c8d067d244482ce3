//! How much of what the broker has answered becomes a response.

use dyno_pubsub::record::{Codec, compress, encode};
use dyno_pubsub::wire::{Rest, RowHead, Rows};

use super::*;

/// An answer of rows of one record each. Its value is this many zeros, which take few bytes as they
/// are stored.
fn repetitive(rows: usize, value_bytes: usize) -> Fetched {
    let mut raw = Vec::new();
    encode(&mut raw, 0, None, &[], &vec![0; value_bytes]).unwrap();
    let body = compress(Codec::Lz4, &raw).unwrap();
    let heads = (0..rows).flat_map(|row| {
        let head = RowHead {
            base_offset: row as i64,
            count: 1,
            bytes: body.len() as u32,
            first_time_us: 0,
            last_time_us: 0,
            appended_at_us: 0,
            crc: Some(dyno_checksum::crc32c(&body)),
            codec: Codec::Lz4.flags() as u8,
        };
        head.encode()
    });
    let mut bytes = Rows::group(rows).to_vec();
    bytes.extend(heads);
    bytes.extend(body.repeat(rows));
    Fetched {
        first_offset: 0,
        next_offset: rows as i64,
        rows: Rest::one(Bytes::from(bytes)),
    }
}

#[test]
fn rows_that_become_many_times_longer_are_left_for_the_next_request() {
    let fetched = repetitive(64, 1 << 20);
    assert!(fetched.rows.bytes().len() < 1 << 20);
    let one = written(0, &fetched, 1 << 20).unwrap().len();
    assert!((1 << 20..3 << 20).contains(&one), "{one}");
    // A row comes in any case, and further ones while there is room.
    assert_eq!(written(0, &fetched, 1).unwrap().len(), one);
    let four = written(0, &fetched, 7 << 19).unwrap().len();
    assert!((4 << 20..5 << 20).contains(&four), "{four}");
}
