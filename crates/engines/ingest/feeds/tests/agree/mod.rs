//! A feed's reader and the slow parser of the same feed must make the same of any bytes. The body
//! of the fuzz target `feeds` and of the tests in `agreement.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cabrillo;
mod obvious;
mod psk;
mod rbn;
mod solar;

use dyno_ingest_feeds::{Feed, Line, Refusal, Rows, Values};

/// A row as text, cell by cell.
pub type Row = Vec<Option<String>>;

/// What a parser makes of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// Its rows.
    pub rows: Vec<Row>,
    /// Lines for quarantine.
    pub bad: Vec<u64>,
    /// The line at which the whole archive is refused; nothing behind it is read.
    pub refused: Option<u64>,
}

/// Panics where the two differ.
pub fn check(feed: &Feed, text: &[u8]) {
    let slow = match feed.name {
        "rbn" => rbn::parse(&lines(text)),
        "cabrillo" => cabrillo::parse(&lines(text)),
        "psk" => psk::parse(&lines(text)),
        "solar" => solar::parse(&lines(text)),
        other => panic!("feed {other} has no slow parser"),
    };
    let fast = read(feed, text);
    for (at, (fast, slow)) in fast.rows.iter().zip(&slow.rows).enumerate() {
        for ((fast, slow), field) in fast
            .iter()
            .zip(slow)
            .zip(feed.rows.as_ref().unwrap().fields)
        {
            // Two parsers may say the same in other words.
            if field.name == "parse_error" {
                assert_eq!(
                    fast.is_some(),
                    slow.is_some(),
                    "row {at}, {}: {fast:?}, {slow:?}",
                    field.name
                );
            } else {
                assert_eq!(fast, slow, "row {at}, {}", field.name);
            }
        }
    }
    assert_eq!(fast.rows.len(), slow.rows.len(), "rows");
    assert_eq!(fast.bad, slow.bad, "bad lines");
    assert_eq!(fast.refused, slow.refused, "refused");
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines
        .iter()
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .collect()
}

/// What the feed's own reader makes of a text.
pub fn read(feed: &Feed, text: &[u8]) -> Parsed {
    let mut reader = (feed.rows.as_ref().unwrap().reader)();
    let mut rows = Rows::new(feed.rows.as_ref().unwrap().fields);
    let mut parsed = Parsed::default();
    for (at, line) in lines(text).iter().enumerate() {
        let before = rows.len();
        match reader.line(line, &mut rows) {
            Ok(Line::Rows) => assert!(rows.len() > before),
            Ok(Line::Nothing) => assert_eq!(rows.len(), before),
            Err(Refusal::Line(reason)) => {
                assert!(!reason.is_empty());
                assert_eq!(rows.len(), before);
                parsed.bad.push(at as u64 + 1);
            }
            Err(Refusal::Archive(reason)) => {
                assert!(!reason.is_empty());
                parsed.refused = Some(at as u64 + 1);
                break;
            }
        }
    }
    parsed.rows = as_text(&rows);
    parsed
}

fn as_text(rows: &Rows) -> Vec<Row> {
    let mut table = vec![Vec::new(); rows.len()];
    for (field, column) in rows.columns() {
        let values: Vec<String> = match &column.values {
            Values::Integers(values) => values.iter().map(i64::to_string).collect(),
            Values::Words { codes, words } => {
                let words: Vec<&[u8]> = words.iter().collect();
                codes
                    .iter()
                    .map(|&code| text_of(words[code as usize]))
                    .collect()
            }
            Values::Texts { offsets, bytes } => offsets
                .windows(2)
                .map(|ends| text_of(&bytes[ends[0] as usize..ends[1] as usize]))
                .collect(),
        };
        let mut values = values.into_iter();
        for (at, row) in table.iter_mut().enumerate() {
            let present = !field.nullable || column.present[at];
            row.push(present.then(|| values.next().unwrap()));
        }
        assert_eq!(values.next(), None);
    }
    table
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
