//! CSV and TBL files, by the `csv` crate.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use csv::{ByteRecord, ReaderBuilder};
use dyno_tpch::Kind;

use super::{Sum, Wanted, factor, is_bare, is_text, key_columns, text_value, weight};

/// Days from the first of March of the year 0 to the first of January 1970.
const TO_1970: u64 = 719_468;

/// Rows and sum of the lines that begin in a share of a CSV file's bytes.
pub(super) fn csv(path: &Path, wanted: Wanted) -> Result<Sum, String> {
    let builder = ReaderBuilder::new();
    read(path, wanted, builder, true)
}

/// The same of a TBL file, where a bar ends each field and nothing is quoted.
pub(super) fn tbl(path: &Path, wanted: Wanted) -> Result<Sum, String> {
    let mut builder = ReaderBuilder::new();
    builder.delimiter(b'|').quoting(false);
    read(path, wanted, builder, false)
}

fn read(
    path: &Path,
    wanted: Wanted,
    mut builder: ReaderBuilder,
    header: bool,
) -> Result<Sum, String> {
    let mut file = File::open(path).map_err(|e| e.to_string())?;
    let (from, to) = lines_of(&mut file, wanted).map_err(|e| e.to_string())?;
    file.seek(SeekFrom::Start(from))
        .map_err(|e| e.to_string())?;
    let mut reader = builder
        .has_headers(header && wanted.share.number == 0)
        .buffer_capacity(1 << 18)
        .from_reader(file.take(to - from));
    let columns = wanted.table.columns();
    let (first, second) = key_columns(wanted.table);
    let bare: Vec<bool> = columns.iter().map(|c| is_bare(c, wanted.texts)).collect();
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
        let weight = weight(wanted.table, key, second);
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

/// Where the first line that begins in the share begins, and where that of the next share does. No
/// text of TPC-H has a line end in it.
fn lines_of(file: &mut File, wanted: Wanted) -> io::Result<(u64, u64)> {
    let bytes = wanted.share.of(file.metadata()?.len());
    let mut next_line = |at: u64| -> io::Result<u64> {
        if at == 0 {
            return Ok(0);
        }
        file.seek(SeekFrom::Start(at - 1))?;
        let mut skipped = Vec::new();
        let length = BufReader::new(&*file).read_until(b'\n', &mut skipped)?;
        Ok(at - 1 + length as u64)
    };
    Ok((next_line(bytes.start)?, next_line(bytes.end)?))
}

fn number(text: &[u8]) -> Option<u64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let mut value = 0u64;
    for &digit in digits {
        value = value * 10 + u64::from(digit.is_ascii_digit().then(|| digit - b'0')?);
    }
    (!digits.is_empty()).then(|| {
        if negative {
            value.wrapping_neg()
        } else {
            value
        }
    })
}

/// Hundredths, with two digits behind the point or without a point.
fn hundredths(text: &[u8]) -> Option<u64> {
    let Some(point) = text.iter().position(|&byte| byte == b'.') else {
        return Some(number(text)?.wrapping_mul(100));
    };
    let (whole, rest) = (number(&text[..point])?, text.get(point + 1..)?);
    let cents = match rest {
        [ten] => number(&[*ten, b'0'])?,
        [_, _] => number(rest)?,
        _ => return None,
    };
    let whole = whole.wrapping_mul(100);
    Some(if text[0] == b'-' {
        whole.wrapping_sub(cents)
    } else {
        whole.wrapping_add(cents)
    })
}

/// Days since the first of January 1970.
fn day(text: &[u8]) -> Option<u64> {
    let [y @ .., b'-', m0, m1, b'-', d0, d1] = text else {
        return None;
    };
    let (year, month, day) = (number(y)?, number(&[*m0, *m1])?, number(&[*d0, *d1])?);
    let since_march = (month + 9) % 12;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days from the first of March of the year 0, whose leap day is the last of its year.
    let year = year - u64::from(month < 3);
    let days = year * 365 + year / 4 - year / 100 + year / 400;
    let days = days + (153 * since_march + 2) / 5 + day - 1;
    Some(days.wrapping_sub(TO_1970))
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
}
