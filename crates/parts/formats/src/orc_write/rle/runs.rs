//! Chooses the kind of run that suits some values, and writes it.

use super::RUN;
use super::pack::{pack, packed_bytes, width_code, width_for};
use super::patched;
use crate::orc_write::protobuf::{varint, zigzag};
use crate::vectorised::{Work, vectorised};

const DIRECT: u8 = 1;
const DELTA: u8 = 3;

/// How many steps are looked at before all are computed, because random values show soon.
const PROBE: usize = 8;

/// A repetition of fewer values is not worth a run of its own.
const SHORTEST_REPEAT: usize = 3;
const LONGEST_SHORT_REPEAT: usize = 10;

/// About how many bytes the header, the value and the step of a repetition take.
const REPEAT_BYTES: usize = 6;

/// Appends at most [`RUN`] values as one run or several.
pub(super) fn encode(values: &[i64], signed: bool, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let mut coded = [0; RUN];
    let coded = &mut coded[..values.len()];
    let bits = vectorised(ToUnsigned {
        values,
        signed,
        coded,
    });
    if values.len() < SHORTEST_REPEAT || bits > 62 || looks_random(values) {
        return plain(values, coded, bits, out);
    }
    // The values have at most 61 bits and a sign here, so their differences do not overflow.
    let mut deltas = [0; RUN];
    let deltas = &mut deltas[..values.len() - 1];
    let steps = vectorised(TakeSteps { values, deltas });
    if steps.least == steps.most {
        return fixed_steps(values, deltas[0], signed, out);
    }
    let direct_bytes = packed_bytes(values.len(), width_for(bits));
    let monotone = steps.least >= 0 || steps.most <= 0;
    let delta_width = width_for(64 - steps.widest().leading_zeros()).max(2);
    let delta_bytes = packed_bytes(values.len(), delta_width) + 2 * REPEAT_BYTES;
    // A run of deltas keeps the sign of its first step for all others, so it can only hold values
    // that never turn.
    let best = if monotone {
        delta_bytes.min(direct_bytes)
    } else {
        direct_bytes
    };
    if (steps.changes + 1) * REPEAT_BYTES < best {
        repetitions(values, coded, signed, out);
    } else if monotone && delta_bytes < direct_bytes {
        changing_steps(values, deltas, signed, out);
    } else {
        plain(values, coded, bits, out);
    }
}

/// Zigzags signed values, and returns how many bits the widest has.
struct ToUnsigned<'a> {
    values: &'a [i64],
    signed: bool,
    coded: &'a mut [u64],
}

impl Work for ToUnsigned<'_> {
    type Output = u32;

    #[inline(always)]
    fn work(self) -> u32 {
        let mut all = 0;
        for (coded, &value) in self.coded.iter_mut().zip(self.values) {
            *coded = if self.signed {
                zigzag(value)
            } else {
                value as u64
            };
            all |= *coded;
        }
        64 - all.leading_zeros()
    }
}

/// Whether the first steps go up and down, and hardly any is zero.
fn looks_random(values: &[i64]) -> bool {
    let (mut ups, mut downs) = (0, 0);
    for pair in values[..values.len().min(PROBE + 1)].windows(2) {
        ups += usize::from(pair[1] > pair[0]);
        downs += usize::from(pair[1] < pair[0]);
    }
    ups > 0 && downs > 0 && ups + downs >= PROBE / 2
}

/// What the steps from value to value have in common.
struct Steps {
    least: i64,
    most: i64,
    changes: usize,
}

/// Takes the steps between neighbours, one less than there are values.
struct TakeSteps<'a> {
    values: &'a [i64],
    deltas: &'a mut [i64],
}

impl Work for TakeSteps<'_> {
    type Output = Steps;

    #[inline(always)]
    fn work(self) -> Steps {
        let mut steps = Steps {
            least: i64::MAX,
            most: i64::MIN,
            changes: 0,
        };
        for (delta, pair) in self.deltas.iter_mut().zip(self.values.windows(2)) {
            *delta = pair[1] - pair[0];
            steps.least = steps.least.min(*delta);
            steps.most = steps.most.max(*delta);
            steps.changes += usize::from(*delta != 0);
        }
        steps
    }
}

