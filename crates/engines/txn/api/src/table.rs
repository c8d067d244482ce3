//! What a table is: its name, how it lies on partitions, its columns and its indexes.

use crate::limits::{COLUMNS_MAX, INDEXES_MAX, NAME_BYTES_MAX, SPLITS_MAX, check_key};
use crate::{Assignment, Code, Error, Kind, Result, Row, TableId, Tuple, ValueRef};

/// Tables are numbered below this; an index has the table's number plus `n << TABLE_BITS`.
pub const TABLE_BITS: u32 = 24;

/// How rows lie on partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Partitioning {
    /// By a hash of the first `prefix` bytes of the key; of all of it when 0, or when the key is
    /// shorter. Rows that are used together share a prefix: a warehouse's number, for example.
    Hash {
        /// Bytes that are hashed.
        prefix: u16,
    },
    /// By order: partition `n` holds keys from split `n - 1` on and below split `n`.
    Range {
        /// Keys in ascending order.
        splits: Vec<Vec<u8>>,
    },
}

/// A column of a table of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name, for people and for SQL.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// Whether it may hold nothing.
    pub nullable: bool,
}

/// A secondary index: one entry for each row, ordered by these columns and then by the row's key.
/// It is kept by the engine, in the partition of its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexDef {
    /// Its name.
    pub name: String,
    /// The columns, by their place in the table.
    pub columns: Vec<u16>,
    /// How many first bytes of an index key are those of the row's key; the engine refuses rows
    /// where they differ. A scan that fixes as many as the partitioning looks at asks one
    /// partition, else all.
    pub shared_prefix: u16,
}

/// What a table is.
///
/// ```
/// use dyno_txn_api::{Kind, TableDef};
/// let customer = TableDef::hash("customer", 8)
///     .column("warehouse", Kind::U64)
///     .column("id", Kind::U64)
///     .column("last", Kind::Text)
///     .index("by-last", &["warehouse", "last"], 8)?;
/// assert_eq!(customer.column_number("last")?, 2);
/// # Ok::<(), dyno_txn_api::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDef {
    /// Its name.
    pub name: String,
    /// How rows lie on partitions.
    pub partitioning: Partitioning,
    /// Columns when values are rows ([`Row`]); none when values are bytes of the user's own.
    pub columns: Vec<Column>,
    /// Indexes, on tables with columns.
    pub indexes: Vec<IndexDef>,
}

impl TableDef {
    /// A table spread by a hash of the first bytes of its keys.
    pub fn hash(name: &str, prefix: u16) -> Self {
        Self::new(name, Partitioning::Hash { prefix })
    }

    /// A table cut at these keys.
    pub fn range(name: &str, splits: Vec<Vec<u8>>) -> Self {
        Self::new(name, Partitioning::Range { splits })
    }

    fn new(name: &str, partitioning: Partitioning) -> Self {
        Self {
            name: name.to_owned(),
            partitioning,
            columns: Vec::new(),
            indexes: Vec::new(),
        }
    }

    /// With one more column that always holds a value.
    pub fn column(self, name: &str, kind: Kind) -> Self {
        self.with(name, kind, false)
    }

    /// With one more column that may hold nothing.
    pub fn nullable(self, name: &str, kind: Kind) -> Self {
        self.with(name, kind, true)
    }

    fn with(mut self, name: &str, kind: Kind, nullable: bool) -> Self {
        let name = name.to_owned();
        self.columns.push(Column {
            name,
            kind,
            nullable,
        });
        self
    }

    /// With one more index on these columns, whose keys share so many bytes with those of the rows.
    pub fn index(mut self, name: &str, columns: &[&str], shared_prefix: u16) -> Result<Self> {
        let columns: Result<Vec<u16>> = columns.iter().map(|c| self.column_number(c)).collect();
        self.indexes.push(IndexDef {
            name: name.to_owned(),
            columns: columns?,
            shared_prefix,
        });
        Ok(self)
    }

    /// The place of a column.
    pub fn column_number(&self, name: &str) -> Result<u16> {
        let at = self.columns.iter().position(|column| column.name == name);
        let text = || format!("table `{}` has no column `{name}`", self.name);
        at.map(|at| at as u16)
            .ok_or_else(|| Error::new(Code::BadArgument, text()))
    }

    /// The place of an index.
    pub fn index_number(&self, name: &str) -> Result<u16> {
        let at = self.indexes.iter().position(|index| index.name == name);
        let text = || format!("table `{}` has no index `{name}`", self.name);
        at.map(|at| at as u16)
            .ok_or_else(|| Error::new(Code::NoSuchIndex, text()))
    }

    /// Whether an engine may take this definition.
    pub fn check(&self) -> Result<()> {
        let names = [&self.name]
            .into_iter()
            .chain(self.columns.iter().map(|column| &column.name))
            .chain(self.indexes.iter().map(|index| &index.name));
        for name in names {
            if name.is_empty() || name.len() > NAME_BYTES_MAX {
                return Err(self.wrong("a name is empty or too long"));
            }
        }
        if self.columns.len() > COLUMNS_MAX || self.indexes.len() > INDEXES_MAX {
            return Err(self.wrong("too many columns or indexes"));
        }
        if let Partitioning::Range { splits } = &self.partitioning {
            if splits.len() > SPLITS_MAX || !splits.is_sorted_by(|a, b| a < b) {
                return Err(self.wrong("splits do not ascend, or are too many"));
            }
            splits.iter().try_for_each(|split| check_key(split))?;
        }
        for index in &self.indexes {
            let known = |&column: &u16| usize::from(column) < self.columns.len();
            if index.columns.is_empty() || !index.columns.iter().all(known) {
                return Err(self.wrong("an index on no column, or on one that is not there"));
            }
        }
        Ok(())
    }

