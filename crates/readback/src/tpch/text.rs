//! Reads CSV and TBL files by the `csv` crate.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use csv::{ByteRecord, ReaderBuilder};
use dyno_tpch::Kind;

use super::{ReadOptions, Sum, factor, is_bare, is_text, key_columns, text_value, weight};

/// Days from the first of March of the year 0 to the first of January 1970.
const TO_1970: i64 = 719_468;

/// The rows and sum of the lines that begin in a share of a CSV file's bytes.
pub(super) fn csv(path: &Path, options: ReadOptions) -> Result<Sum, String> {
    let builder = ReaderBuilder::new();
    read(path, options, builder, true)
}

/// The rows and sum of such lines of a TBL file, where a bar ends each field and nothing is quoted.
pub(super) fn tbl(path: &Path, options: ReadOptions) -> Result<Sum, String> {
    let mut builder = ReaderBuilder::new();
    builder.delimiter(b'|').quoting(false);
    read(path, options, builder, false)
}

fn read(
    path: &Path,
    options: ReadOptions,
    mut builder: ReaderBuilder,
    header: bool,
) -> Result<Sum, String> {
    let mut file = File::open(path).map_err(|e| e.to_string())?;
    let (from, to) = lines_of(&mut file, options).map_err(|e| e.to_string())?;
    file.seek(SeekFrom::Start(from))
        .map_err(|e| e.to_string())?;
    let mut reader = builder
        .has_headers(header && options.share.number == 0)
        .buffer_capacity(1 << 18)
        .from_reader(file.take(to - from));
    let columns = options.table.columns();
    let (first, second) = key_columns(options.table);
    let bare: Vec<bool> = columns.iter().map(|c| is_bare(c, options.texts)).collect();
    let mut sum = Sum::default();
    let mut record = ByteRecord::new();
    // A line of a TBL file ends with a bar, behind which stands one empty field.
    let fields = columns.len() + usize::from(!header);
    while reader
        .read_byte_record(&mut record)
        .map_err(|e| e.to_string())?
    {
        if record.len() != fields {
            return Err(format!("row {} has {} fields", sum.rows + 1, record.len()));
        }
        let second = second.map_or(Some(0), |column| number(&record[column]));
        let key = number(&record[first]).zip(second);
        let Some((key, second)) = key else {
            return Err(format!("row {} has no key", sum.rows + 1));
        };
        let weight = weight(options.table, key, second);
        let mut row = 0u64;
        for (at, column) in columns.iter().enumerate() {
            let value = match column.kind {
                _ if is_text(column) => Some(text_value(&record[at], bare[at])),
                Kind::Date => day(&record[at]),
                Kind::Decimal | Kind::WholeDecimal => hundredths(&record[at]),
                _ => number(&record[at]),
            };
            let Some(value) = value else {
                return Err(format!(
                    "row {}: {} is not what it should be",
                    sum.rows + 1,
                    column.name
                ));
            };
            row = row.wrapping_add(value.wrapping_mul(factor(at)));
        }
        sum.rows += 1;
        sum.total = sum.total.wrapping_add(row.wrapping_mul(weight));
    }
    Ok(sum)
}

/// The offsets of the first line that begins in the share and of the first one in the next share. A
/// line end always ends a row, because no text of TPC-H has one in it.
fn lines_of(file: &mut File, options: ReadOptions) -> io::Result<(u64, u64)> {
    let bytes = options.share.range_of(file.metadata()?.len());
    let mut next_line = |at: u64| -> io::Result<u64> {
        if at == 0 {
            return Ok(0);
        }
        // From the byte before, so that a line that begins exactly at `at` is found and not
        // skipped.
        file.seek(SeekFrom::Start(at - 1))?;
        let mut skipped = Vec::new();
        let length = BufReader::new(&*file).read_until(b'\n', &mut skipped)?;
        Ok(at - 1 + length as u64)
    };
    Ok((next_line(bytes.start)?, next_line(bytes.end)?))
}

