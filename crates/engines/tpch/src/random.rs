//! The random numbers of TPC-H, which come from a multiplicative generator with one stream for each
//! column.
//!
//! The state after n draws is seed x 16807^n modulo 2^31 - 1. So any draw of any row is found by
//! one power, and rows can be made in any order.

/// The modulus of all states, 2^31 - 1, which is a prime.
pub(crate) const MODULUS: u32 = 0x7fff_ffff;
/// The multiplier of Lewis, Goodman and Miller's "minimal standard", which dbgen uses.
pub(crate) const MULTIPLIER: u32 = 16807;

/// a x b modulo the prime, for a and b below it.
///
/// It works in 64 bits from end to end and without a branch, so that a vector of such lanes needs
/// no shuffle. The masks tell the compiler that multiplying 32 bits by 32 is enough.
#[inline(always)]
pub(crate) const fn times_wide(a: u64, b: u64) -> u64 {
    const MASK: u64 = MODULUS as u64;
    let product = (a & 0xffff_ffff) * (b & 0xffff_ffff);
    // 2^31 is 1 modulo 2^31 - 1, so the high part counts as it stands, here and in what carries
    // over.
    let folded = (product & MASK) + (product >> 31);
    (folded + ((folded + 1) >> 31)) & MASK
}

/// The same as [`times_wide`], for single numbers of 32 bits.
#[inline(always)]
pub(crate) const fn times(a: u32, b: u32) -> u32 {
    times_wide(a as u64, b as u64) as u32
}

/// base^exponent modulo the prime, by repeated squaring.
pub(crate) const fn power(base: u32, mut exponent: u64) -> u32 {
    let mut square = base;
    let mut result = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = times(result, square);
        }
        square = times(square, square);
        exponent >>= 1;
    }
    result
}

/// The random numbers of one column. Each unit (a row, or an order with its lines) owns the same
/// number of draws, whether it uses them or not, which makes every unit reachable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    seed: u32,
    per_unit: u32,
}

impl Stream {
    pub(crate) const fn new(seed: u32, per_unit: u32) -> Stream {
        Stream { seed, per_unit }
    }

    /// The state before the first draw of a unit.
    pub(crate) fn before(&self, unit: u64) -> u32 {
        times(
            self.seed,
            power(MULTIPLIER, unit * u64::from(self.per_unit)),
        )
    }

    /// The factor from the state before a unit to the state before the next one.
    pub(crate) const fn stride(&self) -> u32 {
        power(MULTIPLIER, self.per_unit as u64)
    }
}

/// The most values to which a draw can be mapped with integers; see [`map`].
pub(crate) const NARROW_LIMIT: u32 = 2_000_000;

/// The value in 0..range that dbgen makes of a state: floor(state / modulus x range) in doubles.
///
/// The exact quotient is never a whole number and at least 1 / modulus = 4.66e-10 away from one.
/// Two roundings err by less than range x 2^-52, which stays below that for ranges up to 2 million.
/// For these the integer quotient is the same and cheaper. Wider ranges need the very roundings of
/// dbgen.
#[inline(always)]
pub(crate) fn map<const WIDE: bool>(state: u64, range: u32) -> u64 {
    if WIDE {
        let share = f64::from(state as i32) / f64::from(MODULUS as i32);
        return crate::draws::truncate(share * f64::from(range as i32)).into();
    }
    let product = (state & 0xffff_ffff) * u64::from(range);
    // The quotient by 2^31 - 1, for any product below 2^62.
    (product + (product >> 31) + 1) >> 31
}

/// The same as [`map`], with the way chosen by the range.
pub(crate) fn map_any(state: u32, range: u32) -> u32 {
    let value = if range > NARROW_LIMIT {
        map::<true>(state.into(), range)
    } else {
        map::<false>(state.into(), range)
    };
    value as u32
}

/// Reads one stream in order, for columns that are made value by value.
#[derive(Clone, Copy)]
pub(crate) struct Reader {
    state: u32,
}

impl Reader {
    pub(crate) fn at(state: u32) -> Reader {
        Reader { state }
    }

    /// Draws once, and returns the new state.
    #[inline(always)]
    pub(crate) fn draw(&mut self) -> u32 {
        self.state = times(self.state, MULTIPLIER);
        self.state
    }

    /// Draws once, and returns a value in 0..range.
    #[inline(always)]
    pub(crate) fn below(&mut self, range: u32) -> u32 {
        map_any(self.draw(), range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ten_thousandth_state_is_the_published_one() {
        // Park and Miller, "Random number generators: good ones are hard to find" (1988).
        assert_eq!(power(MULTIPLIER, 10_000), 1_043_618_065);
        assert_eq!(Stream::new(1, 10).before(1_000), 1_043_618_065);
    }

    #[test]
    fn products_are_reduced() {
        let modulus = u64::from(MODULUS);
        let mut reader = Reader::at(1);
        for _ in 0..100_000 {
            let (a, b) = (u64::from(reader.draw()), u64::from(reader.draw()));
            assert_eq!(times_wide(a, b), a * b % modulus);
        }
        for (a, b) in [(1, 1), (1, modulus - 1), (modulus - 1, modulus - 1)] {
            assert_eq!(times_wide(a, b), a * b % modulus);
        }
    }

    #[test]
    fn integers_map_as_doubles_do() {
        let mut reader = Reader::at(19_620_718);
        for range in [
            2,
            3,
            7,
            50,
            61,
            2406,
            9999,
            200_000,
            1_099_999,
            NARROW_LIMIT,
        ] {
            for _ in 0..20_000 {
                let state = reader.draw().into();
                assert_eq!(map::<false>(state, range), map::<true>(state, range));
            }
            for state in [1, 2, MODULUS - 2, MODULUS - 1].map(u64::from) {
                assert_eq!(map::<false>(state, range), map::<true>(state, range));
            }
        }
    }
}
