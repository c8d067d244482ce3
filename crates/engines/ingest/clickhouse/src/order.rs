//! Sorts the rows of a block by the table's key, so that the server need not.
//!
//! A MergeTree sorts each block by its key before it writes it, unless it is sorted already. Here
//! the key is a number made of codes, and sorting numbers takes a fraction of the server's time.

use std::ops::Range;

use dyno_ingest::contract::{band_of, bands};
use dyno_ingest::scan::{Columns, Strings};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Bits that one pass of the radix sort uses.
const DIGIT: u32 = 11;
const BUCKETS: usize = 1 << DIGIT;

/// Sorts rows by (timestamp, band, callsign), and reuses its memory.
#[derive(Default)]
pub(crate) struct Order {
    keyed: Vec<(u64, u32)>,
    spare: Vec<(u64, u32)>,
    rows: Vec<u32>,
    ranks: Ranks,
}

impl Order {
    /// Row numbers of `columns` in the order of the key.
    pub fn sorted_rows(&mut self, columns: &Columns) -> &[u32] {
        self.ranks.update(&columns.dictionaries.callsign);
        let hertz = columns.dictionaries.frequency.values();
        let bands: Vec<u64> = hertz.iter().map(|&hz| band_rank(hz)).collect();
        let earliest = columns.timestamp.iter().copied().min().unwrap_or(0);
        let rank_bits = bits(self.ranks.ranks.len() as u64);
        let band_bits = bits(BAND_RANKS);
        let keys = columns
            .timestamp
            .iter()
            .zip(&columns.frequency)
            .zip(&columns.callsign)
            .map(|((&time, &frequency), &callsign)| {
                let time = u64::from(time - earliest);
                let band = bands[frequency as usize];
                let rank = u64::from(self.ranks.ranks[callsign as usize]);
                // Time and band need 38 bits, which leaves 26 for the rank of the callsign. With
                // more callsigns the order would only be worse, and the server would sort the block
                // again.
                (time << band_bits | band) << rank_bits | rank
            });
        self.keyed.clear();
        self.keyed.extend(keys.zip(0u32..));
        self.sorted()
    }

    /// Row numbers in the order of these keys.
    pub fn by(&mut self, keys: impl Iterator<Item = u64>) -> &[u32] {
        self.keyed.clear();
        self.keyed.extend(keys.zip(0u32..));
        self.sorted()
    }

    fn sorted(&mut self) -> &[u32] {
        sort(&mut self.keyed, &mut self.spare);
        self.rows.clear();
        self.rows.extend(self.keyed.iter().map(|&(_, row)| row));
        &self.rows
    }
}

/// Ranks of bands in the order of their codes: 0 for none, then the contract's.
const BAND_RANKS: u64 = 64;

fn band_rank(hertz: u64) -> u64 {
    let code = band_of(hertz);
    // The contract lists its bands in the order of their codes.
    let place = bands().iter().position(|&(_, _, band)| band == code);
    place.map_or(0, |place| place as u64 + 1)
}

/// Bits needed for numbers below `count`.
pub(crate) fn bits(count: u64) -> u32 {
    u64::BITS - count.saturating_sub(1).leading_zeros()
}

/// Sorts by the keys and keeps the order of equal ones. A digit that all keys share costs no pass.
fn sort(keyed: &mut Vec<(u64, u32)>, spare: &mut Vec<(u64, u32)>) {
    if keyed.is_sorted_by_key(|&(key, _)| key) {
        return;
    }
    let all = keyed.iter().fold(0, |all, &(key, _)| all | key);
    spare.clear();
    spare.resize(keyed.len(), (0, 0));
    // Each pass keeps the order that the passes before it have made among equal digits. So the
    // digits go from the lowest to the highest.
    let mut shift = 0;
    while shift < u64::BITS && all >> shift != 0 {
        let from = shift;
        let digit = |key: u64| (key >> from) as usize & (BUCKETS - 1);
        let mut counts = [0usize; BUCKETS];
        keyed.iter().for_each(|&(key, _)| counts[digit(key)] += 1);
        shift += DIGIT;
        if counts.contains(&keyed.len()) {
            continue;
        }
        let mut at = 0;
        for count in &mut counts {
            at += std::mem::replace(count, at);
        }
        for &pair in keyed.iter() {
            let place = &mut counts[digit(pair.0)];
            spare[*place] = pair;
            *place += 1;
        }
        std::mem::swap(keyed, spare);
    }
}

