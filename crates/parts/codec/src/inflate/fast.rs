//! The fast loop: literals and matches while both buffers have room to spare.
//!
//! This module uses `unsafe` for reads and writes whose bounds are checked once per turn (the
//! margins) instead of once per byte. The tests compare it with zlib-rs, and the fuzz target
//! `inflate` feeds it arbitrary bytes.

use std::io::Read;

use super::OUTPUT_MARGIN;
use super::decoder::Decoder;
use super::input::Input;
use super::tables::{DISTANCE_BITS, END, EXCEPTION, LITERAL, LITERAL_BITS, SUBTABLE};

/// Compressed bytes that one turn may read: its refills load eight bytes each.
pub(super) const INPUT_MARGIN: usize = 32;

/// Bytes that one turn may write: three literals, a match of 258, and 32 of overshoot.
const TURN_OUTPUT: usize = 3 + 258 + 32;
const _: () = assert!(TURN_OUTPUT <= OUTPUT_MARGIN);

/// Why the loop returned to its caller.
pub(super) enum Exit {
    /// The position is too near to the end of a buffer.
    Margin,
    /// The block's end code was read.
    EndOfBlock,
    /// The stream violates the format.
    Corrupt(&'static str),
}

/// Runs until a margin, the block's end or an error, and returns the new write position. `reach` is
/// how many bytes of this stream lie before `at`.
pub(super) fn run<R: Read>(
    decoder: &mut Decoder,
    input: &mut Input<R>,
    out: &mut [u8],
    at: usize,
    reach: u64,
) -> (Exit, usize) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("bmi2") {
        // SAFETY: the feature was detected.
        return unsafe { run_bmi2(decoder, input, out, at, reach) };
    }
    turn(decoder, input, out, at, reach)
}

/// The same code, compiled with three-operand shifts.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,avx2")]
fn run_bmi2<R: Read>(
    decoder: &mut Decoder,
    input: &mut Input<R>,
    out: &mut [u8],
    at: usize,
    reach: u64,
) -> (Exit, usize) {
    turn(decoder, input, out, at, reach)
}

/// The bit buffer and its position in the input, which stay in registers while the loop runs.
struct Bits<'a> {
    bits: u64,
    count: u32,
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    /// Fills the buffer up to at least 56 bits.
    ///
    /// # Safety
    /// Eight bytes must stand at `self.at`.
    #[inline(always)]
    unsafe fn refill(&mut self) {
        debug_assert!(self.at + 8 <= self.bytes.len());
        // SAFETY: the caller has eight bytes there.
        let word = unsafe {
            self.bytes
                .as_ptr()
                .add(self.at)
                .cast::<u64>()
                .read_unaligned()
        };
        self.bits |= u64::from_le(word) << self.count;
        self.at += ((63 - self.count) >> 3) as usize;
        self.count |= 56;
    }

    #[inline(always)]
    fn drop_entry(&mut self, entry: u32) {
        self.bits >>= entry & 63;
        self.count -= entry & 63;
    }

    /// Consumes the bits of a length or distance entry, and returns its base plus the extra bits.
    #[inline(always)]
    fn take_value(&mut self, entry: u32) -> usize {
        let with_extra = self.bits & ((1u64 << (entry & 63)) - 1);
        self.drop_entry(entry);
        (entry >> 16) as usize + (with_extra >> (entry >> 8 & 15)) as usize
    }

    #[inline(always)]
    fn low(&self, n: u32) -> usize {
        (self.bits & ((1 << n) - 1)) as usize
    }
}

#[inline(always)]
fn turn<R: Read>(
    decoder: &mut Decoder,
    input: &mut Input<R>,
    out: &mut [u8],
    at: usize,
    reach: u64,
) -> (Exit, usize) {
    let mut bits = Bits {
        bits: decoder.bits,
        count: decoder.bit_count,
        bytes: input.read_part(),
        at: input.at,
    };
    let (exit, now) = decode(
        &mut bits,
        &decoder.literals,
        &decoder.distances,
        out,
        at,
        reach,
    );
    // Bits above the count were loaded but not counted. The input position does not include them,
    // so they are cleared here and loaded again.
    decoder.bits = bits.bits & ((1u64 << bits.count) - 1);
    decoder.bit_count = bits.count;
    input.at = bits.at;
    (exit, now)
}

