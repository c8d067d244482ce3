//! What is to be computed for each group.

use datafusion::arrow::datatypes::SchemaRef;
use dyno_formats::parquet_read::{ColumnKind, ParquetFile};

/// An aggregate function over a value column, or over rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// Rows; what `count` of a column without NULLs is, too.
    Count,
    /// Sum of the value column with this index in [`Spec::values`].
    Sum(usize),
    /// Their mean.
    Avg(usize),
    /// Their least.
    Min(usize),
    /// Their greatest.
    Max(usize),
}

/// An integer column that aggregates read, and what they need of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ValueColumn {
    pub(super) name: String,
    pub(super) sum: bool,
    pub(super) extremes: bool,
}

/// A whole aggregation: one key, its measures, the schema of its answer (key first).
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) key: String,
    pub(super) values: Vec<ValueColumn>,
    pub(super) measures: Vec<Measure>,
    pub(super) schema: SchemaRef,
}

impl Spec {
    /// The index of value column `name`, made when it is new.
    pub(super) fn value_index(values: &mut Vec<ValueColumn>, name: &str) -> usize {
        if let Some(index) = values.iter().position(|value| value.name == name) {
            return index;
        }
        values.push(ValueColumn {
            name: name.to_owned(),
            sum: false,
            extremes: false,
        });
        values.len() - 1
    }

    /// Where the columns lie in `file`; none when one of them can't be read as codes or integers.
    pub(super) fn locate(&self, file: &ParquetFile) -> Option<Located> {
        let (key, ColumnKind::String) = file.column(&self.key)? else {
            return None;
        };
        let mut values = Vec::with_capacity(self.values.len());
        for value in &self.values {
            let (column, kind) = file.column(&value.name)?;
            if kind == ColumnKind::String || !file.is_readable(column) {
                return None;
            }
            values.push((column, kind));
        }
        file.is_coded(key).then_some(Located { key, values })
    }

    /// Whether count and sum of a group fit side by side into one word: at most one value column,
    /// narrow, of which only the sum is wanted.
    pub(super) fn is_narrow(&self, located: &Located) -> bool {
        match (self.values.as_slice(), located.values.as_slice()) {
            ([], []) => true,
            ([value], [(_, ColumnKind::Int { bits: 8 | 16, .. })]) => !value.extremes,
            _ => false,
        }
    }
}

/// Column indexes of a [`Spec`] in one file.
#[derive(Debug, Clone)]
pub(super) struct Located {
    pub(super) key: usize,
    pub(super) values: Vec<(usize, ColumnKind)>,
}
