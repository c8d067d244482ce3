//! CSV that others read: the `csv` crate, and DuckDB where it is installed.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use dyno_formats::columns::{Codes, Field, Kind, Values, Words};
use dyno_formats::text_write::{BlockWriter, Column, FileWriter, Layout, Options, Quote};
use proptest::prelude::*;

const ROWS: usize = 100;

/// What is in the file that [`file`] writes.
#[derive(Debug, Clone)]
struct Content {
    numbers: Vec<i64>,
    days: Vec<i32>,
    texts: Vec<String>,
    words: Vec<String>,
}

fn content() -> impl Strategy<Value = Content> {
    let text = || prop_oneof![4 => "[ -~]{0,70}", 1 => "[\",|;\t\r\nä]{0,6}"];
    (
        prop::collection::vec(any::<i64>(), ROWS),
        prop::collection::vec(-700_000..2_900_000, ROWS),
        prop::collection::vec(text(), ROWS),
        prop::collection::vec(text(), ROWS),
    )
        .prop_map(|(numbers, days, texts, words)| Content {
            numbers,
            days,
            texts,
            words,
        })
}

fn file(content: &Content, separator: char, quote: Quote) -> Vec<u8> {
    let column = |name, kind| Column::new(Field { name, kind });
    let money = Kind::Decimal {
        precision: 18,
        scale: 2,
    };
    let columns = vec![
        column("text", Kind::Text).quote(quote),
        column("number", Kind::Int64),
        column("money", money),
        column("day", Kind::Date),
        column("word", Kind::Text).quote(quote),
    ];
    let options = Options {
        separator,
        ..Options::csv()
    };
    let layout = Arc::new(Layout::new(columns, options).expect("sound columns"));
    let (mut bytes, mut offsets) = (Vec::new(), vec![0]);
    for text in &content.texts {
        bytes.extend_from_slice(text.as_bytes());
        offsets.push(bytes.len() as u32);
    }
    let words = Words::new(&content.words);
    let codes: Vec<u32> = (0..ROWS as u32).collect();
    let mut writer = BlockWriter::new(&layout);
    let values = [
        Values::Text {
            offsets: &offsets,
            bytes: &bytes,
        },
        Values::Int64(&content.numbers),
        Values::Int64(&content.numbers),
        Values::Int32(&content.days),
        Values::CodedText {
            codes: Codes::U32(&codes),
            words: &words,
        },
    ];
    writer.append(&values).expect("printable");
    let mut file = FileWriter::new(Vec::new(), layout).expect("memory takes all");
    file.append(&writer.finish()).expect("memory takes all");
    file.finish().expect("memory takes all").0
}

/// Money as a reader who knows nothing of how it was written would print it.
fn money(hundredths: i64) -> String {
    let text = format!("{:03}", hundredths.unsigned_abs());
    let (whole, part) = text.split_at(text.len() - 2);
    format!("{}{whole}.{part}", if hundredths < 0 { "-" } else { "" })
}

proptest! {
    #[test]
    fn the_csv_crate_reads_what_was_written(content in content(), semicolon: bool, always: bool) {
        let separator = if semicolon { ';' } else { ',' };
        let quote = if always { Quote::Always } else { Quote::WhenNeeded };
        let bytes = file(&content, separator, quote);
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(separator as u8)
            .terminator(csv::Terminator::Any(b'\n'))
            .from_reader(&bytes[..]);
        prop_assert_eq!(
            reader.headers().expect("a header"),
            vec!["text", "number", "money", "day", "word"]
        );
        let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().expect("rows");
        prop_assert_eq!(rows.len(), ROWS);
        for (at, row) in rows.iter().enumerate() {
            prop_assert_eq!(&row[0], &content.texts[at]);
            prop_assert_eq!(&row[1], content.numbers[at].to_string());
            prop_assert_eq!(&row[2], money(content.numbers[at]));
            prop_assert_eq!(&row[4], &content.words[at]);
        }
    }
}

#[test]
fn duckdb_reads_what_was_written() {
    let Some(python) = duckdb() else { return };
    let content = Content {
        numbers: (0..ROWS as i64).map(|row| row * 1_000_003 - 17).collect(),
        days: (0..ROWS as i32).map(|row| 8035 + 25 * row).collect(),
        texts: (0..ROWS).map(|row| "a,\"b\"\n".repeat(row % 3)).collect(),
        words: (0..ROWS).map(|row| format!("word {row}")).collect(),
    };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("rows.csv");
    std::fs::write(&path, file(&content, ',', Quote::WhenNeeded)).expect("written");
    let query = format!(
        "SELECT count(*), sum(number), sum(money), sum(day - DATE '1970-01-01'), sum(length(text)), \
         count(text), max(word) FROM read_csv('{}', header = true, allow_quoted_nulls = false, columns = {{'text': 'VARCHAR', \
         'number': 'BIGINT', 'money': 'DECIMAL(18,2)', 'day': 'DATE', 'word': 'VARCHAR'}})",
        path.display()
    );
    let program = format!("import duckdb; print(*duckdb.sql(\"\"\"{query}\"\"\").fetchall()[0])");
    let output = Command::new(python).args(["-c", &program]).output();
    let output = output.expect("python starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let number: i64 = content.numbers.iter().sum();
    let days: i32 = content.days.iter().sum();
    let bytes: usize = content.texts.iter().map(String::len).sum();
    assert_eq!(
        said.trim(),
        format!(
            "{ROWS} {number} {} {days} {bytes} {ROWS} word 99",
            money(number)
        ),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn duckdb() -> Option<PathBuf> {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share"));
    let data = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(home)?;
    let python = data.join("dynolab/peers/duckdb/venv/bin/python");
    if !python.exists() {
        println!("skipped: DuckDB: {} is not there", python.display());
        return None;
    }
    Some(python)
}
