//! Reads written files of TPC-H tables by readers that are not ours, and returns the rows of each
//! table and a sum that does not depend on their order (docs/formats/checksums.md).

mod orc;
mod parquet;
mod text;

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use dyno_tpch::{Column, Kind, Table};

use crate::Error;

/// The prime by which the keys of rows are reduced to their weights.
const PRIME: u64 = 65_521;

/// How much of each text counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    /// The length and three bytes of each text.
    Bytes,
    /// Of comments and addresses only the length, because DuckDB draws other letters for those.
    Lengths,
}

/// The number of some rows, and their sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) rows: u64,
    pub(crate) total: u64,
}

/// A share of a file, number `number` of `of`, counted from 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) number: u64,
    pub(crate) of: u64,
}

/// What a reader needs to know beside the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadOptions {
    pub(crate) table: Table,
    pub(crate) texts: Texts,
    pub(crate) share: Share,
}

type Reader = fn(&Path, ReadOptions) -> Result<Sum, String>;

/// Reads back the tables in a folder, each in `DIR/TABLE.FORMAT` or in the files of `DIR/TABLE/`.
///
/// # Errors
/// When a file is missing or cannot be read.
pub fn tables(
    folder: &Path,
    tables: &[Table],
    format: &str,
    texts: Texts,
) -> Result<crate::Sum, Error> {
    let reader: Reader = match format {
        "parquet" => parquet::sum,
        "orc" => orc::sum,
        "csv" => text::csv,
        _ => text::tbl,
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get) as u64;
    let mut tasks: Vec<(PathBuf, ReadOptions)> = Vec::new();
    for &table in tables {
        for path in files_of(folder, table, format)? {
            let bytes = path.metadata().map_err(|e| Error::io(&path, e))?.len();
            // A small file is not worth reading its footer several times.
            let of = if bytes > 4 << 20 { threads } else { 1 };
            tasks.extend((0..of).map(|number| {
                let share = Share { number, of };
                let options = ReadOptions {
                    table,
                    texts,
                    share,
                };
                (path.clone(), options)
            }));
        }
    }
    let sums = all(&tasks, threads as usize, reader)?;
    let mut answer = crate::Sum {
        count: 0,
        checksum: String::new(),
    };
    // In the order of the specification, whatever the order of the request, so that two checksums
    // can be compared as text.
    for table in Table::ALL.into_iter().filter(|t| tables.contains(t)) {
        let mut whole = Sum::default();
        for ((_, options), sum) in tasks.iter().zip(&sums) {
            if options.table == table {
                whole.rows += sum.rows;
                whole.total = whole.total.wrapping_add(sum.total);
            }
        }
        answer.count += whole.rows;
        let gap = if answer.checksum.is_empty() { "" } else { " " };
        answer.checksum += &format!("{gap}{table}:{}:{:016x}", whole.rows, whole.total);
    }
    Ok(answer)
}

fn files_of(folder: &Path, table: Table, format: &str) -> Result<Vec<PathBuf>, Error> {
    let whole = folder.join(format!("{table}.{format}"));
    if whole.is_file() {
        return Ok(vec![whole]);
    }
    let parts = folder.join(table.name());
    let mut files = Vec::new();
    for entry in fs::read_dir(&parts).map_err(|e| Error::io(&parts, e))? {
        let path = entry.map_err(|e| Error::io(&parts, e))?.path();
        if path.extension().is_some_and(|x| x == format) {
            files.push(path);
        }
    }
    Ok(files)
}

fn all(
    tasks: &[(PathBuf, ReadOptions)],
    threads: usize,
    reader: Reader,
) -> Result<Vec<Sum>, Error> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<Sum, String>)>> = Mutex::new(Vec::new());
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((path, options)) = tasks.get(index) else {
                return;
            };
            let sum = reader(path, *options);
            if let Ok(mut done) = done.lock() {
                done.push((index, sum));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(index, _)| *index);
    // Results are only missing if a thread panicked while it held the lock.
    if done.len() != tasks.len() {
        return Err(Error::File {
            path: PathBuf::from("written files"),
            reason: "a reader ended before it was done".to_string(),
        });
    }
    done.into_iter()
        .map(|(index, sum)| {
            sum.map_err(|reason| Error::File {
                path: tasks[index].0.clone(),
                reason,
            })
        })
        .collect()
}