#[inline(always)]
fn decode(
    bits: &mut Bits<'_>,
    literals: &[u32],
    distances: &[u32],
    out: &mut [u8],
    start: usize,
    reach: u64,
) -> (Exit, usize) {
    assert!(literals.len() >= 1 << LITERAL_BITS && distances.len() >= 1 << DISTANCE_BITS);
    let input_last = bits.bytes.len().checked_sub(INPUT_MARGIN);
    let output_last = out.len().checked_sub(TURN_OUTPUT);
    let (Some(input_last), Some(output_last)) = (input_last, output_last) else {
        return (Exit::Margin, start);
    };
    // A match may reach back only over what the buffer still holds of this stream.
    let floor = start - usize::try_from(reach).map_or(start, |reach| reach.min(start));
    let mut at = start;
    while bits.at <= input_last && at <= output_last {
        // SAFETY (all blocks of this loop): TURN_OUTPUT bytes are free behind `at`, of which a turn
        // writes at most three literals, a match and its overshoot. INPUT_MARGIN bytes wait, of
        // which its two refills look at no more than 7 + 8. Main indexes are below `1 << *_BITS`,
        // which the assertion covers.
        // SAFETY: see above.
        unsafe { bits.refill() };
        // SAFETY: see above.
        let mut entry = unsafe { *literals.get_unchecked(bits.low(LITERAL_BITS)) };
        let mut taken = 0;
        while entry & LITERAL != 0 && taken < 3 {
            // SAFETY: see above.
            unsafe { put_literal(out, &mut at, entry) };
            taken += 1;
            bits.drop_entry(entry);
            // SAFETY: see above.
            entry = unsafe { *literals.get_unchecked(bits.low(LITERAL_BITS)) };
        }
        if taken == 3 {
            continue;
        }
        let entry = through_subtable(bits, literals, entry);
        if entry & (LITERAL | EXCEPTION) != 0 {
            bits.drop_entry(entry);
            if entry & LITERAL == 0 {
                return (ending(entry), at);
            }
            // SAFETY: at most the third literal of this turn.
            unsafe { put_literal(out, &mut at, entry) };
            continue;
        }
        let length = bits.take_value(entry);
        // SAFETY: see above.
        unsafe { bits.refill() };
        // SAFETY: see above.
        let entry = unsafe { *distances.get_unchecked(bits.low(DISTANCE_BITS)) };
        let entry = through_subtable(bits, distances, entry);
        if entry & EXCEPTION != 0 {
            return (Exit::Corrupt("a code that no distance has"), at);
        }
        let distance = bits.take_value(entry);
        if distance > at - floor {
            return (
                Exit::Corrupt("a match reaches back before the beginning"),
                at,
            );
        }
        // SAFETY: `distance <= at`, and length + overshoot fit behind `at` as said above.
        unsafe { copy_match(out.as_mut_ptr().add(at), distance, length) };
        at += length;
    }
    (Exit::Margin, at)
}

/// Writes the byte of a literal's entry.
///
/// # Safety
/// `at` must be inside `out`.
#[inline(always)]
unsafe fn put_literal(out: &mut [u8], at: &mut usize, entry: u32) {
    // SAFETY: the caller's bound.
    unsafe { *out.get_unchecked_mut(*at) = (entry >> 16) as u8 };
    *at += 1;
}

/// The entry itself, or the one in the sub-table that it points to.
#[inline(always)]
fn through_subtable(bits: &mut Bits<'_>, table: &[u32], entry: u32) -> u32 {
    if entry & EXCEPTION == 0 || entry & SUBTABLE == 0 {
        return entry;
    }
    bits.drop_entry(entry);
    table[(entry >> 16) as usize + bits.low(entry >> 8 & 15)]
}

/// The meaning of an exceptional entry of the literal table.
fn ending(entry: u32) -> Exit {
    if entry & END != 0 {
        Exit::EndOfBlock
    } else {
        Exit::Corrupt("a code that no length or literal has")
    }
}

/// Copies `length` bytes from `distance` bytes before `to`. It may write up to 31 bytes more.
///
/// # Safety
/// `distance` bytes before `to` and `length + 31` bytes from it on must belong to one buffer.
#[inline(always)]
unsafe fn copy_match(to: *mut u8, distance: usize, length: usize) {
    // SAFETY: the caller's bounds; a step of N bytes is taken only where the distance is N or more,
    // and the last one ends below `to + length + 31`.
    unsafe {
        let from = to.sub(distance);
        match distance {
            // Most matches of text are shorter than 32 bytes, so the loop mostly ends after one
            // step, as predicted.
            32.. => copy_steps::<32>(to, from, length),
            16.. => copy_steps::<16>(to, from, length),
            8.. => copy_steps::<8>(to, from, length),
            1 => to.write_bytes(from.read(), length),
            _ => copy_steps::<1>(to, from, length),
        }
    }
}

/// Copies `length` bytes, at least one, `N` at a time.
///
/// # Safety
/// As [`copy_match`], and `from` must be `N` bytes or more before `to`.
#[inline(always)]
unsafe fn copy_steps<const N: usize>(to: *mut u8, from: *const u8, length: usize) {
    let mut done = 0;
    while done < length {
        // SAFETY: the caller's bounds.
        unsafe {
            let chunk = from.add(done).cast::<[u8; N]>().read_unaligned();
            to.add(done).cast::<[u8; N]>().write_unaligned(chunk);
        }
        done += N;
    }
}
