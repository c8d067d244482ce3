//! Our own inflaters, as the limit of inflating takes them.

use dyno_codec::inflate::{Engine, GzipStream, HISTORY, OUTPUT_MARGIN};

use super::Inflate;

/// Room for what one call puts out, large enough that the move of the history costs nothing and
/// small enough for the second-level cache.
const OUTPUT_BYTES: usize = 256 * 1024;

/// Both engines of `dyno-codec`, by name.
pub fn own_inflaters() -> Vec<(&'static str, Inflate)> {
    vec![
        (
            "dyno native",
            Box::new(|packed| inflate(packed, Engine::Native)),
        ),
        (
            "dyno portable",
            Box::new(|packed| inflate(packed, Engine::Portable)),
        ),
    ]
}

/// Bytes that come out of a gzip file. A file that does not inflate counts as far as it came, which
/// the caller sees as a wrong length.
fn inflate(packed: &[u8], engine: Engine) -> u64 {
    let mut stream = GzipStream::new(packed, engine);
    let mut out = vec![0; HISTORY + OUTPUT_BYTES];
    let (mut at, mut total) = (0, 0);
    while !stream.finished() {
        // The engine reads back up to a history behind what it writes, so that much moves along
        // when the buffer starts again.
        if out.len() - at < OUTPUT_BYTES / 2 {
            out.copy_within(at - HISTORY..at, 0);
            at = HISTORY;
        }
        let Ok(end) = stream.inflate_into(&mut out, at) else {
            return total;
        };
        total += (end - at) as u64;
        at = end;
    }
    total
}

const _: () = assert!(OUTPUT_BYTES / 2 > OUTPUT_MARGIN);

#[cfg(test)]
mod tests {
    use super::*;

    /// "dyno" 1000 times, by gzip -9, is 4000 bytes.
    const PACKED: &[u8] = &[
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xff, 0xed, 0xc3, 0xb1, 0x0d, 0x00,
        0x00, 0x08, 0x03, 0xa0, 0x67, 0x3b, 0xeb, 0xdc, 0xef, 0x3d, 0xc3, 0x05, 0x12, 0xd2, 0xd9,
        0xa8, 0xaa, 0xaa, 0xaa, 0xaf, 0x0f, 0xe7, 0xbd, 0xc6, 0x2b, 0xa0, 0x0f, 0x00, 0x00,
    ];

    #[test]
    fn both_engines_inflate() {
        for (name, inflate) in own_inflaters() {
            assert_eq!(inflate(PACKED), 4_000, "{name}");
            assert!(inflate(&PACKED[..12]) < 4_000, "{name}: a cut one");
        }
    }
}
