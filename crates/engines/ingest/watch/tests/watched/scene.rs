//! What tests share: spots, tables, and what is in them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dyno_ingest::generate::{Form, Generator};
use dyno_ingest::load::Options;
use dyno_ingest::table::Snapshot;
use dyno_ingest_watch::{Metrics, Table};
use dyno_serve::Registry;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

pub fn metrics() -> Metrics {
    Metrics::new(&Registry::new()).unwrap()
}

/// What a watch said.
#[derive(Default)]
pub struct Said(pub RefCell<Vec<String>>);

impl Said {
    pub fn say(&self) -> impl Fn(&str) + '_ {
        |said| self.0.borrow_mut().push(said.to_owned())
    }

    /// How many of its sentences have this in them.
    pub fn count(&self, part: &str) -> usize {
        let said = self.0.borrow();
        said.iter().filter(|said| said.contains(part)).count()
    }
}

/// Archives of plain lines, a month each.
pub fn archives(rows: u64, months: u32, seed: u64, folder: &Path) -> Vec<PathBuf> {
    fs::create_dir_all(folder).unwrap();
    let generator = Generator {
        rows,
        months,
        seed,
        form: Form::Plain,
        ..Generator::default()
    };
    let made = generator.write(folder, 1, &|_| std::ops::ControlFlow::Continue(()));
    made.unwrap();
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|x| x == "csv"))
        .collect();
    files.sort();
    files
}

pub fn table(directory: &Path, max_bad: f64) -> Table {
    Table {
        directory: directory.to_owned(),
        options: Options {
            workers: 2,
            max_bad,
            ..Options::default()
        },
    }
}

/// Every row of a table as text, with how often it is there, read by a reader that is not ours.
/// Nothing where nothing was committed.
pub fn rows(table: &Path) -> BTreeMap<String, u32> {
    let mut rows = BTreeMap::new();
    let Ok(snapshot) = Snapshot::open(table) else {
        return rows;
    };
    for (path, _) in snapshot.files() {
        let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let values = row.get_column_iter().map(|(_, field)| match field {
                Field::Str(text) => text.clone(),
                other => other.to_string(),
            });
            let text = values.collect::<Vec<_>>().join("|");
            *rows.entry(text).or_insert(0) += 1;
        }
    }
    rows
}

/// Every row of a table is there once and is one of `expected`; tells how many.
pub fn each_once(rows: &BTreeMap<String, u32>, expected: &BTreeMap<String, u32>) -> usize {
    for (row, times) in rows {
        assert_eq!(*times, 1, "{row}");
        assert!(expected.contains_key(row), "{row}");
    }
    rows.len()
}
