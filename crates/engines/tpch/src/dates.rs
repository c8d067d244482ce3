//! Dates, which are numbers of days since 1970-01-01, and their text.

/// 1992-01-01, the first day of the benchmark (clause 4.2.2.12).
pub const FIRST_DAY: i32 = 8035;
/// 1998-12-31, the last day of the benchmark.
pub const LAST_DAY: i32 = FIRST_DAY + 2556;
/// 1995-06-17, the day that the specification takes for today. Later dates lie in the future.
pub const TODAY: i32 = FIRST_DAY + 1263;

/// Prints a day as dbgen does, `1995-06-17`. Its year must have four digits.
pub fn text(day: i32) -> [u8; 10] {
    let (year, month, day) = civil(day);
    let mut text = *b"0000-00-00";
    for (places, mut number) in [(0..4, year), (5..7, month), (8..10, day)] {
        for place in places.rev() {
            text[place] = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
    text
}

/// Year, month and day of a day from 0000-03-01 on. Days are counted in years that begin in March,
/// so that the leap day is the last of its year.
fn civil(day: i32) -> (u32, u32, u32) {
    const DAYS_OF_400_YEARS: u32 = 146_097;
    // 1970-01-01 is day 719468 of the calendar that begins at 0000-03-01.
    let days = (day + 719_468) as u32;
    let (era, days) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    // Of 1460 days in four years one is the leap day, but not in the last year of a century, and
    // again in the last one of an era.
    let year = (days - days / 1460 + days / 36_524 - days / 146_096) / 365;
    let days = days - (365 * year + year / 4 - year / 100);
    // Months from March on have 153 days for every five.
    let month = (5 * days + 2) / 153;
    let day = days - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (400 * era + year + u32::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_count_through_the_calendar() {
        let months = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut day = 0;
        for year in 1970..2100 {
            for (month, &length) in months.iter().enumerate() {
                let leap = month == 1 && year % 4 == 0;
                for of_month in 1..=length + i32::from(leap) {
                    let expected = format!("{year}-{:02}-{of_month:02}", month + 1);
                    assert_eq!(text(day), expected.as_bytes());
                    day += 1;
                }
            }
        }
    }

    #[test]
    fn days_of_the_specification() {
        assert_eq!(&text(FIRST_DAY), b"1992-01-01");
        assert_eq!(&text(TODAY), b"1995-06-17");
        assert_eq!(&text(LAST_DAY), b"1998-12-31");
    }
}
