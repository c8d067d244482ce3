//! The RLE / bit-packing hybrid for dictionary codes (parquet-format, Encodings, RLE = 3).

use super::varint;

/// Values packed at a time: whole 32-bit words come out for every width.
const CHUNK: usize = 32;
/// Chunks in one bit-packed run at most, so that its header is one byte.
const RUN_CHUNKS: usize = 15;

/// Bits that the codes below `distinct` need.
pub fn bits_for(distinct: usize) -> u32 {
    match distinct {
        0 | 1 => 0,
        n => usize::BITS - (n - 1).leading_zeros(),
    }
}

/// Appends `codes`, each below `1 << width`, to `out`.
pub(super) fn encode(codes: &[u32], width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        if !codes.is_empty() {
            run_of_one(0, codes.len(), 0, out);
        }
        return;
    }
    // A run is at most as long as its bits, plus a header byte for every 480 values.
    out.reserve(codes.len() * width as usize / 8 + codes.len() / 480 + 64);
    let mut at = 0;
    while at < codes.len() {
        let equal = equal_chunks(&codes[at..]);
        if equal > 0 {
            let value = codes[at];
            let mut n = equal * CHUNK;
            // The last values are less than a chunk; a run that reaches them takes them along.
            let rest = &codes[at + n..];
            if rest.len() < CHUNK && rest.iter().all(|&code| code == value) {
                n += rest.len();
            }
            run_of_one(value, n, width, out);
            at += n;
            continue;
        }
        let mut chunks = 1;
        while chunks < RUN_CHUNKS
            && at + (chunks + 1) * CHUNK <= codes.len()
            && !all_equal(&codes[at + chunks * CHUNK..][..CHUNK])
        {
            chunks += 1;
        }
        let n = (chunks * CHUNK).min(codes.len() - at);
        varint::unsigned(out, (n.div_ceil(8) as u64) << 1 | 1);
        for part in codes[at..at + n].chunks(CHUNK) {
            pack(part, width, out);
        }
        at += n;
    }
}

/// How many whole chunks from the start hold one and the same value.
fn equal_chunks(codes: &[u32]) -> usize {
    let Some(&first) = codes.first() else {
        return 0;
    };
    codes
        .chunks_exact(CHUNK)
        .take_while(|chunk| chunk[0] == first && all_equal(chunk))
        .count()
}

fn all_equal(chunk: &[u32]) -> bool {
    // Without an early exit this is two vector instructions.
    chunk
        .iter()
        .fold(0, |differing, &code| differing | (code ^ chunk[0]))
        == 0
}

fn run_of_one(value: u32, n: usize, width: u32, out: &mut Vec<u8>) {
    varint::unsigned(out, (n as u64) << 1);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Packs up to 32 values, lowest bits first; fewer are filled up with zeros to a multiple of eight.
pub(super) fn pack(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let mut chunk = [0u32; CHUNK];
    let whole: &[u32; CHUNK] = match values.try_into() {
        Ok(whole) => whole,
        Err(_) => {
            chunk[..values.len()].copy_from_slice(values);
            &chunk
        }
    };
    let mut packed = [0u8; CHUNK * 4];
    pack_chunk(whole, width, &mut packed);
    // All bytes are copied, then cut: a fixed size makes the copy a few vector moves.
    let start = out.len();
    out.extend_from_slice(&packed);
    out.truncate(start + values.len().div_ceil(8) * width as usize);
}

/// One body per width: shifts and word numbers become constants.
macro_rules! pack_by_width {
    ($values:ident, $width:ident, $packed:ident, $($w:literal)*) => {
        match $width {
            $($w => pack_const::<$w>($values, $packed),)*
            _ => unreachable!("codes have at most 32 bits"),
        }
    };
}

fn pack_chunk(values: &[u32; CHUNK], width: u32, packed: &mut [u8; CHUNK * 4]) {
    pack_by_width!(values, width, packed,
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
}

/// Adds value number `$i` to the words that it falls into; written out 32 times, so that every
/// index and shift is a constant and no branch is left.
macro_rules! put_each {
    ($values:ident, $words:ident, $($i:literal)*) => {
        $(
            let bit = $i * W;
            $words[bit / 32] |= $values[$i] << (bit % 32);
            if bit % 32 + W > 32 {
                $words[bit / 32 + 1] |= $values[$i] >> (32 - bit % 32);
            }
        )*
    };
}

fn pack_const<const W: usize>(values: &[u32; CHUNK], packed: &mut [u8; CHUNK * 4]) {
    // One word more than 32 values can fill, for the index that the last one never uses.
    let mut words = [0u32; CHUNK + 1];
    put_each!(values, words,
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
    for (bytes, word) in packed.chunks_exact_mut(4).zip(&words[..W]) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
}
