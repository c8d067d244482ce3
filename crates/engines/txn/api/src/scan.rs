//! Scans: reading a range of keys in either direction, page by page, with a filter and a
//! projection.

use crate::limits::{FILTER_DEPTH_MAX, FILTER_NODES_MAX, PAGE_ROWS_MAX};
use crate::{Code, Error, Result, Row, TableId, Value, ValueRef, prefix_end};

/// The direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// From low keys to high ones.
    #[default]
    Forward,
    /// From high keys to low ones.
    Backward,
}

/// The place at which a scan continues: the key of the last row that was examined. The engine
/// decides what its bytes mean.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Continuation(pub Vec<u8>);

/// The rows to read, and the columns of them to return.
///
/// ```
/// use dyno_txn_api::{Compare, Filter, Scan, TableId, Tuple};
/// let open = Scan::prefix(TableId(3), Tuple::new().u64(7).finish())
///     .backward()
///     .limit(10)
///     .filter(Filter::compare(2, Compare::Greater, 100i64))
///     .columns(&[0, 2]);
/// assert_eq!(open.limit, 10);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Scan {
    /// The table that is scanned.
    pub table: TableId,
    /// The index whose keys the range refers to, or `None` for the table's own keys.
    pub index: Option<u16>,
    /// The first key of the range.
    pub start: Vec<u8>,
    /// The first key after the range, or `None` if the range ends with the table.
    pub end: Option<Vec<u8>>,
    /// The order in which rows are returned.
    pub direction: Direction,
    /// The most rows of a page. Above [`PAGE_ROWS_MAX`] it counts as that.
    pub limit: u32,
    /// The rows to return, on tables with columns.
    pub filter: Option<Filter>,
    /// The columns to return, in this order, on tables with columns. `None` means all.
    pub projection: Option<Vec<u16>>,
    /// Where the page before this one ended.
    pub after: Option<Continuation>,
}

impl Scan {
    /// A scan of the keys from `start` to before `end`.
    pub fn range(table: TableId, start: Vec<u8>, end: Option<Vec<u8>>) -> Self {
        Self {
            table,
            index: None,
            start,
            end,
            direction: Direction::Forward,
            limit: PAGE_ROWS_MAX,
            filter: None,
            projection: None,
            after: None,
        }
    }

    /// A scan of all keys that begin with these bytes.
    pub fn prefix(table: TableId, prefix: Vec<u8>) -> Self {
        let end = prefix_end(&prefix);
        Self::range(table, prefix, end)
    }

    /// A scan of the whole table.
    pub fn all(table: TableId) -> Self {
        Self::range(table, Vec::new(), None)
    }

    /// Scans an index instead. The range then refers to the index's keys.
    pub fn index(mut self, index: u16) -> Self {
        self.index = Some(index);
        self
    }

    /// Scans from high keys to low ones.
    pub fn backward(mut self) -> Self {
        self.direction = Direction::Backward;
        self
    }

    /// Returns at most this many rows per page.
    pub fn limit(mut self, rows: u32) -> Self {
        self.limit = rows;
        self
    }

    /// Returns only rows for which the filter holds.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Returns only these columns, each of which may be named once.
    pub fn columns(mut self, columns: &[u16]) -> Self {
        self.projection = Some(columns.to_vec());
        self
    }

    /// Continues after the page that ended with this continuation.
    pub fn after(mut self, continuation: Continuation) -> Self {
        self.after = Some(continuation);
        self
    }

    /// The most rows of a page, within [`PAGE_ROWS_MAX`].
    pub fn page_rows(&self) -> usize {
        self.limit.min(PAGE_ROWS_MAX) as usize
    }

    /// Applies filter and projection to a row. Returns `None` if the filter drops it.
    pub fn keep(&self, value: &[u8]) -> Result<Option<Vec<u8>>> {
        // Without either the value is not parsed, so tables of plain bytes can be scanned, too.
        if self.filter.is_none() && self.projection.is_none() {
            return Ok(Some(value.to_vec()));
        }
        let row = Row::parse(value)?;
        if let Some(filter) = &self.filter
            && !filter.holds(&row)?
        {
            return Ok(None);
        }
        Ok(Some(match &self.projection {
            Some(columns) => row.project(columns)?,
            None => value.to_vec(),
        }))
    }

