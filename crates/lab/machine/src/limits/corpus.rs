//! The fixed text that inflaters are measured on.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::error::MachineError;

/// Rows of comma-separated spots made from a fixed seed: numbers that rise, numbers in a narrow
/// range, names that repeat with a heavy tail. Gzip makes about a quarter of it, as of the real
/// archives. At least `bytes` long and ends with a whole row.
pub(super) fn text(bytes: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes + 128);
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    };
    let mut id = 4_000_000_000u64;
    while text.len() < bytes {
        id += 1 + next() % 3;
        let reporter = heavy_tail(next(), 3_000);
        let sender = heavy_tail(next(), 20_000);
        let time = 1_700_000_000 + id / 2000 * 120;
        let row = format!(
            "{id},{time},{},{},{},{}.{:06},{},{},{},{},{},{},{},1.{},\n",
            name(reporter),
            grid(reporter),
            (next() % 38) as i64 - 30,
            [7, 10, 14, 14, 14, 18, 21, 28][(next() % 8) as usize],
            38_600 + next() % 200,
            name(sender),
            grid(sender),
            [23, 30, 33, 37][(next() % 4) as usize],
            (next() % 10 / 8) as i64,
            next() % 17_000,
            next() % 360,
            14,
            next() % 4,
        );
        text.extend_from_slice(row.as_bytes());
    }
    text
}

/// Small numbers far more often than large ones, like stations that are always on.
fn heavy_tail(random: u64, n: u64) -> u64 {
    let unit = random as f64 / (1u64 << 53) as f64;
    // Written out, because powi may round differently on another machine.
    let square = unit * unit;
    (square * square * n as f64) as u64
}

fn name(number: u64) -> String {
    let letter = |n: u64| char::from(b'A' + (n % 26) as u8);
    let (a, b, c) = (
        letter(number * 7),
        letter(number / 3),
        letter(number * 11 + 5),
    );
    format!("{a}{}{b}{c}{}", number % 10, letter(number / 26))
}

fn grid(number: u64) -> String {
    let letter = |n: u64| char::from(b'A' + (n % 18) as u8);
    format!(
        "{}{}{:02}",
        letter(number / 5),
        letter(number * 3),
        number * 37 % 100
    )
}

/// The text as one gzip member at level 6, the usual one.
pub(super) fn gzip(text: &[u8]) -> Result<Vec<u8>, MachineError> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(text.len() / 3), Compression::new(6));
    encoder
        .write_all(text)
        .and_then(|()| encoder.finish())
        .map_err(|error| MachineError::limit("inflate-1", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_never_changes_and_packs_like_the_archives() {
        let text = text(1 << 20);
        let hash = text.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        assert_eq!(
            (text.len(), format!("{hash:016x}").as_str()),
            (1_048_586, "3be241930e23ddaf")
        );
        let ratio = text.len() as f64 / gzip(&text).unwrap().len() as f64;
        assert!((2.5..5.0).contains(&ratio), "{ratio}");
    }
}
