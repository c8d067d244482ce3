//! Definitions of tables: names, partitioning, columns and indexes.

use crate::limits::{COLUMNS_MAX, INDEXES_MAX, NAME_BYTES_MAX, SPLITS_MAX, check_key};
use crate::{Assignment, Code, Error, Kind, Result, Row, TableId, Tuple, ValueRef};

/// Ids of tables are below `1 << TABLE_BITS`. Index `n` has its table's id plus `(n + 1) <<
/// TABLE_BITS`.
pub const TABLE_BITS: u32 = 24;

/// How rows are spread over partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Partitioning {
    /// By a hash of the first `prefix` bytes of the key, or of the whole key if `prefix` is 0 or
    /// the key is shorter. Rows that are used together should share a prefix, for example a
    /// warehouse's number.
    Hash {
        /// Bytes of the key that are hashed.
        prefix: u16,
    },
    /// By order: partition `n` has the keys from split `n - 1` to before split `n`.
    Range {
        /// The splits, in ascending order.
        splits: Vec<Vec<u8>>,
    },
}

/// A column of a table of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The name, for people and for SQL.
    pub name: String,
    /// The type of its values.
    pub kind: Kind,
    /// Whether it may be null.
    pub nullable: bool,
}

/// A secondary index: one entry for each row, ordered by these columns and then by the row's key.
/// The engine maintains it, in the partition of the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexDef {
    /// The name, which is unique in the table.
    pub name: String,
    /// The numbers of the columns, in the order of the index.
    pub columns: Vec<u16>,
    /// How many bytes at the front of an index key equal those of the row's key. The engine refuses
    /// rows where they differ. A scan that fixes as many bytes as the partitioning uses needs only
    /// one partition, and otherwise all of them.
    pub shared_prefix: u16,
}

/// The definition of a table.
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
    /// The name, which is unique in the database.
    pub name: String,
    /// How rows are spread over partitions.
    pub partitioning: Partitioning,
    /// The columns, if values are rows ([`Row`]). Empty if values are bytes that only the user
    /// interprets.
    pub columns: Vec<Column>,
    /// The secondary indexes. Only tables with columns have any.
    pub indexes: Vec<IndexDef>,
}

impl TableDef {
    /// A table that is spread by a hash of the first bytes of its keys.
    pub fn hash(name: &str, prefix: u16) -> Self {
        Self::new(name, Partitioning::Hash { prefix })
    }

    /// A table that is partitioned at these keys.
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

    /// Adds a column that is never null.
    pub fn column(self, name: &str, kind: Kind) -> Self {
        self.with(name, kind, false)
    }

    /// Adds a column that may be null.
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

    /// Adds an index on these columns, whose keys share this many bytes with the keys of the rows.
    pub fn index(mut self, name: &str, columns: &[&str], shared_prefix: u16) -> Result<Self> {
        let columns: Result<Vec<u16>> = columns.iter().map(|c| self.column_number(c)).collect();
        self.indexes.push(IndexDef {
            name: name.to_owned(),
            columns: columns?,
            shared_prefix,
        });
        Ok(self)
    }

    /// The number of the column with this name.
    pub fn column_number(&self, name: &str) -> Result<u16> {
        let at = self.columns.iter().position(|column| column.name == name);
        let text = || format!("table `{}` has no column `{name}`", self.name);
        at.map(|at| at as u16)
            .ok_or_else(|| Error::new(Code::BadArgument, text()))
    }

    /// The number of the index with this name.
    pub fn index_number(&self, name: &str) -> Result<u16> {
        let at = self.indexes.iter().position(|index| index.name == name);
        let text = || format!("table `{}` has no index `{name}`", self.name);
        at.map(|at| at as u16)
            .ok_or_else(|| Error::new(Code::NoSuchIndex, text()))
    }

    /// Checks that an engine may accept this definition.
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

    /// Checks that these bytes are a row of the table. Tables without columns accept any bytes.
    pub fn check_row(&self, value: &[u8]) -> Result<()> {
        if self.columns.is_empty() {
            return Ok(());
        }
        let row = Row::parse(value)?;
        if row.columns() > self.columns.len() {
            return Err(self.bad_row("has more columns than the table"));
        }
        // Columns that were added after the row was written are missing in it, and count as null.
        let kinds = row.kinds().chain(std::iter::repeat(Ok(None)));
        for (column, kind) in self.columns.iter().zip(kinds) {
            self.check_kind(column, kind?)?;
        }
        Ok(())
    }

    /// Checks that a row is still one of the table after an update, by the columns that the update
    /// changes.
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

    /// Whether an update may change the place of a row in an index.
    pub fn moves_in_index(&self, assignments: &[Assignment]) -> bool {
        let columns = self.indexes.iter().flat_map(|index| &index.columns);
        columns.into_iter().any(|of| {
            assignments
                .iter()
                .any(|assignment| assignment.column == *of)
        })
    }

    /// The key of a row's entry in an index: the indexed columns, then the row's key.
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
        // The engine keeps the entry in the row's partition and looks for it by these bytes. If
        // they differed, a scan would ask the wrong partition and miss the row.
        if shared > 0 && (key.len() < shared || bytes[..shared] != key[..shared]) {
            let text = format!("differs in what index `{}` shares with the key", def.name);
            return Err(self.bad_row(&text));
        }
        // An index key is stored like a key of a table, so it has the same limit. It is checked
        // here, before the write is accepted.
        check_key(&bytes)?;
        Ok(bytes)
    }

    /// The row's key at the end of an index key that [`TableDef::index_key`] made.
    pub fn key_of_entry<'a>(&self, index: u16, entry: &'a [u8]) -> Result<&'a [u8]> {
        let mut reader = crate::TupleReader::new(entry);
        let columns = self.indexes.get(usize::from(index)).map(|def| &def.columns);
        for &column in columns.into_iter().flatten() {
            let column = &self.columns[usize::from(column)];
            // The byte before a nullable value, see [`ValueRef::append_to`].
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

    /// The front of the index keys with these values in the first columns, where a scan begins.
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

/// The id under which an index of the table is stored.
pub fn index_id(table: TableId, index: u16) -> TableId {
    TableId(table.0 | (u32::from(index) + 1) << TABLE_BITS)
}