fn number(text: &[u8]) -> Option<u64> {
    match text {
        [b'-', digits @ ..] => unsigned(digits).map(u64::wrapping_neg),
        digits => unsigned(digits),
    }
}

/// A number without a sign that fits into 64 bits.
fn unsigned(digits: &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for &digit in digits {
        let digit = u64::from(digit.is_ascii_digit().then(|| digit - b'0')?);
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    (!digits.is_empty()).then_some(value)
}

/// Hundredths, from a number with one or two digits behind its point, or without a point.
fn hundredths(text: &[u8]) -> Option<u64> {
    let Some(point) = text.iter().position(|&byte| byte == b'.') else {
        return Some(number(text)?.wrapping_mul(100));
    };
    let (whole, rest) = (number(&text[..point])?, text.get(point + 1..)?);
    let cents = match rest {
        [ten] => unsigned(&[*ten, b'0'])?,
        [_, _] => unsigned(rest)?,
        _ => return None,
    };
    let whole = whole.wrapping_mul(100);
    Some(if text[0] == b'-' {
        whole.wrapping_sub(cents)
    } else {
        whole.wrapping_add(cents)
    })
}

/// Days since the first of January 1970, as the bits of a signed number.
fn day(text: &[u8]) -> Option<u64> {
    let [y @ .., b'-', m0, m1, b'-', d0, d1] = text else {
        return None;
    };
    let two = |tens: u8, ones: u8| unsigned(&[tens, ones]).map(|number| number as i64);
    let (month, day) = (two(*m0, *m1)?, two(*d0, *d1)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let size = |digits: &[u8]| unsigned(digits).and_then(|size| u32::try_from(size).ok());
    let year = match y {
        [b'-', digits @ ..] => -i64::from(size(digits)?),
        digits => i64::from(size(digits)?),
    };
    // Days from the first of March of the year 0, whose leap day is the last of its year. January
    // and February of that year lie before it, so all of this has a sign.
    let year = year - i64::from(month < 3);
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let since_march = (month + 9) % 12;
    let days = year * 365 + leap_days + (153 * since_march + 2) / 5 + day - 1;
    Some((days - TO_1970) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_what_they_mean() {
        assert_eq!(day(b"1970-01-01"), Some(0));
        assert_eq!(day(b"1992-01-01"), Some(8_035));
        assert_eq!(day(b"1996-02-29"), Some(9_555));
        assert_eq!(day(b"1996-13-01"), None);
        assert_eq!(hundredths(b"17"), Some(1_700));
        assert_eq!(hundredths(b"0.04"), Some(4));
        assert_eq!(hundredths(b"-0.99"), Some(99u64.wrapping_neg()));
        assert_eq!(hundredths(b"-986.96"), Some(98_696u64.wrapping_neg()));
        assert_eq!(hundredths(b"1.234"), None);
        assert_eq!(number(b"-"), None);
    }

    #[test]
    fn days_are_counted_on_both_sides_of_the_year_0() {
        for (text, days) in [
            (&b"0000-03-01"[..], -719_468i64),
            (b"0000-02-29", -719_469),
            (b"0000-01-01", -719_528),
            (b"-0001-12-31", -719_529),
            (b"10000-01-01", 2_932_897),
            (b"-5877641-06-23", i32::MIN.into()),
            (b"5881580-07-11", i32::MAX.into()),
        ] {
            assert_eq!(day(text), Some(days as u64));
        }
        assert_eq!(day(b"99999999999999999999999-01-01"), None);
        assert_eq!(day(b"--1-01-01"), None);
    }

    #[test]
    fn numbers_that_do_not_fit_or_have_a_second_sign_are_refused() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(number(b"18446744073709551616"), None);
        assert_eq!(number(b"99999999999999999999999"), None);
        assert_eq!(hundredths(b"1.-9"), None);
    }
}
