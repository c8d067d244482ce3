//! The slow parser against lines worked out by hand.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod oracle;

use oracle::{Reason, Row, checksum, parse, parse_lines};

const GOOD: &str =
    "5162000001,1672531200,DK6UG,JN49cm,-21,14.097037,TA4/G8SCU,KM56,23,-1,2345,297,14,2.6.1,0";

fn row(line: &str) -> Row {
    let (rows, bad) = parse(line.as_bytes());
    assert_eq!(bad, []);
    assert_eq!(rows.len(), 1, "{line}");
    rows.into_iter().next().unwrap()
}

fn reason(line: &[u8]) -> Reason {
    let (rows, bad) = parse(line);
    assert_eq!(rows, []);
    assert_eq!(bad.len(), 1);
    bad[0].reason
}

fn with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from));
    GOOD.replace(from, to)
}

#[test]
fn a_good_line_fills_the_contract() {
    let row = row(GOOD);
    assert_eq!(
        (row.id, row.timestamp, row.snr, row.frequency),
        (5162000001, 1672531200, -21, 14097037)
    );
    assert_eq!(
        (&*row.reporter, &*row.callsign, row.drift, row.band),
        ("DK6UG", "TA4/G8SCU", -1, 107)
    );
    assert_eq!(
        (&*row.mode, &*row.version, row.code, row.column_count),
        ("WSPR", "2.6.1", 0, 15)
    );
}

#[test]
fn line_ends_and_blanks() {
    let text = format!("\n{GOOD}\r\n\r\n{GOOD}\n\n{GOOD}");
    let parsed = parse_lines(text.as_bytes());
    assert_eq!(
        parsed
            .rows
            .iter()
            .map(|(line, _)| *line)
            .collect::<Vec<_>>(),
        [2, 4, 6]
    );
    assert_eq!(parsed.blank, [1, 3, 5]);
    assert_eq!(reason(b" "), Reason::FieldCount);
}

#[test]
fn escapes_and_quotes() {
    let call = |text: &str| row(&with("TA4/G8SCU", text)).callsign;
    assert_eq!(call(r#"\"K1\""#), "\"K1\"");
    assert_eq!(call(r"K1\,P"), "K1,P");
    assert_eq!(call(r"K1\\P"), r"K1\P");
    assert_eq!(call(r#""K1,P""#), "K1,P");
    assert_eq!(call(r#""K1""P""#), "K1\"P");
    assert_eq!(call(r#"K1"P"#), "K1\"P");
    assert_eq!(call(r#""K\"1""#), "K\"1");
    assert_eq!(call(r#""""#), "");
    assert_eq!(row(&with("-21", "\"-21\"")).snr, -21);
    assert_eq!(reason(with("TA4/G8SCU", "\"TA4").as_bytes()), Reason::Quote);
    assert_eq!(
        reason(with("TA4/G8SCU", "\"TA\"4").as_bytes()),
        Reason::Quote
    );
    assert_eq!(
        reason(with("2.6.1,0", "2.6.1,0\\").as_bytes()),
        Reason::Number
    );
}

#[test]
fn numbers() {
    for (from, to) in [
        ("-21", "-21.0"),
        ("-21", "+21"),
        ("-21", ""),
        ("-21", "-"),
        ("-21", "128"),
        ("297", "-1"),
        ("297", "65536"),
        ("2345", "4294967296"),
        ("14.097037", "-14.0"),
        ("14.097037", "14."),
        ("14.097037", ".5"),
        ("14.097037", "14.0970370001"),
        ("14.097037", "1234567890123"),
        (",14,", ",20m,"),
        ("2.6.1,0", "2.6.1,256"),
    ] {
        assert_eq!(reason(with(from, to).as_bytes()), Reason::Number, "{to}");
    }
    let frequency = |text: &str| row(&with("14.097037", text)).frequency;
    assert_eq!(frequency("14.0970375"), 14_097_038);
    assert_eq!(frequency("14.097037499"), 14_097_037);
    assert_eq!(frequency("14"), 14_000_000);
    assert_eq!(row(&with("14.097037", "8.5")).band, 0);
    assert_eq!(row(&with("2.6.1,0", ",")).code, 0);
    assert_eq!(row(&with("-21", "-021")).snr, -21);
}

#[test]
fn shape_and_text() {
    assert_eq!(reason(with(",0", "").as_bytes()), Reason::FieldCount);
    assert_eq!(reason(with(",0", ",0,0").as_bytes()), Reason::FieldCount);
    let mut line = GOOD.as_bytes().to_vec();
    line[24] = 0xFF;
    assert_eq!(reason(&line), Reason::Utf8);
    let padding = 65_536 - GOOD.len() + "TA4/G8SCU".len();
    row(&with("TA4/G8SCU", &"A".repeat(padding)));
    assert_eq!(
        reason(with("TA4/G8SCU", &"A".repeat(padding + 1)).as_bytes()),
        Reason::LongLine
    );
}

#[test]
fn the_checksum_ignores_order_and_sees_every_column() {
    let first = row(GOOD);
    let second = row(&with("5162000001", "5162000002"));
    let both = checksum(&[first.clone(), second.clone()]);
    assert_eq!(both, checksum(&[second, first.clone()]));
    assert_eq!(both.len(), 17 * 17 - 1);
    let factor = 1 + first.id % 65_521;
    let sums: Vec<u64> = checksum(&[first])
        .split('-')
        .map(|hex| u64::from_str_radix(hex, 16).unwrap())
        .collect();
    assert_eq!(sums[4], (-21i64 as u64).wrapping_mul(factor));
    assert_eq!(sums[5], 14_097_037 * factor);
    assert_eq!(sums[13] / factor, MD5_WSPR);
    assert_eq!(sums[16], 15 * factor);
}

/// `printf WSPR | md5sum | cut -c1-8`
const MD5_WSPR: u64 = 0xe1a530ae;
