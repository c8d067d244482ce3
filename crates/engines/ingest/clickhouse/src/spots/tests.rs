//! Blocks read back: by a slow decoder, and by a current engine where its Python package is
//! installed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dyno_ingest::contract::COLUMNS;
use proptest::prelude::*;

use super::*;
use crate::order::Order;

/// The columns of a table, with strings in one of the three types.
fn columns(text: Text) -> Vec<Column> {
    let numbers = |name| match name {
        "id" | "frequency" => "UInt64",
        "timestamp" => "DateTime('UTC')",
        "distance" => "UInt32",
        "azimuth" => "UInt16",
        "band" => "Int32",
        "code" | "column_count" => "UInt8",
        _ => "Int8",
    };
    let strings = match text {
        Text::Fixed(len) => format!("FixedString({len})"),
        Text::Plain => "String".to_owned(),
        Text::Coded => "LowCardinality(String)".to_owned(),
    };
    let column = |&name: &&'static str| {
        let is_text = strings_of(&Columns::default(), name).is_some() || name == "mode";
        Column {
            name,
            kind: if is_text {
                strings.clone()
            } else {
                numbers(name).to_owned()
            },
            text: is_text.then_some(text),
            nullable: false,
        }
    };
    COLUMNS.iter().map(column).collect()
}

/// A row as it goes in: (id, time, reporter, dB, Hz, callsign).
type Spot = (u64, u32, String, i8, u64, String);

fn spots(rows: &[Spot]) -> Columns {
    let mut columns = Columns::default();
    for (id, time, reporter, snr, hertz, callsign) in rows {
        let known = &mut columns.dictionaries;
        columns.id.push(*id);
        columns.timestamp.push(*time);
        columns
            .reporter
            .push(known.reporter.code_of(reporter.as_bytes()));
        columns
            .reporter_grid
            .push(known.reporter_grid.code_of(b"JO22"));
        columns.snr.push(*snr);
        columns.frequency.push(known.frequency.code_of(*hertz));
        columns
            .callsign
            .push(known.callsign.code_of(callsign.as_bytes()));
        columns.grid.push(known.grid.code_of(b""));
        columns.power.push(-3);
        columns.drift.push(1);
        columns.distance.push(70_000);
        columns.azimuth.push(359);
        columns.version.push(known.version.code_of(b"1.2"));
        columns.code.push(7);
    }
    columns
}

/// The bytes in frames, which hold one LZ4 block each behind 25 bytes.
fn unpacked(mut frames: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    while !frames.is_empty() {
        let size = |at: usize| u32::from_le_bytes(frames[at..at + 4].try_into().unwrap()) as usize;
        let end = 16 + size(17);
        data.extend(lz4_flex::block::decompress(&frames[25..end], size(21)).unwrap());
        frames = &frames[end..];
    }
    data
}

fn block(rows: &Columns, text: Text) -> Vec<u8> {
    let mut out = FrameWriter::new(Vec::new());
    let order = Order::default().sorted_rows(rows).to_vec();
    Spots::default().block(rows, &order, &columns(text), &mut out);
    unpacked(&out.finish(Vec::new()))
}

/// Reads a block value by value.
struct Slow<'a>(&'a [u8]);

impl Slow<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (bytes, rest) = self.0.split_first_chunk().unwrap();
        self.0 = rest;
        *bytes
    }

    fn count(&mut self) -> usize {
        let (mut value, mut shift) = (0, 0);
        loop {
            let [byte] = self.take();
            value |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }

    fn string(&mut self) -> String {
        let len = self.count();
        self.bytes(len)
    }

    fn bytes(&mut self, len: usize) -> String {
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        text.trim_end_matches('\0').to_owned()
    }

    fn value(&mut self, kind: &str) -> String {
        match kind {
            "UInt64" => u64::from_le_bytes(self.take()).to_string(),
            "DateTime('UTC')" | "UInt32" => u32::from_le_bytes(self.take()).to_string(),
            "UInt16" => u16::from_le_bytes(self.take()).to_string(),
            "Int32" => i32::from_le_bytes(self.take()).to_string(),
            "UInt8" => u8::from_le_bytes(self.take()).to_string(),
            "Int8" => i8::from_le_bytes(self.take()).to_string(),
            "String" => self.string(),
            "FixedString(16)" => self.bytes(16),
            other => panic!("{other}"),
        }
    }

    fn column(&mut self, kind: &str, rows: usize) -> Vec<String> {
        if kind != "LowCardinality(String)" {
            return (0..rows).map(|_| self.value(kind)).collect();
        }
        assert_eq!(u64::from_le_bytes(self.take()), 1);
        let flags = u64::from_le_bytes(self.take());
        assert_eq!(flags & !0xff, 0x600);
        let keys = u64::from_le_bytes(self.take());
        let keys: Vec<String> = (0..keys).map(|_| self.string()).collect();
        assert_eq!(u64::from_le_bytes(self.take()), rows as u64);
        let place = |slow: &mut Self| match flags & 0xff {
            0 => usize::from(u8::from_le_bytes(slow.take())),
            1 => usize::from(u16::from_le_bytes(slow.take())),
            _ => u32::from_le_bytes(slow.take()) as usize,
        };
        (0..rows).map(|_| keys[place(self)].clone()).collect()
    }
}

