//! Packs values bit by bit, lowest bits first, as both encodings of integers need it
//! (parquet-format, Encodings).

/// How many values of 32 or 64 bits are packed at a time. They are whole bytes at every width.
pub(super) const CHUNK: usize = 32;

/// Calls `$pack::<W>` for the width, so that shifts and indexes are constants in it.
macro_rules! by_width {
    ($width:expr, $pack:ident($values:expr, $out:expr), $($w:literal)*) => {
        match $width {
            $($w => $pack::<$w>($values, $out),)*
            width => unreachable!("no value has {width} bits"),
        }
    };
}

/// Packs 32 values of at most 32 bits into the first `4 * width` bytes of `out`.
#[inline(always)]
pub(super) fn pack_words(values: &[u32; CHUNK], width: u32, out: &mut [u8]) {
    by_width!(width, pack_words_of(values, out),
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
}

/// Adds pair number `$i` to the words that it falls into. The steps are written out, so that no
/// index, shift or branch is left to run time.
macro_rules! put_each {
    ($pairs:ident, $words:ident, $($i:literal)*) => {
        $(
            let bit = $i * 2 * W;
            $words[bit / 64] |= $pairs[$i] << (bit % 64);
            if bit % 64 + 2 * W > 64 {
                $words[bit / 64 + 1] |= $pairs[$i] >> (64 - bit % 64);
            }
        )*
    };
}

#[inline(always)]
fn pack_words_of<const W: usize>(values: &[u32; CHUNK], out: &mut [u8]) {
    let mut pairs = [0u64; CHUNK / 2];
    for (pair, two) in pairs.iter_mut().zip(values.chunks_exact(2)) {
        *pair = u64::from(two[0]) | u64::from(two[1]) << W;
    }
    // One word more than the values can fill, for the index that the last one never uses.
    let mut words = [0u64; CHUNK / 2 + 1];
    put_each!(pairs, words, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    let (whole, half) = out[..4 * W].split_at_mut(W / 2 * 8);
    for (bytes, word) in whole.chunks_exact_mut(8).zip(&words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    if W % 2 == 1 {
        half.copy_from_slice(&(words[W / 2] as u32).to_le_bytes());
    }
}

/// Packs 32 values of any width into the first `4 * width` bytes of `out`.
pub(super) fn pack_wide(values: &[u64; CHUNK], width: u32, out: &mut [u8]) {
    let mut pending = 0u128;
    let mut pending_bits = 0;
    let mut out = out[..4 * width as usize].iter_mut();
    for &value in values {
        pending |= u128::from(value) << pending_bits;
        pending_bits += width;
        while pending_bits >= 8 {
            if let Some(byte) = out.next() {
                *byte = pending as u8;
            }
            pending >>= 8;
            pending_bits -= 8;
        }
    }
}

/// Packs codes of at most eight bits, eight at a time, with the last eight filled up by zeros, and
/// returns how many bytes that was. `out` needs eight bytes more.
#[inline(always)]
pub(super) fn pack_bytes(codes: &[u8], width: u32, out: &mut [u8]) -> usize {
    by_width!(width, pack_bytes_of(codes, out), 0 1 2 3 4 5 6 7 8)
}

#[inline(always)]
fn pack_bytes_of<const W: usize>(codes: &[u8], out: &mut [u8]) -> usize {
    let mut at = 0;
    let mut whole = codes.chunks_exact(8);
    for eight in &mut whole {
        let mut word = [0; 8];
        word.copy_from_slice(eight);
        // All eight bytes are written. Those behind the first W are zero, and the next codes
        // overwrite them.
        out[at..at + 8].copy_from_slice(&squeeze::<W>(u64::from_le_bytes(word)).to_le_bytes());
        at += W;
    }
    let rest = whole.remainder();
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        out[at..at + 8].copy_from_slice(&squeeze::<W>(u64::from_le_bytes(word)).to_le_bytes());
        at += W;
    }
    at
}

/// Moves eight codes together: neighbours in bytes, then pairs, then fours.
#[inline(always)]
const fn squeeze<const W: usize>(codes: u64) -> u64 {
    let pairs = (codes & 0x00ff_00ff_00ff_00ff) | (codes & 0xff00_ff00_ff00_ff00) >> (8 - W);
    let fours = (pairs & 0x0000_ffff_0000_ffff) | (pairs & 0xffff_0000_ffff_0000) >> (16 - 2 * W);
    (fours & 0x0000_0000_ffff_ffff) | (fours & 0xffff_ffff_0000_0000) >> (32 - 4 * W)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: bit after bit.
    fn one_by_one(values: &[u64], width: u32) -> Vec<u8> {
        let mut bytes = vec![0; (values.len() * width as usize).div_ceil(8)];
        for (i, value) in values.iter().enumerate() {
            for bit in 0..width as usize {
                let at = i * width as usize + bit;
                bytes[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
            }
        }
        bytes
    }

    #[test]
    fn every_width_is_packed_as_the_definition_says() {
        for width in 0..=64 {
            let mask = u64::MAX.checked_shr(64 - width).unwrap_or(0);
            let values: [u64; CHUNK] =
                std::array::from_fn(|i| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask);
            let expected = one_by_one(&values, width);
            let mut packed = vec![0xaa; expected.len() + 8];
            pack_wide(&values, width, &mut packed);
            assert_eq!(packed[..expected.len()], expected, "{width} bits, wide");
            if width <= 32 {
                let words = values.map(|value| value as u32);
                pack_words(&words, width, &mut packed);
                assert_eq!(packed[..expected.len()], expected, "{width} bits");
            }
            if width <= 8 {
                let codes = values.map(|value| value as u8);
                let bytes = pack_bytes(&codes[..27], width, &mut packed);
                let mut padded = values;
                padded[27..].fill(0);
                assert_eq!(bytes, 4 * width as usize);
                assert_eq!(packed[..bytes], one_by_one(&padded, width), "{width} bits");
            }
        }
    }
}
