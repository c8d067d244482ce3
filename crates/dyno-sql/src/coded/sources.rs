//! The files of a table as the operators read them.

use std::sync::Arc;

use datafusion::datasource::physical_plan::FileScanConfig;
use dyno_formats::parquet_read::{ColumnKind, ParquetFile};
use dyno_grouping::Source;

use super::prune::Pruning;
use super::shape::Below;
use crate::feed::FeedTable;
use crate::file::TableFile;

/// The table's files, when the plan below reads all of them whole, and all `columns` of them can be
/// read; those in `by_code` as codes.
pub(super) fn sources(
    table: &FeedTable,
    below: &Below<'_>,
    columns: &[String],
    by_code: impl Fn(usize) -> bool,
) -> Option<Vec<Source>> {
    let files = files(table, below.scan)?;
    let pruning = Pruning::new(&below.conditions, table.schema());
    let mut sources: Vec<Source> = Vec::new();
    for file in files {
        let columns = locate(columns, &by_code, file)?;
        // The query is compiled once, for columns of one kind. A file in which a column has another
        // kind, such as codes instead of integers, leaves the query to the general plan.
        if let Some(first) = sources.first() {
            let kinds = |columns: &[(usize, ColumnKind)]| -> Vec<ColumnKind> {
                columns.iter().map(|(_, kind)| *kind).collect()
            };
            if kinds(&first.columns) != kinds(&columns) {
                return None;
            }
        }
        sources.push(Source {
            row_groups: pruning.row_groups(file),
            file: Arc::clone(file.pages()),
            columns,
        });
    }
    Some(sources)
}

/// The files of a scan, when they are those of the table, and whole.
fn files<'t>(table: &'t FeedTable, scan: &FileScanConfig) -> Option<Vec<&'t Arc<TableFile>>> {
    let parts = scan.file_groups.iter().flat_map(|group| group.files());
    let files: Vec<_> = parts
        .map(|part| {
            let file = table.file(part.path())?;
            part.range.is_none().then_some(file)
        })
        .collect::<Option<_>>()?;
    // A scan of fewer files than the table has was narrowed by something that this rule does not
    // know, and the operator would read the others too.
    (files.len() == table.files().len()).then_some(files)
}

/// Where the columns lie in `file`; none when one of them can't be read as codes or integers.
fn locate(
    columns: &[String],
    by_code: impl Fn(usize) -> bool,
    file: &ParquetFile,
) -> Option<Vec<(usize, ColumnKind)>> {
    let columns = columns.iter().enumerate();
    columns
        .map(|(at, name)| {
            let moments = file.moments(name);
            let (column, kind) = file.column(name).or(moments)?;
            let fits = if kind == ColumnKind::String {
                file.is_coded(column)
            } else if by_code(at) {
                // Integers without a dictionary get codes as they come, which is for values that
                // repeat, such as times.
                file.is_readable(column) && (file.is_coded(column) || moments.is_some())
            } else {
                file.is_readable(column)
            };
            fits.then_some((column, kind))
        })
        .collect()
}

/// How many files and row groups are read, and of how many row groups, for people.
pub(super) fn extent(sources: &[Source]) -> String {
    let all: usize = sources.iter().map(|s| s.file.row_groups()).sum();
    let read: usize = sources.iter().map(|s| s.row_groups.len()).sum();
    format!("files={}, row_groups={read}/{all}", sources.len())
}
