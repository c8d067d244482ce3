//! Turns days since 1970-01-01 into dates and their text.

/// The first day of the table, 1992-01-01, and how many it has: the years of TPC-H.
const FIRST: i32 = 8035;
const DAYS: usize = 2557;
/// The characters that all dates of the table begin with.
pub(super) const CENTURY: u16 = u16::from_le_bytes(*b"19");
/// The dates from `92-01-01` on. Without the century each takes 8 bytes, so that the table stays in
/// the first-level cache.
static TABLE: [u64; DAYS] = table();

/// The text of a day behind [`CENTURY`], the first character in the lowest byte. `None` if the
/// table does not have the day.
#[inline(always)]
pub(super) fn in_table(day: i32) -> Option<u64> {
    // Days before the first one wrap around to numbers that are far too large for the table.
    TABLE.get(day.wrapping_sub(FIRST) as u32 as usize).copied()
}

const fn table() -> [u64; DAYS] {
    let mut table = [0; DAYS];
    let mut at = 0;
    while at < DAYS {
        let (year, month, day) = civil(FIRST + at as i32);
        let parts = [year as u32 % 100, month, day];
        let mut bytes = *b"00-00-00";
        let mut part = 0;
        while part < 3 {
            bytes[3 * part] += (parts[part] / 10) as u8;
            bytes[3 * part + 1] += (parts[part] % 10) as u8;
            part += 1;
        }
        table[at] = u64::from_le_bytes(bytes);
        at += 1;
    }
    table
}

/// Year, month and day of the Gregorian calendar, which is thought to reach back for ever, with a
/// year 0 before the year 1.
pub(super) const fn civil(day: i32) -> (i32, u32, u32) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    // Years begin in March here, so that the leap day is the last of its year; 1970-01-01 is day
    // 719468 of the calendar that begins at 0000-03-01.
    let days = day as i64 + 719_468;
    let era = days.div_euclid(DAYS_OF_400_YEARS);
    let days = days.rem_euclid(DAYS_OF_400_YEARS);
    let year = (days - days / 1460 + days / 36_524 - days / 146_096) / 365;
    let days = days - (365 * year + year / 4 - year / 100);
    // Months from March on have 153 days for every five.
    let month = (5 * days + 2) / 153;
    let of_month = days - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = 400 * era + year + (month <= 2) as i64;
    (year as i32, month as u32, of_month as u32)
}

#[cfg(test)]
mod tests {
    use super::{CENTURY, DAYS, FIRST, civil, in_table};

    #[test]
    fn days_count_through_the_calendar() {
        let months = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut day = 0;
        for year in 1970..2401 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            for (month, &length) in (1..).zip(&months) {
                for of_month in 1..=length + u32::from(leap && month == 2) {
                    assert_eq!(civil(day), (year, month, of_month));
                    day += 1;
                }
            }
        }
        assert_eq!(civil(-719_528), (0, 1, 1));
        assert_eq!(civil(-719_529), (-1, 12, 31));
    }

    #[test]
    fn the_table_has_the_years_of_the_benchmark() {
        for day in FIRST..FIRST + DAYS as i32 {
            let (year, month, of_month) = civil(day);
            let mut text = CENTURY.to_le_bytes().to_vec();
            text.extend(in_table(day).expect("in the table").to_le_bytes());
            assert_eq!(text, format!("{year}-{month:02}-{of_month:02}").as_bytes());
        }
        for day in [i32::MIN, -1, FIRST - 1, FIRST + DAYS as i32, i32::MAX] {
            assert_eq!(in_table(day), None);
        }
    }
}
