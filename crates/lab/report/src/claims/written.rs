//! A number in the form that a writer gave it: as many digits, the same prefix and unit.

use crate::units::in_seconds;

/// What a number measures, which decides the units that it may be written in.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind<'a> {
    /// A number with this unit, as the record has it.
    Quantity(&'a str),
    /// A ratio, with or without its sign: `4.26`, `4.26×`.
    Ratio,
    /// A share, which is stored as a part of 1: `37%`, `±2.0%`.
    Percent,
    /// A count that is written out in full.
    Count,
}

/// `value` with the digits, the prefix and the unit of `written`; `None` when that is not a number
/// of this kind.
pub(super) fn as_written(written: &str, value: f64, kind: Kind) -> Option<String> {
    let sign_end = if written.starts_with('±') {
        '±'.len_utf8()
    } else {
        0
    };
    let (sign, rest) = written.split_at(sign_end);
    let is_digit = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
    let (digits, unit) = rest.split_at(rest.find(|c| !is_digit(c)).unwrap_or(rest.len()));
    let plain = digits.replace(',', "");
    plain.parse::<f64>().ok()?;
    let scaled = value / scale(unit.trim(), kind)?;
    let decimals = plain.split_once('.').map_or(0, |(_, after)| after.len());
    let rounded = match kind {
        // A count such as 1000 is exact, so its zeros are digits and not rounding.
        Kind::Count => scaled,
        _ => rounded(scaled, &plain),
    };
    let mut text = format!("{rounded:.decimals$}");
    if digits.contains(',') {
        text = grouped(&text);
    }
    Some(format!("{sign}{text}{unit}"))
}

/// Zeros at the end of a long whole number are rounding, as in 9,610,000; two digits always count.
fn rounded(value: f64, digits: &str) -> f64 {
    if digits.contains('.') || digits.len() < 4 {
        return value;
    }
    let zeros = digits.len() - digits.trim_end_matches('0').len();
    let step = 10f64.powi(zeros.min(digits.len() - 2) as i32);
    (value / step).round() * step
}

/// Puts a comma between thousands.
fn grouped(text: &str) -> String {
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

/// How much of the record's unit one of the written unit is.
fn scale(unit: &str, kind: Kind) -> Option<f64> {
    match kind {
        Kind::Count => unit.is_empty().then_some(1.0),
        Kind::Ratio => ["", "×", "x", "times"].contains(&unit).then_some(1.0),
        Kind::Percent => (unit == "%").then_some(0.01),
        Kind::Quantity(own) => match (in_seconds(1.0, own), in_seconds(1.0, unit)) {
            (Some(own), Some(written)) => Some(written / own),
            // A time cannot be converted into what is not a unit of time, and a bare number beside
            // a time would leave the reader to guess the unit.
            (Some(_), None) => None,
            (None, _) if own == "x" => scale(unit, Kind::Ratio),
            (None, _) => prefix(unit, own),
        },
    }
}

const PREFIXES: [(&str, f64); 15] = [
    ("", 1.0),
    ("k", 1e3),
    ("K", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("thousand", 1e3),
    ("million", 1e6),
    ("billion", 1e9),
    ("trillion", 1e12),
];

/// The factor of a prefix before the unit `own`, which may be left out.
fn prefix(unit: &str, own: &str) -> Option<f64> {
    let bare = match unit.strip_suffix(own) {
        Some(before) => before,
        None => unit,
    };
    let found = PREFIXES.iter().find(|(name, _)| *name == bare.trim());
    found.map(|(_, factor)| *factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_and_the_unit_of_the_writer_are_kept() {
        let rows = Kind::Quantity("rows/s");
        for (written, value, kind, expected) in [
            ("4.26", 4.3071, Kind::Ratio, "4.31"),
            ("4×", 4.3071, Kind::Ratio, "4×"),
            ("4.3 times", 4.3071, Kind::Ratio, "4.3 times"),
            ("37%", 0.4149, Kind::Percent, "41%"),
            ("±9.5%", 0.0951, Kind::Percent, "±9.5%"),
            ("6", 10.0, Kind::Count, "10"),
            ("1000", 1049.0, Kind::Count, "1049"),
            ("9.61 M rows/s", 9_813_821.1, rows, "9.81 M rows/s"),
            ("9.6 million", 9_813_821.1, rows, "9.8 million"),
            ("9,610,000 rows/s", 9_813_821.1, rows, "9,810,000 rows/s"),
            ("9610000", 9_613_821.1, rows, "9610000"),
            ("1000", 1349.0, rows, "1300"),
            ("12 ms", 0.0161, Kind::Quantity("s"), "16 ms"),
            ("12.0 µs", 7.5, Kind::Quantity("us"), "7.5 µs"),
            ("850 MB", 912e6, Kind::Quantity("B"), "912 MB"),
            (
                "1.0 GiB/s",
                2_147_483_648.0,
                Kind::Quantity("B/s"),
                "2.0 GiB/s",
            ),
            ("4.4×", 3.96, Kind::Quantity("x"), "4.0×"),
        ] {
            assert_eq!(
                as_written(written, value, kind).as_deref(),
                Some(expected),
                "{written}"
            );
        }
    }

    #[test]
    fn other_units_and_words_are_not_taken_for_a_figure() {
        for (written, kind) in [
            ("", Kind::Ratio),
            ("about 4", Kind::Ratio),
            ("4.2.6", Kind::Ratio),
            ("37", Kind::Percent),
            ("12 rows", Kind::Quantity("rows/s")),
            ("12 MB", Kind::Quantity("s")),
            ("12 MB/s", Kind::Quantity("B")),
        ] {
            assert_eq!(as_written(written, 12.0, kind), None, "{written}");
        }
    }
}
