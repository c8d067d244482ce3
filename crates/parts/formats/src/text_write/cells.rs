//! Writes one value as text to the address where it belongs.
//!
//! This module is `unsafe` because it writes through pointers without looking at the end of the
//! buffer. The caller has counted beforehand what each kind of cell may need ([`ROOM_BYTES`] and
//! the sizes of slots).

use super::careful::{append_date, append_integer};
use super::days::{CENTURY, in_table};
use super::digits::{EIGHT_DIGITS, ZEROS, eight, leading_zero_bits};
use super::layout::{Column, Mark};

/// Room for any number or date, its mark, and the bytes behind them that wide stores overwrite.
pub(super) const ROOM_BYTES: usize = 48;

/// Writes a value and its mark, and returns how many bytes they have. This is a trait because its
/// methods, unlike closures, can be marked to be inlined into loops that are compiled for AVX2.
pub(super) trait Cell<V: Copy> {
    /// Writes at `to`, and may overwrite all of the room there.
    ///
    /// # Safety
    /// [`ROOM_BYTES`] at `to` belong to the caller; their content is lost.
    unsafe fn write(&self, value: V, to: *mut u8) -> u32;
}

/// Integers, and decimals without digits behind the point.
pub(super) struct Integer(pub(super) Mark);

/// Decimals in hundredths, the scale of money.
pub(super) struct Hundredths<'a>(pub(super) &'a Column, pub(super) Mark);

/// Decimals that are mostly whole. `one` is how many units make 1.
pub(super) struct Whole<'a> {
    pub(super) column: &'a Column,
    pub(super) one: i64,
    pub(super) mark: Mark,
}

/// Decimals of other scales, which are printed the slow way.
pub(super) struct Scaled<'a>(pub(super) &'a Column, pub(super) Mark);

/// Dates as days since 1970-01-01.
pub(super) struct Day(pub(super) Mark);

/// Codes into a dictionary, whose slots end with the mark of their column.
pub(super) struct Slot<'a, const BYTES: usize>(pub(super) &'a [[u8; BYTES]]);

/// # Safety
/// As [`Cell::write`].
#[inline(always)]
unsafe fn put<T: Copy>(value: T, to: *mut u8) {
    // SAFETY: the caller has the room, and the place need not be aligned.
    unsafe { to.cast::<T>().write_unaligned(value) }
}

/// Writes the mark behind `length` bytes of text, and returns the length of both.
///
/// # Safety
/// As [`Cell::write`].
#[inline(always)]
unsafe fn end(mark: Mark, to: *mut u8, length: u32) -> u32 {
    // SAFETY: the text has at most 41 bytes, the mark 4.
    unsafe { put(mark.bytes, to.add(length as usize)) };
    length + mark.length
}

/// Copies text that the careful way has made.
///
/// # Safety
/// As [`Cell::write`].
#[cold]
unsafe fn copied(text: &[u8], mark: Mark, to: *mut u8) -> u32 {
    assert!(text.len() + size_of::<u32>() <= ROOM_BYTES);
    // SAFETY: the room is asserted.
    unsafe {
        to.copy_from_nonoverlapping(text.as_ptr(), text.len());
        end(mark, to, text.len() as u32)
    }
}

/// Writes the digits of a number below 10^8 without leading zeros.
///
/// # Safety
/// As [`Cell::write`].
#[inline(always)]
unsafe fn short(number: u64, to: *mut u8) -> u32 {
    let digits = eight(number as u32);
    let zeros = leading_zero_bits(digits, 1);
    // SAFETY: eight bytes.
    unsafe { put((digits | ZEROS) >> zeros, to) };
    8 - zeros / 8
}

/// Writes the digits of any number. It writes at most 20 and may overwrite 4 bytes behind them.
///
/// # Safety
/// As [`Cell::write`].
#[inline(always)]
unsafe fn digits(number: u64, to: *mut u8) -> u32 {
    if number < EIGHT_DIGITS {
        // SAFETY: as for the caller.
        return unsafe { short(number, to) };
    }
    let (high, low) = (number / EIGHT_DIGITS, number % EIGHT_DIGITS);
    // SAFETY: as for the caller: at most twelve digits before these eight.
    unsafe {
        let length = match high {
            0..EIGHT_DIGITS => short(high, to),
            _ => {
                let length = short(high / EIGHT_DIGITS, to);
                put(
                    eight((high % EIGHT_DIGITS) as u32) | ZEROS,
                    to.add(length as usize),
                );
                length + 8
            }
        };
        put(eight(low as u32) | ZEROS, to.add(length as usize));
        length + 8
    }
}

