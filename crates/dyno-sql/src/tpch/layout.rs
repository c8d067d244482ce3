//! Which files of a directory are the tables.
//!
//! A table is one file, `DIR/lineitem.parquet`, or a folder of parts,
//! `DIR/lineitem/lineitem.3.parquet`, and then all parts from 1 on.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use dyno_tpch::Table;

/// The form of the files of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// Apache Parquet
    Parquet,
    /// Comma-separated values with a header line
    Csv,
    /// dbgen's own: `|` behind every value, no header
    Tbl,
    /// Apache ORC
    Orc,
}

impl FileFormat {
    const ALL: [FileFormat; 4] = [
        FileFormat::Parquet,
        FileFormat::Csv,
        FileFormat::Tbl,
        FileFormat::Orc,
    ];

    /// The ending of such files.
    pub fn extension(self) -> &'static str {
        match self {
            FileFormat::Parquet => "parquet",
            FileFormat::Csv => "csv",
            FileFormat::Tbl => "tbl",
            FileFormat::Orc => "orc",
        }
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.extension())
    }
}

/// The files of one table, in the order of its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFiles {
    /// The table whose rows they hold.
    pub table: Table,
    /// The form of every one of them.
    pub format: FileFormat,
    /// Absolute paths, part 1 first.
    pub paths: Vec<PathBuf>,
}

/// Finds the tables in `directory`, of one format where `only` names it. Tables that are not there
/// are not in the result.
///
/// # Errors
/// The directory cannot be read or holds no table; a table is there twice, or lacks a part.
pub fn find(directory: &Path, only: Option<FileFormat>) -> Result<Vec<TableFiles>> {
    let directory = directory
        .canonicalize()
        .with_context(|| format!("cannot open {}", directory.display()))?;
    let mut found = Vec::new();
    for table in Table::ALL {
        let mut candidates = Vec::new();
        for format in FileFormat::ALL {
            if only.is_some_and(|only| only != format) {
                continue;
            }
            candidates.extend(whole(&directory, table, format));
            candidates.extend(parts(&directory, table, format)?);
        }
        // A directory may hold a table as Parquet and as CSV. Reading either would be a guess, and
        // reading both would double every row.
        if let [first, second, ..] = &candidates[..] {
            bail!(
                "table {table} is there twice: {} and {}; name one with --files, or remove one",
                display_first(first),
                display_first(second)
            );
        }
        found.extend(candidates.pop());
    }
    if found.is_empty() {
        bail!(
            "{} holds no table of TPC-H: neither lineitem.parquet nor lineitem/lineitem.1.parquet, \
             nor any other table as parquet, csv, tbl or orc",
            directory.display()
        );
    }
    Ok(found)
}

fn display_first(files: &TableFiles) -> String {
    files
        .paths
        .first()
        .map(|path| path.display().to_string())
        .unwrap_or_default()
}

fn whole(directory: &Path, table: Table, format: FileFormat) -> Option<TableFiles> {
    let path = directory.join(format!("{table}.{format}"));
    path.is_file().then(|| TableFiles {
        table,
        format,
        paths: vec![path],
    })
}

/// The parts in the table's own folder. Other files there, such as unfinished ones, do not belong
/// to the table.
fn parts(directory: &Path, table: Table, format: FileFormat) -> Result<Option<TableFiles>> {
    let folder = directory.join(table.name());
    if !folder.is_dir() {
        return Ok(None);
    }
    let unreadable = || format!("cannot list {}", folder.display());
    let mut parts = Vec::new();
    for entry in fs::read_dir(&folder).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        if let Some(number) = part_number(&path, table, format) {
            parts.push((number, path));
        }
    }
    parts.sort_unstable();
    // A part in the middle that is missing shows as a gap. A missing last part cannot be seen here;
    // the count of rows in `verify` finds it.
    for ((number, _), expected) in parts.iter().zip(1..) {
        if *number != expected {
            bail!(
                "{} lacks part {expected}: the next one is {number}",
                folder.display()
            );
        }
    }
    let paths: Vec<PathBuf> = parts.into_iter().map(|(_, path)| path).collect();
    Ok((!paths.is_empty()).then_some(TableFiles {
        table,
        format,
        paths,
    }))
}

fn part_number(path: &Path, table: Table, format: FileFormat) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let number = name.strip_prefix(table.name())?.strip_prefix('.')?;
    let number = number.strip_suffix(format.extension())?.strip_suffix('.')?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(directory: &Path, names: &[&str]) {
        for name in names {
            let path = directory.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
    }

    #[test]
    fn parts_come_in_the_order_of_their_numbers() {
        let directory = tempfile::tempdir().unwrap();
        let names = (1..=10).map(|part| format!("orders/orders.{part}.tbl"));
        let names: Vec<String> = names.collect();
        touch(
            directory.path(),
            &names.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        touch(
            directory.path(),
            &["orders/.orders.11.tbl.tmp", "nation.tbl", "notes.txt"],
        );
        let found = find(directory.path(), None).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].table, found[0].paths.len()), (Table::Nation, 1));
        assert_eq!(
            (found[1].table, found[1].format),
            (Table::Orders, FileFormat::Tbl)
        );
        assert_eq!(found[1].paths.len(), 10);
        assert!(found[1].paths[9].ends_with("orders.10.tbl"));
    }

    #[test]
    fn what_is_not_clear_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let error = |only| find(directory.path(), only).unwrap_err().to_string();
        assert!(error(None).contains("holds no table of TPC-H"));
        touch(directory.path(), &["part/part.1.csv", "part/part.3.csv"]);
        assert!(error(None).ends_with("part lacks part 2: the next one is 3"));
        touch(directory.path(), &["part/part.2.csv", "part.parquet"]);
        assert!(error(None).contains("table part is there twice"));
        assert_eq!(
            find(directory.path(), Some(FileFormat::Csv)).unwrap()[0]
                .paths
                .len(),
            3
        );
        let missing = find(Path::new("/nowhere/at/all"), None).unwrap_err();
        assert!(missing.to_string().contains("cannot open /nowhere/at/all"));
    }
}