/// The rows of a block as lines of values.
fn slowly(bytes: &[u8]) -> Vec<String> {
    let mut slow = Slow(bytes);
    let (columns, rows) = (slow.count(), slow.count());
    let mut lines = vec![String::new(); rows];
    assert_eq!(columns, COLUMNS.len());
    for (at, name) in COLUMNS.iter().enumerate() {
        assert_eq!(slow.string(), *name);
        let kind = slow.string();
        for (line, value) in lines.iter_mut().zip(slow.column(&kind, rows)) {
            let tab = if at == 0 { "" } else { "\t" };
            write!(line, "{tab}{value}").unwrap();
        }
    }
    assert!(slow.0.is_empty());
    lines
}

/// The lines that rows must give, in the order of the key.
fn expected(rows: &[Spot]) -> Vec<String> {
    let mut rows: Vec<&Spot> = rows.iter().collect();
    rows.sort_by_key(|(_, time, _, _, hertz, call)| (*time, band_of(*hertz), call.clone()));
    let line = |(id, time, reporter, snr, hertz, call): &&Spot| {
        let band = band_of(*hertz);
        format!(
            "{id}\t{time}\t{reporter}\tJO22\t{snr}\t{hertz}\t{call}\t\t-3\t1\t70000\t359\t{band}\tWSPR\t1.2\t7\t15"
        )
    };
    rows.iter().map(line).collect()
}

fn spot() -> impl Strategy<Value = Spot> {
    (
        any::<u64>(),
        any::<u32>(),
        "[A-Z0-9/]{0,16}",
        any::<i8>(),
        0u64..500_000_000,
        "[A-Z0-9<>]{0,16}",
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_slow_decoder_finds_the_rows(rows in proptest::collection::vec(spot(), 1..700)) {
        let columns = spots(&rows);
        for text in [Text::Fixed(16), Text::Plain, Text::Coded] {
            prop_assert_eq!(slowly(&block(&columns, text)), expected(&rows));
        }
    }
}

/// Enough rows for several frames, pieces and widths of codes.
fn many() -> Vec<Spot> {
    (0..70_000u64)
        .map(|i| {
            let call = format!("T{}", i * 7919 % 66_001);
            let time = 1_672_531_200 + (i * 131 % 9_000_000) as u32;
            (
                i,
                time,
                format!("R{}", i % 300),
                (i % 50) as i8 - 30,
                14_097_000 + i % 200,
                call,
            )
        })
        .collect()
}

#[test]
fn large_blocks_come_back_too() {
    let rows = many();
    let columns = spots(&rows);
    for text in [Text::Fixed(16), Text::Plain, Text::Coded] {
        assert!(
            slowly(&block(&columns, text)) == expected(&rows),
            "{text:?}"
        );
    }
}

/// The Python of chDB, as `dyno peers install chdb` leaves it.
fn chdb() -> Option<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".local/share")))?;
    let python = data.join("dynolab/peers/chdb/venv/bin/python");
    python.is_file().then_some(python)
}

#[test]
fn a_current_engine_reads_the_blocks() {
    let Some(python) = chdb() else {
        println!("skipped: chdb: it is not installed (dyno peers install chdb)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let rows = many();
    let columns = spots(&rows);
    for text in [Text::Fixed(16), Text::Plain, Text::Coded] {
        let path = folder.path().join("block.native");
        fs::write(&path, block(&columns, text)).unwrap();
        let values = COLUMNS.map(|name| {
            if name == "mode" || strings_of(&columns, name).is_some() {
                format!("toStringCutToZero(CAST({name} AS String))")
            } else if name == "timestamp" {
                "toUnixTimestamp(timestamp)".to_owned()
            } else {
                name.to_owned()
            }
        });
        let script = format!(
            "import chdb\nprint(chdb.query(\"SELECT {} FROM file('{}', Native)\", 'TSV'), end='')",
            values.join(", "),
            path.display()
        );
        let output = Command::new(&python)
            .args(["-c", &script])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let said = String::from_utf8(output.stdout).unwrap();
        let mut lines: Vec<&str> = said.lines().collect();
        let mut wanted = expected(&rows);
        // The engine reads with several threads, in any order.
        lines.sort_unstable();
        wanted.sort_unstable();
        assert!(
            lines == wanted,
            "{text:?}: {:?} {:?}",
            lines.first(),
            wanted.first()
        );
    }
}