/// The rank of each string of a dictionary in their order.
#[derive(Default)]
pub(crate) struct Ranks {
    pub ranks: Vec<u32>,
}

impl Ranks {
    /// Ranks new strings. A dictionary only grows, unless it is cleared and gets other strings.
    pub fn update(&mut self, strings: &Strings) {
        let mut sorted: Vec<(u128, &[u8], u32)> = strings
            .iter()
            .zip(0u32..)
            .map(|(string, code)| (prefix(string), string, code))
            .collect();
        sorted.sort_unstable();
        self.ranks.clear();
        self.ranks.resize(sorted.len(), 0);
        for (&(_, _, code), rank) in sorted.iter().zip(0u32..) {
            self.ranks[code as usize] = rank;
        }
    }
}

/// The first 16 bytes as a number that compares as they do.
fn prefix(string: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let len = string.len().min(16);
    bytes[..len].copy_from_slice(&string[..len]);
    u128::from_be_bytes(bytes)
}

/// Cuts rows in the order of the key at the end of each UTC month, so that a block lies in one
/// partition.
pub(crate) fn months(rows: &[u32], timestamps: &[u32]) -> Vec<Range<usize>> {
    let time = |at: usize| timestamps[rows[at] as usize];
    let mut ranges = Vec::new();
    let mut start = 0;
    while start < rows.len() {
        let end_s = end_of_month(time(start));
        let len = rows[start..].partition_point(|&row| u64::from(timestamps[row as usize]) < end_s);
        ranges.push(start..start + len);
        start += len;
    }
    ranges
}

/// The first second after the month of `second`, both in Unix time.
fn end_of_month(second: u32) -> u64 {
    let day = Timestamp::constant(i64::from(second), 0)
        .to_zoned(TimeZone::UTC)
        .date();
    let next = day
        .last_of_month()
        .tomorrow()
        .and_then(|day| day.to_zoned(TimeZone::UTC));
    // A 32-bit time ends in 2106, so there is always a next month.
    next.map_or(u64::MAX, |next| next.timestamp().as_second() as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn columns(rows: &[(u32, u64, String)]) -> Columns {
        let mut columns = Columns::default();
        for (time, hertz, callsign) in rows {
            let dictionaries = &mut columns.dictionaries;
            columns.timestamp.push(*time);
            columns
                .frequency
                .push(dictionaries.frequency.code_of(*hertz));
            let code = dictionaries.callsign.code_of(callsign.as_bytes());
            columns.callsign.push(code);
        }
        columns
    }

    proptest! {
        #[test]
        fn rows_come_in_the_order_of_the_key(
            rows in proptest::collection::vec(
                (any::<u32>(), 0u64..60_000_000, "[A-Z0-9/]{0,20}"), 0..300),
            spread in 0u32..32,
        ) {
            let rows: Vec<_> = rows.into_iter().map(|(t, hz, c)| (t >> spread, hz, c)).collect();
            let columns = columns(&rows);
            let mut order = Order::default();
            let sorted = order.sorted_rows(&columns).to_vec();
            let mut expected: Vec<u32> = (0..rows.len() as u32).collect();
            expected.sort_by_key(|&row| {
                let (time, hertz, callsign) = &rows[row as usize];
                (*time, band_of(*hertz), callsign.clone())
            });
            prop_assert_eq!(&sorted, &expected);
            let months = months(&sorted, &columns.timestamp);
            prop_assert_eq!(months.iter().map(ExactSizeIterator::len).sum::<usize>(), rows.len());
        }
    }

    #[test]
    fn months_end_where_the_calendar_says() {
        for (second, end) in [
            (0, 31 * 86_400),
            (1_672_531_199, 1_672_531_200),
            (1_672_531_200, 1_675_209_600),
            (1_709_164_799, 1_709_251_200),
            (1_709_164_800, 1_709_251_200),
        ] {
            assert_eq!(end_of_month(second), end, "{second}");
        }
        // 2106-02-07 lies in a month that ends at 2106-03-01, behind what 32 bits hold.
        assert_eq!(end_of_month(u32::MAX), 4_296_844_800);
    }
}