/// Writes a minus for a negative value, and returns how many bytes that was.
///
/// # Safety
/// As [`Cell::write`].
#[inline(always)]
unsafe fn sign(value: i64, to: *mut u8) -> u32 {
    // SAFETY: one byte, written anyway: what follows covers it when it is not wanted.
    unsafe { put(b'-', to) };
    u32::from(value < 0)
}

impl Cell<i64> for Integer {
    #[inline(always)]
    unsafe fn write(&self, value: i64, to: *mut u8) -> u32 {
        // SAFETY: a sign, 20 digits and a mark with their spoiled bytes have less than the room.
        unsafe {
            let signs = sign(value, to);
            let length = digits(value.unsigned_abs(), to.add(signs as usize));
            end(self.0, to, signs + length)
        }
    }
}

impl Cell<i32> for Integer {
    #[inline(always)]
    unsafe fn write(&self, value: i32, to: *mut u8) -> u32 {
        // SAFETY: as for the caller.
        unsafe { Cell::<i64>::write(self, i64::from(value), to) }
    }
}

impl Cell<i64> for Hundredths<'_> {
    #[inline(always)]
    unsafe fn write(&self, value: i64, to: *mut u8) -> u32 {
        let size = value.unsigned_abs();
        if size >= EIGHT_DIGITS {
            // SAFETY: as for the caller.
            return unsafe { Scaled(self.0, self.1).write(value, to) };
        }
        let digits = eight(size as u32);
        // Six digits before the point, of which one is kept, and two behind it.
        let zeros = leading_zero_bits(digits, 3);
        let text = digits | ZEROS;
        let behind = u64::from(b'.') | ((text >> 48) << 8) | (u64::from(self.1.bytes) << 24);
        // SAFETY: a sign, six digits, and eight bytes of point, digits and mark.
        unsafe {
            let signs = sign(value, to);
            put(text >> zeros, to.add(signs as usize));
            let before = signs + 6 - zeros / 8;
            put(behind, to.add(before as usize));
            before + 3 + self.1.length
        }
    }
}

impl Cell<i64> for Whole<'_> {
    #[inline(always)]
    unsafe fn write(&self, value: i64, to: *mut u8) -> u32 {
        // SAFETY: as for the caller.
        unsafe {
            match value % self.one {
                0 => Integer(self.mark).write(value / self.one, to),
                _ => Scaled(self.column, self.mark).write(value, to),
            }
        }
    }
}

impl Cell<i64> for Scaled<'_> {
    #[inline(never)]
    unsafe fn write(&self, value: i64, to: *mut u8) -> u32 {
        let mut text = Vec::new();
        append_integer(value, self.0, &mut text);
        // SAFETY: as for the caller.
        unsafe { copied(&text, self.1, to) }
    }
}

impl Cell<i32> for Day {
    #[inline(always)]
    unsafe fn write(&self, day: i32, to: *mut u8) -> u32 {
        let Some(text) = in_table(day) else {
            let mut text = Vec::new();
            append_date(day, &mut text);
            // SAFETY: as for the caller.
            return unsafe { copied(&text, self.0, to) };
        };
        // SAFETY: two bytes of century, eight of day, and a mark.
        unsafe {
            put(CENTURY, to);
            put(text, to.add(2));
            end(self.0, to, 10)
        }
    }
}

impl<const BYTES: usize> Slot<'_, BYTES> {
    /// # Safety
    /// As [`Cell::write`], though a slot's bytes are all the room it needs.
    #[inline(always)]
    unsafe fn copy(slot: &[u8; BYTES], to: *mut u8) -> u32 {
        // SAFETY: the caller has the room of a slot.
        unsafe { to.copy_from_nonoverlapping(slot.as_ptr(), BYTES) };
        u32::from(slot[BYTES - 1])
    }
}

impl<const BYTES: usize> Cell<u8> for Slot<'_, BYTES> {
    #[inline(always)]
    unsafe fn write(&self, code: u8, to: *mut u8) -> u32 {
        // SAFETY: as for the caller.
        unsafe { Self::copy(&self.0[usize::from(code)], to) }
    }
}

impl<const BYTES: usize> Cell<u32> for Slot<'_, BYTES> {
    #[inline(always)]
    unsafe fn write(&self, code: u32, to: *mut u8) -> u32 {
        // SAFETY: as for the caller.
        unsafe { Self::copy(&self.0[code as usize], to) }
    }
}