    /// Whether these bytes are a row of the table. Tables without columns take anything.
    pub fn check_row(&self, value: &[u8]) -> Result<()> {
        if self.columns.is_empty() {
            return Ok(());
        }
        let row = Row::parse(value)?;
        if row.columns() > self.columns.len() {
            return Err(self.bad_row("has more columns than the table"));
        }
        let kinds = row.kinds().chain(std::iter::repeat(Ok(None)));
        for (column, kind) in self.columns.iter().zip(kinds) {
            self.check_kind(column, kind?)?;
        }
        Ok(())
    }

    /// Whether an update leaves a row of the table one of it, by the columns that it changes.
    pub fn check_update(&self, assignments: &[Assignment], new: &Row<'_>) -> Result<()> {
        if self.columns.is_empty() {
            return Ok(());
        }
        for Assignment { column, .. } in assignments {
            let Some(of) = self.columns.get(usize::from(*column)) else {
                return Err(self.bad_row("has more columns than the table"));
            };
            self.check_kind(of, new.get(*column)?.kind())?;
        }
        Ok(())
    }

    fn check_kind(&self, column: &Column, kind: Option<Kind>) -> Result<()> {
        match kind {
            None if !column.nullable => {
                Err(self.bad_row(&format!("has nothing in column `{}`", column.name)))
            }
            Some(kind) if kind != column.kind => {
                let text = format!("has another kind of value in column `{}`", column.name);
                Err(self.bad_row(&text))
            }
            _ => Ok(()),
        }
    }

    /// Whether an update changes where a row stands in an index.
    pub fn moves_in_index(&self, assignments: &[Assignment]) -> bool {
        let columns = self.indexes.iter().flat_map(|index| &index.columns);
        columns.into_iter().any(|of| {
            assignments
                .iter()
                .any(|assignment| assignment.column == *of)
        })
    }

    /// The key of a row's entry in an index: the columns, then the row's key.
    pub fn index_key(&self, index: u16, key: &[u8], value: &[u8]) -> Result<Vec<u8>> {
        let Some(def) = self.indexes.get(usize::from(index)) else {
            let text = format!("table `{}` has no index number {index}", self.name);
            return Err(Error::new(Code::NoSuchIndex, text));
        };
        let row = Row::parse(value)?;
        let mut tuple = Tuple::new();
        for &column in &def.columns {
            let nullable = self.columns[usize::from(column)].nullable;
            tuple = row.get(column)?.append_to(tuple, nullable);
        }
        let mut bytes = tuple.finish();
        bytes.extend_from_slice(key);
        let shared = usize::from(def.shared_prefix);
        if shared > 0 && (key.len() < shared || bytes[..shared] != key[..shared]) {
            let text = format!("differs in what index `{}` shares with the key", def.name);
            return Err(self.bad_row(&text));
        }
        check_key(&bytes)?;
        Ok(bytes)
    }

    /// The row's key at the end of an index key that is [`TableDef::index_key`]'s.
    pub fn key_of_entry<'a>(&self, index: u16, entry: &'a [u8]) -> Result<&'a [u8]> {
        let mut reader = crate::TupleReader::new(entry);
        let columns = self.indexes.get(usize::from(index)).map(|def| &def.columns);
        for &column in columns.into_iter().flatten() {
            let column = &self.columns[usize::from(column)];
            if column.nullable && reader.u8()? == 0 {
                continue;
            }
            match column.kind {
                Kind::U64 | Kind::I64 | Kind::F64 => drop(reader.u64()?),
                Kind::Text | Kind::Bytes => drop(reader.bytes()?),
            }
        }
        Ok(reader.rest())
    }

    /// The first bytes of the keys of an index for these first columns: what a scan starts from.
    pub fn index_prefix(&self, index: u16, values: &[ValueRef<'_>]) -> Result<Vec<u8>> {
        let Some(def) = self.indexes.get(usize::from(index)) else {
            let text = format!("table `{}` has no index number {index}", self.name);
            return Err(Error::new(Code::NoSuchIndex, text));
        };
        if values.len() > def.columns.len() {
            let text = format!("index `{}` has fewer columns than values given", def.name);
            return Err(Error::new(Code::BadArgument, text));
        }
        let mut tuple = Tuple::new();
        for (value, &column) in values.iter().zip(&def.columns) {
            tuple = value.append_to(tuple, self.columns[usize::from(column)].nullable);
        }
        Ok(tuple.finish())
    }

    fn wrong(&self, what: &str) -> Error {
        Error::new(Code::BadArgument, format!("table `{}`: {what}", self.name))
    }

    fn bad_row(&self, what: &str) -> Error {
        Error::new(
            Code::BadRow,
            format!("a row of table `{}` {what}", self.name),
        )
    }
}

/// A table's number as the number under which an index of it is stored.
pub fn index_id(table: TableId, index: u16) -> TableId {
    TableId(table.0 | (u32::from(index) + 1) << TABLE_BITS)
}
