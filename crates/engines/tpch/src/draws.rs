//! Draws many random numbers at once. These are the hot loops, written in lanes and compiled for
//! AVX-512, for AVX2 and for any processor.
//!
//! The code is `unsafe` where it calls into the first two after asking the processor, and in one
//! conversion of a float whose range is known.

use crate::random::{MULTIPLIER, NARROW_LIMIT, Stream, map, power, times, times_wide};

/// How many states are made and then used together, so that they stay in the first-level cache.
const BLOCK: usize = 512;
/// How many independent chains of multiplications there are, enough to hide the latency of one.
const CHAINS: usize = 16;
/// How many values are written for each order. An order has at most seven lines, but eight lanes
/// are a whole vector, and the next order overwrites those that are too many.
pub(crate) const LANES: usize = 8;

/// A type of number that draws are turned into.
pub(crate) trait Number: Copy + Default {
    /// The drawn value plus `low`, modulo the width of the type.
    fn from_draw(value: u64, low: Self) -> Self;
}

macro_rules! number {
    ($($type:ty)*) => {$(
        impl Number for $type {
            #[inline(always)]
            fn from_draw(value: u64, low: $type) -> $type {
                (value as $type).wrapping_add(low)
            }
        }
    )*};
}
number!(u8 u32 u64 i32 i64);

/// Says which draw of each unit is used, and how many values it is mapped to.
#[derive(Clone, Copy)]
pub(crate) struct Draw {
    stream: Stream,
    /// The number of the draw within the unit, from 1.
    nth: u32,
    /// How far apart the draws for two lines of an order are.
    per_line: u32,
    /// How many values there are.
    range: u32,
}

impl Draw {
    /// The only draw of a unit in its stream, or the first of each.
    pub(crate) const fn new(stream: Stream, range: u32) -> Draw {
        Draw {
            stream,
            nth: 1,
            per_line: 1,
            range,
        }
    }

    /// The `nth` draw, with `per_line` of them for each line.
    pub(crate) const fn nth(stream: Stream, nth: u32, per_line: u32, range: u32) -> Draw {
        Draw {
            stream,
            nth,
            per_line,
            range,
        }
    }

    const fn wide(&self) -> bool {
        self.range > NARROW_LIMIT
    }
}

/// Rounds a value below 2^31, which is not negative, towards zero.
#[inline(always)]
pub(crate) fn truncate(value: f64) -> u32 {
    debug_assert!((0.0..2_147_483_648.0).contains(&value));
    // SAFETY: callers map a state below the modulus to a range below 2^31 (`Scale` and the pool's
    // size hold both), so the value is finite, not negative and fits.
    unsafe { value.to_int_unchecked::<i32>() as u32 }
}

