//! The recipe "a feed of ingest" of CONTRIBUTING.md, followed: a feed written as it says is loaded
//! into a table beside the others.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use dyno_ingest::load::{Input, Options, Progress};
use dyno_ingest::table::Snapshot;
use dyno_ingest_feeds::generate::{MadeLine, Packing};
use dyno_ingest_feeds::{
    Feed, Field, Kind, Layout, Line, Reader, Refusal, RowFormat, Rows, load, stem,
};

// What CONTRIBUTING.md shows begins here.
/// Strokes of lightning, one a line: milliseconds since 1970, and amperes or `-`.
pub const FEED: Feed = Feed {
    name: "lightning",
    about: "strokes of lightning",
    covers: "a month",
    lines_stand_alone: true,
    archive: stem,
    claims: |text| text.starts_with("# strokes"),
    rows: Some(RowFormat {
        fields: FIELDS,
        layout: Layout {
            order: &["timestamp"],
            seconds: &[],
        },
        reader: || Box::new(Strokes),
        file_name: |batch| format!("strokes-{}.txt", batch.number),
        packing: Packing::Plain,
        lines: |batch| Box::new((0..batch.rows).map(|row| MadeLine::new(format!("{row} -"), 1))),
    }),
};

const FIELDS: &[Field] = &[
    Field::new("timestamp", Kind::Moment, "when it struck, UTC"),
    Field::nullable("amperes", Kind::signed(32), "current of the stroke"),
];

struct Strokes;

impl Reader for Strokes {
    fn line(&mut self, line: &[u8], rows: &mut Rows) -> Result<Line, Refusal> {
        let line = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())?;
        let (time, amperes) = line
            .split_once(' ')
            .ok_or_else(|| "it has no second field".to_owned())?;
        let time_ms: i64 = time
            .parse()
            .map_err(|_| format!("time {time:?} is not an integer"))?;
        let amperes: Option<i32> = match amperes {
            "-" => None,
            digits => Some(
                digits
                    .parse()
                    .map_err(|_| format!("current {digits:?} is not an integer"))?,
            ),
        };
        rows.push(&[time_ms.into(), amperes.into()]);
        Ok(Line::Rows)
    }
}
// What CONTRIBUTING.md shows ends here.

#[test]
fn a_feed_written_by_the_recipe_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let archive = dir.path().join("june.txt");
    fs::write(&archive, "1000 -25000\n2000 -\n3000 much\n").unwrap();
    let table = dir.path().join("table");
    let options = Options {
        max_bad: 0.5,
        ..Options::default()
    };
    let inputs = vec![Input::File(archive)];
    let report = load(&FEED, inputs, &table, &options, &Progress::default()).unwrap();
    assert_eq!((report.rows(), report.failures().count()), (2, 0));
    let snapshot = Snapshot::open(&table).unwrap();
    assert_eq!(snapshot.manifest().archives["lightning/june"].bad_rows, 1);
}

#[test]
fn contributing_shows_this_feed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../..");
    let page = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let source = include_str!("recipe.rs");
    let (_, behind) = source.split_once("shows begins here.\n").unwrap();
    let (shown, _) = behind
        .split_once("// What CONTRIBUTING.md shows ends")
        .unwrap();
    assert!(page.contains(shown), "CONTRIBUTING.md lacks:\n{shown}");
}
