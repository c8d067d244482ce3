//! Plans the files of a job and the pieces that they are made of.

use std::ops::Range;
use std::path::PathBuf;

use dyno_tpch::{Generator, Table};

use crate::budget::{Budget, units_of_piece};
use crate::error::Error;
use crate::job::Job;
use crate::options::{Format, Split};

/// A file that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePlan {
    pub(crate) table: Table,
    /// The path below the job's place, `lineitem.parquet` or, for part 3,
    /// `lineitem/lineitem.3.parquet`.
    pub(crate) name: PathBuf,
    /// The units of the file, which are orders for `lineitem`, parts for `partsupp`, and rows
    /// elsewhere.
    pub(crate) units: Range<u64>,
    pub(crate) units_of_piece: u64,
    /// All settings on which the bytes of the file depend.
    pub(crate) settings: String,
}

impl FilePlan {
    pub(crate) fn pieces(&self) -> u64 {
        // A file without rows is still a file, made of one piece without rows.
        (self.units.end - self.units.start)
            .div_ceil(self.units_of_piece)
            .max(1)
    }

    pub(crate) fn piece(&self, number: u64) -> Range<u64> {
        let first = self.units.start + number * self.units_of_piece;
        first..(first + self.units_of_piece).min(self.units.end)
    }
}

/// Returns the files of a job. Those with the most work come first, so that the threads end at
/// about the same time.
pub(crate) fn files(
    job: &Job,
    generator: &Generator,
    budget: Budget,
) -> Result<Vec<FilePlan>, Error> {
    let mut tables = job.tables.clone();
    // With the table itself, because two tables can weigh the same, and only neighbours are found
    // to be the same table.
    tables.sort_by_key(|&table| (std::cmp::Reverse(weight(generator, table)), table));
    tables.dedup();
    let mut files = Vec::new();
    for table in tables {
        match job.split {
            Split::Whole => {
                let units = 0..generator.scale().units(table);
                files.push(file(job, budget, table, None, units));
            }
            Split::Part { part, parts } => {
                let units = generator.part(table, part, parts)?;
                files.push(file(job, budget, table, Some((part, parts)), units));
            }
            Split::Parts(parts) => {
                for part in 1..=parts {
                    let units = generator.part(table, part, parts)?;
                    files.push(file(job, budget, table, Some((part, parts)), units));
                }
            }
        }
    }
    Ok(files)
}

fn file(
    job: &Job,
    budget: Budget,
    table: Table,
    part: Option<(u64, u64)>,
    units: Range<u64>,
) -> FilePlan {
    let name = match part {
        None => PathBuf::from(format!("{table}.{}", job.layout.format)),
        Some((part, _)) => part_name(table, part, job.layout.format),
    };
    let units_of_piece = units_of_piece(job, budget, table);
    FilePlan {
        table,
        name,
        units,
        units_of_piece,
        settings: settings(job, part, units_of_piece),
    }
}

/// The path of a part of a table, below the place of the job.
pub(crate) fn part_name(table: Table, part: u64, format: Format) -> PathBuf {
    PathBuf::from(format!("{table}/{table}.{part}.{format}"))
}

/// All settings on which the bytes of a file depend. The receipt keeps them, and an error shows
/// them if a later job has others.
fn settings(job: &Job, part: Option<(u64, u64)>, units_of_piece: u64) -> String {
    let layout = &job.layout;
    let mut text = format!(
        "dyno {}, --sf {}",
        env!("CARGO_PKG_VERSION"),
        job.scale.factor()
    );
    text += &format!(" --format {}", layout.format);
    if layout.format != Format::Tbl {
        // TBL is the same in all modes. The library that `baseline` uses quotes less of CSV.
        text += &format!(" --mode {}", job.mode);
    }
    if matches!(layout.format, Format::Parquet | Format::Orc) {
        text += &format!(" --compression {}", layout.compression);
        text += &format!(" --page-version {}", layout.page_version);
        text += &format!(", groups of {units_of_piece}");
    }
    if job.iceberg {
        // The schema of such a file numbers its columns, and its text has simpler encodings.
        text += " --catalog iceberg";
    }
    for (column, choice) in &layout.columns {
        text += &format!(" --column {column}={choice}");
    }
    if let Some((part, parts)) = part {
        text += &format!(" --part {part}/{parts}");
    }
    text
}

/// About how much work a table is, compared with others.
fn weight(generator: &Generator, table: Table) -> u64 {
    let units = generator.scale().units(table);
    match table {
        Table::Lineitem => units * 16,
        Table::Partsupp => units * 8,
        Table::Orders => units * 3,
        _ => units,
    }
}