    /// Checks the scan against a table with this many columns (0: values are bytes) and indexes.
    pub fn check(&self, columns: usize, indexes: usize) -> Result<()> {
        let wrong = |what: &str| Err(Error::new(Code::BadArgument, format!("a scan: {what}")));
        // A page without rows would have a continuation to itself, and the caller would never reach
        // the end.
        if self.limit == 0 {
            return wrong("a page of no rows");
        }
        if let Some(index) = self.index
            && usize::from(index) >= indexes
        {
            let text = format!("a scan: the table has no index number {index}");
            return Err(Error::new(Code::NoSuchIndex, text));
        }
        if columns == 0 && (self.filter.is_some() || self.projection.is_some()) {
            return wrong("the table has no columns to filter or return");
        }
        if let Some(asked) = &self.projection
            && asked.iter().any(|&column| usize::from(column) >= columns)
        {
            return wrong("asks for a column that the table has not");
        }
        // A column that is repeated thousands of times would make each row as many times longer.
        if let Some(asked) = &self.projection {
            let mut seen = vec![false; columns];
            let mut again = |column: &u16| std::mem::replace(&mut seen[usize::from(*column)], true);
            if asked.iter().any(&mut again) {
                return wrong("asks for a column twice");
            }
        }
        match &self.filter {
            Some(filter) => filter.check(columns),
            None => Ok(()),
        }
    }
}

/// A row that a scan found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanRow {
    /// The row's key, even if an index was scanned.
    pub key: Vec<u8>,
    /// The row's value, or a row of only the requested columns.
    pub value: Vec<u8>,
}

/// One page of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The rows, in the order of the scan.
    pub rows: Vec<ScanRow>,
    /// Where the next page begins, or `None` at the end of the range. A page may be short or even
    /// empty and still have a next one.
    pub next: Option<Continuation>,
}

/// The comparison of a column with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compare {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A condition on a row. A comparison with null or between types does not hold, and its negation by
/// [`Filter::Not`] does: there is no third truth value as in SQL.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// A comparison of a column with a value.
    Column {
        /// The number of the column.
        column: u16,
        /// The operator, with the column on its left.
        compare: Compare,
        /// The value on the right of the operator.
        value: Value,
    },
    /// The column with this number is null.
    IsNull(u16),
    /// The column with this number is text or bytes that begin with these.
    Prefix(u16, Vec<u8>),
    /// All of them hold. Without any it holds, too.
    And(Vec<Filter>),
    /// At least one of them holds. Without any it does not hold.
    Or(Vec<Filter>),
    /// The condition does not hold.
    Not(Box<Filter>),
}

impl Filter {
    /// A comparison of a column with a value.
    pub fn compare(column: u16, compare: Compare, value: impl Into<Value>) -> Self {
        Filter::Column {
            column,
            compare,
            value: value.into(),
        }
    }

    /// Whether the condition holds for a row.
    pub fn holds(&self, row: &Row<'_>) -> Result<bool> {
        Ok(match self {
            Filter::Column {
                column,
                compare,
                value,
            } => holds(row.get(*column)?, *compare, value.borrowed()),
            Filter::IsNull(column) => row.get(*column)? == ValueRef::Null,
            Filter::Prefix(column, prefix) => match row.get(*column)? {
                ValueRef::Text(text) => text.as_bytes().starts_with(prefix),
                ValueRef::Bytes(bytes) => bytes.starts_with(prefix),
                _ => false,
            },
            Filter::And(all) => {
                for filter in all {
                    if !filter.holds(row)? {
                        return Ok(false);
                    }
                }
                true
            }
            Filter::Or(any) => {
                for filter in any {
                    if filter.holds(row)? {
                        return Ok(true);
                    }
                }
                false
            }
            Filter::Not(filter) => !filter.holds(row)?,
        })
    }

    /// Checks the filter against its bounds, for a table with this many columns.
    pub fn check(&self, columns: usize) -> Result<()> {
        let mut nodes = 0;
        self.visit(columns, 1, &mut nodes)
    }

    fn visit(&self, columns: usize, depth: usize, nodes: &mut usize) -> Result<()> {
        *nodes += 1;
        // The filter comes from a client, and is evaluated for every row.
        if *nodes > FILTER_NODES_MAX || depth > FILTER_DEPTH_MAX {
            return Err(Error::new(Code::TooLarge, "a filter: too many conditions"));
        }
        match self {
            Filter::Column { column, .. } | Filter::IsNull(column) | Filter::Prefix(column, _) => {
                if usize::from(*column) >= columns {
                    let text = format!("a filter: the table has no column {column}");
                    return Err(Error::new(Code::BadArgument, text));
                }
                Ok(())
            }
            Filter::And(parts) | Filter::Or(parts) => parts
                .iter()
                .try_for_each(|part| part.visit(columns, depth + 1, nodes)),
            Filter::Not(part) => part.visit(columns, depth + 1, nodes),
        }
    }
}

fn holds(found: ValueRef<'_>, compare: Compare, wanted: ValueRef<'_>) -> bool {
    let Some(order) = found.compare(wanted) else {
        return false;
    };
    match compare {
        Compare::Equal => order.is_eq(),
        Compare::NotEqual => order.is_ne(),
        Compare::Less => order.is_lt(),
        Compare::LessOrEqual => order.is_le(),
        Compare::Greater => order.is_gt(),
        Compare::GreaterOrEqual => order.is_ge(),
    }
}
