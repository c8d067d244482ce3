//! Odd lines of the feeds: each is a row, or is in quarantine with its reason, or is of a kind that
//! docs/formats/feeds.md leaves out; and no line is anything else.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(
    dead_code,
    reason = "the check against slow parsers is in agreement.rs"
)]
mod agree;
#[allow(dead_code, reason = "the check by other readers is in load.rs")]
mod stored;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dyno_ingest::load::{Input, Options, Outcome, Progress};
use dyno_ingest::table::Snapshot;
use dyno_ingest_feeds::{Feed, load, named};
use tempfile::TempDir;

const HEADER: &str =
    "callsign,de_pfx,de_cont,freq,band,dx,dx_pfx,dx_cont,mode,db,date,speed,tx_mode";
const SPOT: &str = "W3LPL,K,NA,14025.1,20m,EA1RKV,EA,EU,CQ,18,2024-01-01 18:01:00,25,CW";

/// What became of an archive: its rows by column, the reasons in quarantine by line, and the lines
/// left out.
struct Account {
    rows: Vec<BTreeMap<&'static str, String>>,
    bad: BTreeMap<u64, String>,
    left_out: u64,
}

fn account(feed: &'static Feed, name: &str, bytes: &[u8], folder: &Path) -> Account {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    let options = Options {
        workers: 1,
        max_bad: 1.0,
        ..Options::default()
    };
    let table = folder.join("table");
    let inputs = vec![Input::File(path.clone())];
    let mut report = load(feed, inputs, &table, &options, &Progress::default()).unwrap();
    let outcome = report.archives.remove(0).outcome;
    let Outcome::Loaded { blank_lines, .. } = outcome else {
        panic!("{outcome:?}");
    };
    let snapshot = Snapshot::open(&table).unwrap();
    let data: PathBuf = stored::files(&snapshot, feed, &[path]).remove(0);
    let rows = stored::rows(&data, feed).into_iter();
    let rows = rows.map(|row| {
        let cells = feed.rows.as_ref().unwrap().fields.iter().zip(row);
        let given = cells.filter_map(|(field, cell)| Some((field.name, cell?)));
        given.collect()
    });
    let archive = snapshot.manifest().archives.values().next().unwrap();
    let quarantine = archive.quarantine.as_ref();
    let quarantine = quarantine.map(|path| fs::read_to_string(table.join(path)).unwrap());
    let bad = quarantine.unwrap_or_default();
    let bad = bad.lines().map(|line| {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        let reason = object["reason"].as_str().unwrap().to_owned();
        (object["line"].as_u64().unwrap(), reason)
    });
    Account {
        rows: rows.collect(),
        bad: bad.collect(),
        left_out: blank_lines,
    }
}

