//! DELTA_BINARY_PACKED for 64-bit integers (parquet-format, Encodings, 5).

use super::{hybrid, varint};

const BLOCK: usize = 128;
const MINIBLOCKS: usize = 4;
const MINIBLOCK: usize = BLOCK / MINIBLOCKS;

/// Appends all `values` as one page body.
pub(super) fn encode(values: &[i64], out: &mut Vec<u8>) {
    varint::unsigned(out, BLOCK as u64);
    varint::unsigned(out, MINIBLOCKS as u64);
    varint::unsigned(out, values.len() as u64);
    varint::zigzag(out, values.first().copied().unwrap_or(0));
    let mut previous = values.first().copied().unwrap_or(0);
    for block in values.get(1..).unwrap_or(&[]).chunks(BLOCK) {
        let mut deltas = [0i64; BLOCK];
        for (delta, &value) in deltas.iter_mut().zip(block) {
            *delta = value.wrapping_sub(previous);
            previous = value;
        }
        encode_block(&deltas[..block.len()], out);
    }
}

fn encode_block(deltas: &[i64], out: &mut Vec<u8>) {
    let least = deltas.iter().copied().min().unwrap_or(0);
    varint::zigzag(out, least);
    let mut above = [0u64; BLOCK];
    for (above, &delta) in above.iter_mut().zip(deltas) {
        *above = delta.wrapping_sub(least) as u64;
    }
    let mut widths = [0u32; MINIBLOCKS];
    for (width, miniblock) in widths.iter_mut().zip(above.chunks(MINIBLOCK)) {
        let all = miniblock.iter().fold(0, |bits, &value| bits | value);
        *width = 64 - all.leading_zeros();
    }
    out.extend(widths.map(|width| width as u8));
    // Values behind the last one are padding, and miniblocks that hold none are left out.
    let used = deltas.len().div_ceil(MINIBLOCK);
    for (&width, miniblock) in widths.iter().zip(above.chunks(MINIBLOCK)).take(used) {
        pack(miniblock, width, out);
    }
}

fn pack(values: &[u64], width: u32, out: &mut Vec<u8>) {
    if width <= 32 {
        let mut narrow = [0u32; MINIBLOCK];
        for (narrow, &value) in narrow.iter_mut().zip(values) {
            *narrow = value as u32;
        }
        hybrid::pack(&narrow, width, out);
        return;
    }
    let mut pending = 0u128;
    let mut pending_bits = 0;
    for &value in values {
        pending |= u128::from(value) << pending_bits;
        pending_bits += width;
        while pending_bits >= 8 {
            out.push(pending as u8);
            pending >>= 8;
            pending_bits -= 8;
        }
    }
}