/// The weight of a row, 1 + key mod 65521. The key is made so that no two rows of a table have the
/// same.
fn weight(table: Table, first: u64, second: u64) -> u64 {
    let key = match table {
        Table::Lineitem => first.wrapping_mul(8).wrapping_add(second),
        Table::Partsupp => first.wrapping_add(second.wrapping_mul(8_191)),
        _ => first,
    };
    1 + key % PRIME
}

/// The indexes of the columns that make a row's key.
fn key_columns(table: Table) -> (usize, Option<usize>) {
    match table {
        Table::Lineitem => (0, Some(3)),
        Table::Partsupp => (0, Some(1)),
        _ => (0, None),
    }
}

/// The factor of a column's values, so that two columns cannot change places unnoticed.
fn factor(column: usize) -> u64 {
    2 * column as u64 + 1
}

/// The length and the first, middle and last byte of a text, or its length alone.
fn text_value(text: &[u8], bare: bool) -> u64 {
    let length = (text.len() as u64) << 24;
    match (text.first(), text.get(text.len() / 2), text.last()) {
        _ if bare => length,
        (Some(&first), Some(&middle), Some(&last)) => {
            length | u64::from(first) << 16 | u64::from(middle) << 8 | u64::from(last)
        }
        _ => 0,
    }
}

/// Whether only the length of this column's texts counts.
fn is_bare(column: &Column, texts: Texts) -> bool {
    texts == Texts::Lengths
        && (column.name.ends_with("_comment") || column.name.ends_with("_address"))
}

fn is_text(column: &Column) -> bool {
    matches!(column.kind, Kind::Char(_) | Kind::Varchar(_))
}

impl Share {
    /// The range of `whole` that this share has. All shares together have all of it, without
    /// overlap.
    fn range_of(self, whole: u64) -> std::ops::Range<u64> {
        let at =
            |number: u64| (u128::from(whole) * u128::from(number) / u128::from(self.of)) as u64;
        at(self.number)..at(self.number + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_tpch::Scale;
    use dyno_tpch_files::{Destination, Format, Job, Progress, run};

    /// Of the files of tpchgen-cli 4.0.0 at scale factor 0.01, read by pyarrow 26 in
    /// `peers/tpch.py`.
    const OF_OTHERS: &str = "region:5:00000014cf88fb1f nation:25:000002c7541d9e63 \
        part:2000:005a3ce454f71773 supplier:100:00005791ddcc9af1 partsupp:8000:3d1daa08b855ce9d \
        customer:1500:006834ef13403963 orders:15000:771fcba25a2c042a \
        lineitem:60175:58a896f8766c65b0";

    #[test]
    fn every_format_reads_back_as_what_others_wrote() {
        for format in Format::ALL {
            let folder = tempfile::tempdir().expect("a directory");
            let place = Destination::Folder(folder.path().to_path_buf());
            let job = Job::new(Scale::new(0.01).expect("a scale"), format, place);
            run(&job, &Progress::default()).expect("it writes");
            let read = tables(folder.path(), &job.tables, format.name(), Texts::Bytes);
            let read = read.expect("it reads");
            assert_eq!(read.count, 86_805, "{format}");
            assert_eq!(read.checksum, OF_OTHERS, "{format}");
        }
    }

    #[test]
    fn a_text_of_another_letter_or_length_is_seen() {
        let value = |text: &str| text_value(text.as_bytes(), false);
        assert_eq!(value("abc"), 3 << 24 | 0x61_62_63);
        assert_eq!(value(""), 0);
        assert_ne!(value("abc"), value("abd"));
        assert_eq!(text_value(b"abc", true), text_value(b"xyz", true));
    }

    #[test]
    fn a_missing_table_is_named() {
        let folder = tempfile::tempdir().expect("a directory");
        let e = tables(folder.path(), &[Table::Nation], "orc", Texts::Bytes);
        assert!(e.expect_err("missing").to_string().contains("nation"));
    }
}