/// What becomes of a line of the Reverse Beacon Network.
enum Fate {
    /// A row, in which this column is this.
    Row(&'static str, &'static str),
    /// In quarantine, for a reason with these words.
    Bad(&'static str),
    /// Left out: a header, a blank line, the number of rows.
    LeftOut,
}

/// One line of each kind, and what becomes of it.
fn odd_lines() -> Vec<(String, Fate)> {
    use Fate::{Bad, LeftOut, Row};
    let with = |from: &str, to: &str| SPOT.replacen(from, to, 1);
    vec![
        (HEADER.to_owned(), LeftOut),
        (SPOT.to_owned(), Row("dx_call", "EA1RKV")),
        (String::new(), LeftOut),
        ("   ".to_owned(), Bad("1 fields")),
        (with("EA1RKV", "\"EA1,RKV\""), Row("dx_call", "EA1,RKV")),
        (with("EA1RKV", "\"EA1\"\"RKV\""), Row("dx_call", "EA1\"RKV")),
        (with("EA1RKV", "EA1\"RKV"), Row("dx_call", "EA1\"RKV")),
        (with("EA1RKV", "EA1RK\u{dc}"), Row("dx_call", "EA1RK\u{dc}")),
        (with("EA1RKV", "EA1\0RKV"), Row("dx_call", "EA1\0RKV")),
        (with("EA1RKV", " EA1RKV "), Row("dx_call", "EA1RKV")),
        (with("EA1RKV", ""), Bad("dx is empty")),
        (with("W3LPL", " "), Bad("callsign is empty")),
        (format!("\"{SPOT}"), Bad("never closed")),
        (with("EA1RKV", "\"EA1\"RKV"), Bad("text follows the quote")),
        (with("14025.1", "14025.12345"), Row("frequency", "14025123")),
        (with("14025.1", "0"), Row("band", "0")),
        (with("14025.1", ""), Bad("freq")),
        (with("14025.1", "-14025.1"), Bad("negative")),
        (with("14025.1", "1.4e4"), Bad("freq")),
        (with(",18,", ",-18,"), Row("snr", "-18")),
        (with(",18,", ", 18 ,"), Row("snr", "18")),
        (with(",18,", ",+18,"), Bad("db")),
        (with(",18,", ",18.5,"), Bad("db")),
        (with(",18,", ",40000,"), Bad("db")),
        (with(",25,", ",,"), Row("tx_mode", "CW")),
        (with(",25,", ",-5,"), Bad("speed")),
        (
            with("18:01:00", "18:01:00+00"),
            Row("timestamp", "1704132060000"),
        ),
        (with("18:01:00", "18:01:00+02"), Bad("date")),
        (with("18:01:00", "24:00:00"), Bad("date")),
        (with("01-01", "02-30"), Bad("date")),
        (SPOT[..30].to_owned(), Bad("7 fields")),
        (format!("{SPOT},x"), Bad("14 fields")),
        (SPOT.replace(',', ";"), Bad("1 fields")),
        (SPOT.replace(',', "\t"), Bad("1 fields")),
        (format!("\u{feff}{SPOT}"), Row("de_call", "\u{feff}W3LPL")),
        ("callsign".to_owned(), Bad("1 fields")),
        (HEADER.to_owned(), LeftOut),
        (format!("{SPOT}\r"), Row("tx_mode", "CW")),
        ("(1234 rows)".to_owned(), LeftOut),
        ("(1 row)".to_owned(), LeftOut),
        ("(1234 rows".to_owned(), Bad("1 fields")),
        ("1234 rows".to_owned(), Bad("1 fields")),
    ]
}

#[test]
fn every_line_of_rbn_is_a_row_or_in_quarantine_or_of_a_kind_that_is_left_out() {
    let lines = odd_lines();
    let text: Vec<&str> = lines.iter().map(|(line, _)| line.as_str()).collect();
    let text = [text.join("\n").as_bytes(), b"\nD\xffL1\n"].concat();
    let folder = TempDir::new().unwrap();
    let found = account(named("rbn").unwrap(), "20240101.csv", &text, folder.path());

    let (mut rows, mut left_out) = (found.rows.iter(), 0);
    for (number, (line, fate)) in lines.iter().enumerate() {
        let reason = found.bad.get(&(number as u64 + 1));
        match fate {
            Fate::LeftOut => {
                assert_eq!(reason, None, "{line:?}");
                left_out += 1;
            }
            Fate::Row(column, value) => {
                assert_eq!(reason, None, "{line:?}");
                let row = rows.next().unwrap();
                assert_eq!(
                    row.get(column).map(String::as_str),
                    Some(*value),
                    "{line:?}"
                );
            }
            Fate::Bad(words) => {
                let reason = reason.unwrap_or_else(|| panic!("{line:?} is not in quarantine"));
                assert!(reason.contains(words), "{line:?}: {reason}");
            }
        }
    }
    let of_bytes = &found.bad[&(lines.len() as u64 + 1)];
    assert!(of_bytes.contains("not UTF-8"), "{of_bytes}");
    assert_eq!(rows.next(), None);
    assert_eq!(found.left_out, left_out);
    let all = found.rows.len() + found.bad.len() + found.left_out as usize;
    assert_eq!(all, lines.len() + 1);
}

/// A line that is too long to be kept whole is in quarantine with that reason, and the lines around
/// it are rows.
#[test]
fn a_line_of_cabrillo_that_is_too_long_is_in_quarantine() {
    let contact = "QSO: 14000 CW/Digital 2023-01-01 0000 K1ABC 599 MA K2DEF 599 NY";
    let long = format!("SOAPBOX: {}", "x".repeat(1_000_000));
    let text = format!("START-OF-LOG: 3.0\n{contact}\n{long}\n{contact}\nEND-OF-LOG:\n");
    let folder = TempDir::new().unwrap();
    let feed = named("cabrillo").unwrap();
    let found = account(feed, "log.cbr", text.as_bytes(), folder.path());
    assert_eq!(found.rows.len(), 4);
    assert_eq!(found.rows[1]["mode"], "CW/Digital");
    assert_eq!(found.rows[2]["line"], "4", "the line of the text");
    let expected = BTreeMap::from([(3, "the line has more than 65536 bytes".to_owned())]);
    assert_eq!(found.bad, expected);
}

/// The raw text of a message is the message, byte for byte; one that is not UTF-8 is there in
/// hexadecimal digits.
#[test]
fn the_raw_text_of_a_psk_message_is_the_message() {
    let plain =
        r#"{"sq":1,"f":14074000,"md":"FT8","rp":-5,"t":1700000000,"sc":"DÜ1ABC","rc":"K1A"}"#;
    let escaped = plain.replace('Ü', "\\u00dc");
    let messages = [
        plain.to_owned(),
        escaped,
        plain.replace(',', " , "),
        format!(" {plain} "),
    ];
    let mut lines = Vec::new();
    for message in &messages {
        let capture = serde_json::json!({
            "rx": "2026-01-31T12:00:00.123Z", "topic": "t", "raw": message,
        });
        lines.push(capture.to_string());
        lines.push(message.clone());
    }
    let latin_1: Vec<u8> = plain.chars().map(|c| c as u8).collect();
    let hex: String = latin_1.iter().map(|byte| format!("{byte:02x}")).collect();
    lines.push(serde_json::json!({ "rx": "2026-01-31T12:00:00.123Z", "raw_hex": hex }).to_string());
    let folder = TempDir::new().unwrap();
    let feed = named("psk").unwrap();
    let text = lines.join("\n");
    let found = account(feed, "hour.jsonl", text.as_bytes(), folder.path());
    for (row, message) in found.rows.chunks(2).zip(&messages) {
        for row in row {
            assert_eq!(row["raw"], *message);
            assert_eq!(row["sender"], "DÜ1ABC");
        }
    }
    let last = found.rows.last().unwrap();
    assert_eq!(
        (last["raw"].as_str(), last.get("sender")),
        (hex.as_str(), None)
    );
    assert_eq!(found.rows.len(), 2 * messages.len() + 1);
}