impl Steps {
    fn widest(&self) -> u64 {
        self.least.unsigned_abs().max(self.most.unsigned_abs())
    }
}

fn header(kind: u8, width: u32, count: usize, out: &mut Vec<u8>) {
    let count = count - 1;
    out.push(kind << 6 | width_code(width) << 1 | (count >> 8) as u8);
    out.push(count as u8);
}

/// Appends values that no step describes.
fn plain(values: &[i64], coded: &[u64], bits: u32, out: &mut Vec<u8>) {
    let width = width_for(bits);
    if !patched::encode(values, coded, width, out) {
        direct(coded, width, out);
    }
}

fn direct(coded: &[u64], width: u32, out: &mut Vec<u8>) {
    header(DIRECT, width, coded.len(), out);
    pack(coded, width, out);
}

/// Appends one value `count` times, which is at most [`RUN`].
pub(super) fn repeat(value: i64, count: usize, signed: bool, out: &mut Vec<u8>) {
    let coded = if signed { zigzag(value) } else { value as u64 };
    let bits = 64 - coded.leading_zeros();
    if count < SHORTEST_REPEAT {
        direct(&[coded; SHORTEST_REPEAT][..count], width_for(bits), out);
    } else if count <= LONGEST_SHORT_REPEAT {
        let bytes = bits.div_ceil(8).max(1);
        out.push((bytes as u8 - 1) << 3 | (count - SHORTEST_REPEAT) as u8);
        out.extend_from_slice(&coded.to_be_bytes()[8 - bytes as usize..]);
    } else {
        header(DELTA, 0, count, out);
        varint(out, coded);
        varint(out, 0);
    }
}

/// Appends values that all differ by the same step, which may be zero.
fn fixed_steps(values: &[i64], step: i64, signed: bool, out: &mut Vec<u8>) {
    if step == 0 {
        return repeat(values[0], values.len(), signed, out);
    }
    header(DELTA, 0, values.len(), out);
    first_two(values[0], step, signed, out);
}

fn first_two(value: i64, step: i64, signed: bool, out: &mut Vec<u8>) {
    varint(out, if signed { zigzag(value) } else { value as u64 });
    varint(out, zigzag(step));
}

/// Appends values that never go down, or never up. The sign of the first step says which, so it
/// must not be zero. What repeats at the front, except for its last value, becomes a run of its
/// own.
fn changing_steps(values: &[i64], deltas: &[i64], signed: bool, out: &mut Vec<u8>) {
    let same = deltas.iter().take_while(|&&delta| delta == 0).count();
    if same > 0 {
        repeat(values[0], same, signed, out);
    }
    let (values, deltas) = (&values[same..], &deltas[same..]);
    let mut sizes = [0; RUN];
    let sizes = &mut sizes[..deltas.len() - 1];
    let mut all = 0;
    for (size, delta) in sizes.iter_mut().zip(&deltas[1..]) {
        *size = delta.unsigned_abs();
        all |= *size;
    }
    if sizes.is_empty() {
        // Only two values are left, which are a step without further steps.
        return fixed_steps(values, deltas[0], signed, out);
    }
    // In this kind of run the code of one bit means that there are no further steps.
    let width = width_for(64 - all.leading_zeros()).max(2);
    header(DELTA, width, values.len(), out);
    first_two(values[0], deltas[0], signed, out);
    pack(sizes, width, out);
}

/// Appends values of which most equal the one before.
fn repetitions(values: &[i64], coded: &[u64], signed: bool, out: &mut Vec<u8>) {
    let (mut begin, mut at) = (0, 0);
    while at < values.len() {
        let length = values[at..]
            .iter()
            .take_while(|&&value| value == values[at])
            .count();
        if length >= SHORTEST_REPEAT {
            loose(&coded[begin..at], out);
            repeat(values[at], length, signed, out);
            begin = at + length;
        }
        at += length;
    }
    loose(&coded[begin..], out);
}

/// Appends the values between two repetitions, if there are any.
fn loose(coded: &[u64], out: &mut Vec<u8>) {
    if !coded.is_empty() {
        let all = coded.iter().fold(0, |all, value| all | value);
        direct(coded, width_for(64 - all.leading_zeros()), out);
    }
}
