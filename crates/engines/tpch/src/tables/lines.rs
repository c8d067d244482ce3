//! The draws that `orders` and `lineitem` share. An order's price is the sum of its lines, so both
//! tables draw them.

use crate::dates::{FIRST_DAY, LAST_DAY};
use crate::draws::{Draw, each};
use crate::random::Stream;
use crate::scale::Scale;

/// The most lines of an order. Each order owns draws for so many.
pub(crate) const MAX_LINES: usize = 7;
pub(crate) const PER_ORDER: u32 = MAX_LINES as u32;

const COUNT: Draw = Draw::new(Stream::new(1_434_868_289, 1), PER_ORDER);

/// The most days from order to shipment, and below it from shipment to receipt.
pub(crate) const SHIP_DAYS: u32 = 121;
pub(crate) const RECEIPT_DAYS: u32 = 30;

/// The last order is placed so early that its lines arrive within the years of the benchmark.
const ORDER_DAYS: u32 = (LAST_DAY - FIRST_DAY) as u32 - SHIP_DAYS - RECEIPT_DAYS + 1;
const ORDER_DATE: Draw = Draw::new(Stream::new(1_066_728_069, 1), ORDER_DAYS);

pub(crate) const QUANTITY: Draw = Draw::new(Stream::new(209_208_115, PER_ORDER), 50);
pub(crate) const DISCOUNT: Draw = Draw::new(Stream::new(554_590_007, PER_ORDER), 11);
pub(crate) const TAX: Draw = Draw::new(Stream::new(721_958_466, PER_ORDER), 9);
pub(crate) const SHIP: Draw = Draw::new(Stream::new(1_769_349_045, PER_ORDER), SHIP_DAYS);

/// The draw of a line's part. Adding 1 to it makes the part's key.
pub(crate) fn part_of_line(scale: &Scale) -> Draw {
    Draw::new(Stream::new(1_808_217_256, PER_ORDER), scale.parts)
}

/// Draws how many lines each order has, and returns their sum.
pub(crate) fn count_lines(first: u64, lines: &mut [u8]) -> usize {
    each(&COUNT, first, 1, lines);
    lines.iter().map(|&lines| usize::from(lines)).sum()
}

/// Draws the day on which each order was placed.
pub(crate) fn order_dates(first: u64, dates: &mut [i32]) {
    each(&ORDER_DATE, first, FIRST_DAY, dates);
}

/// The key of an order. Of each 32 keys only the first eight are used (clause 4.2.3).
#[inline(always)]
pub(crate) fn order_key(order: u64) -> i64 {
    let number = order + 1;
    (((number >> 3) << 5) | (number & 7)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sparse() {
        let keys: Vec<i64> = (0..10).map(order_key).collect();
        assert_eq!(keys, [1, 2, 3, 4, 5, 6, 7, 32, 33, 34]);
        assert_eq!(order_key(1_499_999), 6_000_000);
    }
}