/// Defines a function that runs its body compiled for the widest vectors that the processor has.
macro_rules! compiled_for_each {
    ($(#[$doc:meta])* $name:ident, $body:ident, <$($generic:ident $(: $bound:ident)?),*>,
     ($($argument:ident: $type:ty),*)) => {
        $(#[$doc])*
        pub(crate) fn $name<$($generic $(: $bound)?),*>($($argument: $type),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            fn avx512<$($generic $(: $bound)?),*>($($argument: $type),*) {
                $body($($argument),*);
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2<$($generic $(: $bound)?),*>($($argument: $type),*) {
                $body($($argument),*);
            }

            #[cfg(target_arch = "x86_64")]
            if has_avx512() {
                // SAFETY: the processor has just said that it has what is enabled.
                return unsafe { avx512($($argument),*) };
            } else if std::is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has just said that it has AVX2.
                return unsafe { avx2($($argument),*) };
            }
            $body($($argument),*);
        }
    };
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn has_avx512() -> bool {
    use std::is_x86_feature_detected as has;
    has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl")
}

compiled_for_each!(
    /// One value for each unit from `first` on: low + the draw.
    each, each_body, <T: Number>,
    (draw: &Draw, first: u64, low: T, out: &mut [T])
);
compiled_for_each!(
    /// One value for each line of each order from `first` on, `lines[i]` of them for the i-th
    /// order. Writes up to [`LANES`] values past the last.
    each_line, each_line_body, <T: Number>,
    (draw: &Draw, first: u64, lines: &[u8], low: T, out: &mut [T])
);
compiled_for_each!(
    /// Repeats the value of each order for its lines. Writes up to [`LANES`] values past the last.
    repeat, repeat_body, <T: Number>,
    (values: &[T], lines: &[u8], out: &mut [T])
);
compiled_for_each!(
    /// States after each of the next draws of a stream whose state is `state`.
    states, states_body, <>,
    (state: u32, out: &mut [u32])
);
compiled_for_each!(
    /// Runs `work` compiled for what the processor has.
    vectorised, vectorised_body, <W: Work>,
    (work: W)
);

/// A loop over whole columns that is compiled for what the processor has.
pub(crate) trait Work {
    /// Runs the loop. Implementations must be `inline(always)`. Otherwise they are compiled once,
    /// for the oldest processor.
    fn work(self);
}

#[inline(always)]
fn vectorised_body<W: Work>(work: W) {
    work.work();
}

#[inline(always)]
fn states_body(state: u32, out: &mut [u32]) {
    walk(times(state, MULTIPLIER), MULTIPLIER, out);
}

/// Fills `out`, whose element i becomes first x stride^i modulo the prime.
#[inline(always)]
fn walk<T: Number>(first: u32, stride: u32, out: &mut [T]) {
    // Each state depends on the one before, so a single chain would wait for every multiplication.
    // Chain k has the states k, k + CHAINS and so on, which are one power apart.
    let mut chains = [0; CHAINS];
    let mut state = first;
    for chain in &mut chains {
        *chain = u64::from(state);
        state = times(state, stride);
    }
    let jump = power(stride, CHAINS as u64).into();
    let low = T::default();
    let mut blocks = out.chunks_exact_mut(CHAINS);
    for block in &mut blocks {
        for (state, chain) in block.iter_mut().zip(&mut chains) {
            *state = T::from_draw(*chain, low);
            *chain = times_wide(*chain, jump);
        }
    }
    for (state, &chain) in blocks.into_remainder().iter_mut().zip(&chains) {
        *state = T::from_draw(chain, low);
    }
}

#[inline(always)]
fn each_body<T: Number>(draw: &Draw, first: u64, low: T, out: &mut [T]) {
    let stride = draw.stream.stride();
    let jump = power(stride, BLOCK as u64);
    let to_draw = power(MULTIPLIER, draw.nth.into());
    // The state of the wanted draw of the first unit. Those of the next units are strides apart.
    let mut state = times(draw.stream.before(first), to_draw);
    let mut block = [0u64; BLOCK];
    for values in out.chunks_mut(BLOCK) {
        let block = &mut block[..values.len()];
        walk(state, stride, block);
        // Two loops, because the way to map is the same for all values and a choice for each would
        // keep them from being vectorised.
        if draw.wide() {
            for (value, &state) in values.iter_mut().zip(&*block) {
                *value = T::from_draw(map::<true>(state, draw.range), low);
            }
        } else {
            for (value, &state) in values.iter_mut().zip(&*block) {
                *value = T::from_draw(map::<false>(state, draw.range), low);
            }
        }
        state = times(state, jump);
    }
}

#[inline(always)]
fn each_line_body<T: Number>(draw: &Draw, first: u64, lines: &[u8], low: T, out: &mut [T]) {
    // The powers that lead from the state before an order to the draws of its lines.
    let mut ladder = [0; LANES];
    for (line, step) in ladder.iter_mut().enumerate() {
        let nth = u64::from(draw.nth) + u64::from(draw.per_line) * line as u64;
        *step = power(MULTIPLIER, nth);
    }
    let stride = draw.stream.stride();
    let jump = power(stride, BLOCK as u64);
    let mut state = draw.stream.before(first);
    let mut block = [0u64; BLOCK];
    let mut at = 0;
    for lines in lines.chunks(BLOCK) {
        let block = &mut block[..lines.len()];
        walk(state, stride, block);
        at = if draw.wide() {
            climb::<T, true>(block, lines, &ladder, draw.range, low, out, at)
        } else {
            climb::<T, false>(block, lines, &ladder, draw.range, low, out, at)
        };
        state = times(state, jump);
    }
}

/// Writes eight lines for each order, of which the next order overwrites those that it does not
/// have. This is cheaper than a loop whose length cannot be predicted.
#[inline(always)]
fn climb<T: Number, const WIDE: bool>(
    states: &[u64],
    lines: &[u8],
    ladder: &[u32; LANES],
    range: u32,
    low: T,
    out: &mut [T],
    mut at: usize,
) -> usize {
    let ladder = ladder.map(u64::from);
    for (&state, &lines) in states.iter().zip(lines) {
        let mut values = [T::default(); LANES];
        for (value, &step) in values.iter_mut().zip(&ladder) {
            *value = T::from_draw(map::<WIDE>(times_wide(state, step), range), low);
        }
        // The caller's buffer has room for a whole vector behind the last value.
        out[at..at + LANES].copy_from_slice(&values);
        at += usize::from(lines);
    }
    at
}

#[inline(always)]
fn repeat_body<T: Number>(values: &[T], lines: &[u8], out: &mut [T]) {
    let mut at = 0;
    for (&value, &lines) in values.iter().zip(lines) {
        out[at..at + LANES].copy_from_slice(&[value; LANES]);
        at += usize::from(lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Reader, map_any};

    const FIRST: u64 = 123_456_789;
    const RANGES: [u32; 4] = [2, 200_000, NARROW_LIMIT + 1, 2_000_000_000];

    /// Draw by draw, from the definition.
    fn slowly(draw: &Draw, unit: u64, line: u32) -> u32 {
        let mut reader = Reader::at(draw.stream.before(unit));
        let nth = draw.nth + line * draw.per_line;
        let state = (0..nth).map(|_| reader.draw()).last();
        map_any(state.expect("draws count from 1"), draw.range)
    }

    #[test]
    fn lanes_of_any_width_draw_what_one_by_one_does() {
        for range in RANGES {
            let draw = Draw::nth(Stream::new(709_314_158, 14), 2, 2, range);
            let units = 2 * BLOCK + 3;
            let expected: Vec<i64> = (FIRST..)
                .take(units)
                .map(|unit| i64::from(slowly(&draw, unit, 0)) - 5)
                .collect();
            let (mut wide, mut plain) = (vec![0; units], vec![0; units]);
            each(&draw, FIRST, -5, &mut wide);
            each_body(&draw, FIRST, -5, &mut plain);
            assert!(wide == expected && plain == expected, "{range}");
        }
    }

    #[test]
    fn lines_follow_each_other_without_gaps() {
        let lines: Vec<u8> = (0..BLOCK + 100)
            .map(|order| 1 + (order * 5 % 7) as u8)
            .collect();
        for range in RANGES {
            let draw = Draw::nth(Stream::new(1, 14), 1, 2, range);
            let mut expected = Vec::new();
            for (order, &lines) in (FIRST..).zip(&lines) {
                expected.extend((0..lines).map(|line| slowly(&draw, order, line.into())));
            }
            let mut wide = vec![0; expected.len() + LANES];
            let mut plain = wide.clone();
            each_line(&draw, FIRST, &lines, 0, &mut wide);
            each_line_body(&draw, FIRST, &lines, 0, &mut plain);
            assert_eq!(wide[..expected.len()], expected);
            assert_eq!(plain[..expected.len()], expected);
        }
    }
}
