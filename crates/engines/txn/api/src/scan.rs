//! Reading a range of keys, in either direction, page by page, with what to keep of it.

use crate::limits::{FILTER_DEPTH_MAX, FILTER_NODES_MAX, PAGE_ROWS_MAX};
use crate::{Code, Error, Result, Row, TableId, Value, ValueRef, prefix_end};

/// Which way a scan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// From small keys to large ones.
    #[default]
    Forward,
    /// From large keys to small ones.
    Backward,
}

/// Where a scan goes on: the key of the last row that was looked at. Its bytes are the engine's
/// own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Continuation(pub Vec<u8>);

/// Which rows to read, and what of them.
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
    /// The table.
    pub table: TableId,
    /// The index whose order and keys the range is of; the table's own keys when none.
    pub index: Option<u16>,
    /// The first key of the range, included.
    pub start: Vec<u8>,
    /// The end of the range, not included; none when it ends with the table.
    pub end: Option<Vec<u8>>,
    /// Which way.
    pub direction: Direction,
    /// Rows of a page at most; [`PAGE_ROWS_MAX`] when larger.
    pub limit: u32,
    /// Which rows to keep, on tables with columns.
    pub filter: Option<Filter>,
    /// Which columns to return, in this order, on tables with columns; all when none.
    pub projection: Option<Vec<u16>>,
    /// Where the page before ended.
    pub after: Option<Continuation>,
}

impl Scan {
    /// From a key to before another.
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

    /// All keys that begin with these bytes.
    pub fn prefix(table: TableId, prefix: Vec<u8>) -> Self {
        let end = prefix_end(&prefix);
        Self::range(table, prefix, end)
    }

    /// The whole table.
    pub fn all(table: TableId) -> Self {
        Self::range(table, Vec::new(), None)
    }

    /// In the order of an index; the range is of the index's keys.
    pub fn index(mut self, index: u16) -> Self {
        self.index = Some(index);
        self
    }

    /// From large keys to small ones.
    pub fn backward(mut self) -> Self {
        self.direction = Direction::Backward;
        self
    }

    /// So many rows a page.
    pub fn limit(mut self, rows: u32) -> Self {
        self.limit = rows;
        self
    }

    /// Only rows for which this holds.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Only these columns.
    pub fn columns(mut self, columns: &[u16]) -> Self {
        self.projection = Some(columns.to_vec());
        self
    }

    /// The page after one that ended here.
    pub fn after(mut self, continuation: Continuation) -> Self {
        self.after = Some(continuation);
        self
    }

    /// Rows of a page at most.
    pub fn page_rows(&self) -> usize {
        self.limit.min(PAGE_ROWS_MAX) as usize
    }

    /// What a row becomes: nothing when the filter drops it, its columns when they were asked for.
    pub fn keep(&self, value: &[u8]) -> Result<Option<Vec<u8>>> {
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

    /// Whether the scan makes sense on a table with so many columns (0: values are bytes) and
    /// indexes.
    pub fn check(&self, columns: usize, indexes: usize) -> Result<()> {
        let wrong = |what: &str| Err(Error::new(Code::BadArgument, format!("a scan: {what}")));
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
        match &self.filter {
            Some(filter) => filter.check(columns),
            None => Ok(()),
        }
    }
}

/// A row that a scan found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The row's key, also when an index was scanned.
    pub key: Vec<u8>,
    /// Its value, or the columns that were asked for as a row of their own.
    pub value: Vec<u8>,
}

/// What one scan returned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// In the order of the scan.
    pub rows: Vec<Found>,
    /// Where the next page begins; none when the range is through. A page may be short, even empty,
    /// and still have a next one.
    pub next: Option<Continuation>,
}

/// How a column is compared.
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

/// A condition on a row. A comparison with nothing, or between kinds, does not hold (and its
/// negation by [`Filter::Not`] does: there is no third value as in SQL).
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// A column against a value.
    Column {
        /// Which.
        column: u16,
        /// How.
        compare: Compare,
        /// With what.
        value: Value,
    },
    /// A column holds nothing.
    IsNull(u16),
    /// Text or bytes that begin so.
    Prefix(u16, Vec<u8>),
    /// All hold; true when there are none.
    And(Vec<Filter>),
    /// One holds; false when there are none.
    Or(Vec<Filter>),
    /// It does not hold.
    Not(Box<Filter>),
}

impl Filter {
    /// A column against a value.
    pub fn compare(column: u16, compare: Compare, value: impl Into<Value>) -> Self {
        Filter::Column {
            column,
            compare,
            value: value.into(),
        }
    }

    /// Whether it holds for a row.
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

    /// Whether it is within bounds for a table of so many columns.
    pub fn check(&self, columns: usize) -> Result<()> {
        let mut nodes = 0;
        self.visit(columns, 1, &mut nodes)
    }

    fn visit(&self, columns: usize, depth: usize, nodes: &mut usize) -> Result<()> {
        *nodes += 1;
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
