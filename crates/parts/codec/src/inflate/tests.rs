use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use proptest::prelude::*;

use super::*;

/// Inflates everything the way a loader does: through a small buffer with history in front.
fn gunzip(bytes: &[u8], engine: Engine, window: usize) -> Result<Vec<u8>, InflateError> {
    let mut stream = GzipStream::new(bytes, engine);
    let mut out = vec![0u8; HISTORY + window];
    let mut whole = Vec::new();
    let mut at = 0;
    while !stream.finished() {
        let now = stream.inflate_into(&mut out, at)?;
        whole.extend_from_slice(&out[at..now]);
        let keep = now.min(HISTORY);
        out.copy_within(now - keep..now, 0);
        at = keep;
    }
    Ok(whole)
}

fn gzip(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Text with the repetitions of a log: what the fast loop is made for.
fn text(lines: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut out = Vec::new();
    for i in 0..lines {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        writeln!(
            out,
            "{i},{},K{}ABC,FN{},-{}",
            1_700_000_000 + i / 9,
            state >> 60,
            state >> 58,
            state >> 59
        )
        .unwrap();
    }
    out
}

#[test]
fn both_engines_inflate_what_zlib_deflates() {
    for level in [0, 1, 6, 9] {
        for data in [Vec::new(), b"a".to_vec(), vec![0; 300_000], text(40_000, 7)] {
            let packed = gzip(&data, level);
            for engine in [Engine::Native, Engine::Portable] {
                for window in [OUTPUT_MARGIN, 4096, 1 << 20] {
                    let out = gunzip(&packed, engine, window).unwrap();
                    assert!(
                        out == data,
                        "{engine:?}, level {level}, {} bytes",
                        data.len()
                    );
                }
            }
        }
    }
}

#[test]
fn members_follow_each_other_and_garbage_is_named() {
    let (a, b) = (text(5_000, 1), text(3, 2));
    let mut packed = gzip(&a, 6);
    packed.extend(gzip(&b, 1));
    let whole = [a, b].concat();
    assert_eq!(gunzip(&packed, Engine::Native, 8192).unwrap(), whole);

    let end = packed.len() as u64;
    packed.extend([0u8; 1000]);
    for engine in [Engine::Native, Engine::Portable] {
        let mut stream = GzipStream::new(&packed[..], engine);
        let mut out = vec![0; 1 << 20];
        let at = stream.inflate_into(&mut out, 0).unwrap();
        assert!(stream.finished());
        assert_eq!(out[..at], whole);
        assert_eq!(stream.members(), 2);
        assert_eq!(
            stream.garbage(),
            Some(TrailingGarbage {
                offset: end,
                bytes: 1000
            })
        );
    }
}

#[test]
fn a_cut_stream_is_an_error_wherever_it_is_cut() {
    let packed = gzip(&text(300, 3), 6);
    for end in 0..packed.len() {
        for engine in [Engine::Native, Engine::Portable] {
            let error = gunzip(&packed[..end], engine, 4096).unwrap_err();
            assert!(
                matches!(error.kind, InflateErrorKind::Truncated(_)),
                "{end}: {error}"
            );
            assert!(error.offset <= end as u64);
        }
    }
}

/// A header with every optional field and its own checksum, as RFC 1952 has it.
#[test]
fn a_header_is_held_against_its_own_checksum() {
    let data = text(200, 5);
    let plain = gzip(&data, 6);
    let mut header = plain[..10].to_vec();
    header[3] = 2 | 4 | 8 | 16;
    header.extend([3, 0, b'x', b'y', b'z']);
    header.extend(b"name\0comment\0");
    let mut crc = crc32fast::Hasher::new();
    crc.update(&header);
    let crc = (crc.finalize() as u16).to_le_bytes();
    let body = &plain[10..];
    let packed = |crc: [u8; 2]| [&header[..], &crc, body].concat();
    for engine in [Engine::Native, Engine::Portable] {
        assert!(gunzip(&packed(crc), engine, 4096).unwrap() == data);
        for wrong in [[crc[0] ^ 1, crc[1]], [crc[0], crc[1] ^ 0x80]] {
            let error = gunzip(&packed(wrong), engine, 4096).unwrap_err();
            assert!(
                matches!(error.kind, InflateErrorKind::HeaderChecksum { .. }),
                "{error}"
            );
            // The same in a member behind another one.
            let second = [packed(crc), packed(wrong)].concat();
            gunzip(&second, engine, 4096).unwrap_err();
        }
    }
}

#[test]
fn a_match_before_the_beginning_is_refused() {
    // Fixed block: a match of 3 at distance 1 as the first symbol. Bits, lowest first:
    // 1 (last), 01 (fixed), 0000001 (length 3), 00000 (distance 1), 0000000 (end).
    let raw = [0x03, 0x02, 0x00, 0x00];
    let mut stream = DeflateStream::new(&raw[..], Engine::Native);
    let mut out = vec![7u8; 4096];
    let error = stream.inflate_into(&mut out, 64).unwrap_err();
    assert!(
        error.to_string().contains("before the beginning"),
        "{error}"
    );
}

#[test]
fn a_flipped_checksum_is_an_error() {
    let mut packed = gzip(b"spots", 6);
    let n = packed.len();
    packed[n - 6] ^= 1;
    let error = gunzip(&packed, Engine::Native, 4096).unwrap_err();
    assert!(
        matches!(error.kind, InflateErrorKind::Checksum { .. }),
        "{error}"
    );
}

proptest! {
    #[test]
    fn any_bytes_survive(data in proptest::collection::vec(any::<u8>(), 0..20_000), level in 0u32..10) {
        let packed = gzip(&data, level);
        prop_assert_eq!(gunzip(&packed, Engine::Native, 1024).unwrap(), data);
    }

    #[test]
    fn few_symbols_survive(data in proptest::collection::vec(0u8..3, 0..60_000)) {
        let packed = gzip(&data, 9);
        prop_assert_eq!(gunzip(&packed, Engine::Native, 4096).unwrap(), data);
    }

    /// Damaged streams: both engines agree on whether and on what comes out.
    #[test]
    fn damage_is_judged_as_zlib_judges_it(at in 0usize..4000, bit in 0u8..8, lines in 1usize..400) {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
        encoder.write_all(&text(lines, 11)).unwrap();
        let mut raw = encoder.finish().unwrap();
        let n = raw.len();
        raw[at % n] ^= 1 << bit;
        let inflate = |engine| {
            let mut stream = DeflateStream::new(&raw[..], engine);
            let mut out = vec![0u8; 4 << 20];
            let at = stream.inflate_into(&mut out, 0)?;
            out.truncate(at);
            Ok::<_, InflateError>(out)
        };
        match (inflate(Engine::Native), inflate(Engine::Portable)) {
            (Ok(ours), Ok(theirs)) => prop_assert!(ours == theirs),
            (Err(_), Err(_)) => {}
            (ours, theirs) => prop_assert!(false, "ours {:?}, zlib {:?}", ours.err(), theirs.err()),
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(data in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let mut stream = DeflateStream::new(&data[..], Engine::Native);
        let mut out = vec![0u8; 1 << 16];
        let _ = stream.inflate_into(&mut out, 0);
    }
}
