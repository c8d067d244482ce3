//! What tests share: spots, tables, and what is in them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

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

/// The log of a watch.
#[derive(Clone, Default)]
pub struct Said(Arc<Mutex<Vec<u8>>>);

impl Said {
    /// Collects what `work` logs on this thread.
    pub fn capture<T>(&self, work: impl FnOnce() -> T) -> T {
        let said = self.clone();
        let log = tracing_subscriber::fmt().with_writer(move || said.clone());
        tracing::subscriber::with_default(log.finish(), work)
    }

    pub fn lines(&self) -> Vec<String> {
        let said = self.0.lock().unwrap();
        let text = String::from_utf8_lossy(&said);
        text.lines().map(str::to_owned).collect()
    }

    /// How many lines contain `part`.
    pub fn count(&self, part: &str) -> usize {
        let lines = self.lines();
        lines.iter().filter(|line| line.contains(part)).count()
    }
}

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
