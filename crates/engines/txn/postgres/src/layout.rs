//! A table in SQL: names, types, and the statements that are the same for all of its rows.

use std::sync::Arc;

use dyno_txn_api::limits::{check_key, check_value};
use dyno_txn_api::{
    Code, Direction, Error, Kind, Result, Row, Scan, Table, TableDef, ValueRef, encode_row,
};

use crate::catalogue::SCHEMA;
use crate::parameter::Parameter;

/// The longest name in bytes. SQL truncates names to 63 bytes, and those of indexes have a suffix.
const NAME_MAX: usize = 48;

/// A table with its prepared statements' texts.
pub struct Layout {
    pub table: Table,
    /// The table's name in SQL, with its schema.
    pub name: String,
    /// The columns with which a whole row is read.
    columns: String,
    pub get: Arc<str>,
    pub get_many: Arc<str>,
    pub put: Arc<str>,
    pub put_many: Arc<str>,
    pub insert: Arc<str>,
    pub insert_many: Arc<str>,
    pub delete: Arc<str>,
}

/// Quotes a name for SQL.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Checks that SQL can have such a table.
pub fn check(def: &TableDef) -> Result<()> {
    def.check()?;
    let wrong = |what: String| {
        let text = format!("table `{}` in SQL: {what}", def.name);
        Err(Error::new(Code::NotSupported, text))
    };
    let names = def.columns.iter().map(|column| &column.name);
    if let Some(name) = names.clone().find(|name| name.starts_with('_')) {
        return wrong(format!("column `{name}` begins with _"));
    }
    match names.chain([&def.name]).find(|name| name.len() > NAME_MAX) {
        Some(name) => wrong(format!("`{name}` is longer than {NAME_MAX} bytes")),
        None => Ok(()),
    }
}

fn sql_type(kind: Kind) -> &'static str {
    match kind {
        Kind::U64 | Kind::I64 => "bigint",
        Kind::F64 => "double precision",
        Kind::Text => "text",
        Kind::Bytes => "bytea",
    }
}

impl Layout {
    pub fn new(table: Table) -> Layout {
        let def = &table.def;
        let name = format!("{SCHEMA}.{}", quoted(&def.name));
        // All columns with their types, in the order in which values are written.
        let mut all: Vec<(String, &str)> = vec![("_key".to_owned(), "bytea")];
        if def.columns.is_empty() {
            all.push(("_value".to_owned(), "bytea"))
        } else {
            all.extend(
                def.columns
                    .iter()
                    .map(|column| (quoted(&column.name), sql_type(column.kind))),
            )
        }
        let values = all.len() - 1;
        all.extend((0..def.indexes.len()).map(|index| (place(Some(index as u16)), "bytea")));
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        let columns = names[..=values].join(", ");
        let one: Vec<String> = (1..=all.len()).map(|at| format!("${at}")).collect();
        let many: Vec<String> = all
            .iter()
            .zip(&one)
            .map(|((_, kind), at)| format!("{at}::{kind}[]"))
            .collect();
        let set: Vec<String> = names[1..]
            .iter()
            .map(|name| format!("{name} = excluded.{name}"))
            .collect();
        let into = format!("INSERT INTO {name} ({})", names.join(", "));
        let one = format!("VALUES ({})", one.join(", "));
        let many = format!("SELECT * FROM unnest({})", many.join(", "));
        let replace = format!("ON CONFLICT (_key) DO UPDATE SET {}", set.join(", "));
        let keep = "ON CONFLICT (_key) DO NOTHING RETURNING 1";
        Layout {
            get: format!("SELECT {columns} FROM {name} WHERE _key = $1").into(),
            get_many: format!("SELECT {columns} FROM {name} WHERE _key = ANY($1)").into(),
            put: format!("{into} {one} {replace}").into(),
            put_many: format!("{into} {many} {replace}").into(),
            insert: format!("{into} {one} {keep}").into(),
            insert_many: format!("{into} {many} {keep}").into(),
            delete: format!("DELETE FROM {name} WHERE _key = $1").into(),
            columns,
            name,
            table,
        }
    }

    /// The statements that create the table and its indexes, if they do not exist.
    pub fn create(&self) -> Vec<String> {
        let def = &self.table.def;
        let mut columns = vec!["_key bytea PRIMARY KEY".to_owned()];
        if def.columns.is_empty() {
            columns.push("_value bytea NOT NULL".to_owned());
        }
        for column in &def.columns {
            let nullable = if column.nullable { "" } else { " NOT NULL" };
            let (name, kind) = (quoted(&column.name), sql_type(column.kind));
            columns.push(format!("{name} {kind}{nullable}"));
        }
        let indexes = 0..def.indexes.len() as u16;
        columns.extend(
            indexes
                .clone()
                .map(|at| format!("{} bytea NOT NULL", place(Some(at)))),
        );
        let table = format!(
            "CREATE TABLE IF NOT EXISTS {} ({})",
            self.name,
            columns.join(", ")
        );
        let index = |at: u16| {
            let name = quoted(&format!("{}_{at}", def.name));
            let column = place(Some(at));
            // Unique, because an index key ends with the key of the row.
            format!(
                "CREATE UNIQUE INDEX IF NOT EXISTS {name} ON {} ({column})",
                self.name
            )
        };
        [table].into_iter().chain(indexes.map(index)).collect()
    }

    /// The parameters that write a row, in the order of the statements.
    pub fn written(&self, key: &[u8], value: &[u8]) -> Result<Vec<Parameter>> {
        let def = &self.table.def;
        check_key(key)?;
        check_value(value)?;
        def.check_row(value)?;
        let bytes = |bytes: &[u8]| Parameter::Bytes(Some(bytes.to_vec()));
        let mut parameters = vec![bytes(key)];
        if def.columns.is_empty() {
            parameters.push(bytes(value));
            return Ok(parameters);
        }
        let row = Row::parse(value)?;
        for (at, column) in def.columns.iter().enumerate() {
            parameters.push(Parameter::from_value(row.get(at as u16)?, column.kind)?);
        }
        for index in 0..def.indexes.len() as u16 {
            parameters.push(bytes(&def.index_key(index, key, value)?));
        }
        Ok(parameters)
    }

    /// Reads the key and the value of a whole row, from the column at `from` on.
    pub fn read(
        &self,
        row: &dyno_postgres::postgres::Row,
        from: usize,
    ) -> Result<(Vec<u8>, Vec<u8>)> {
        let def = &self.table.def;
        let key: Vec<u8> = column(row, from)?;
        if def.columns.is_empty() {
            return Ok((key, column(row, from + 1)?));
        }
        let all: Vec<u16> = (0..def.columns.len() as u16).collect();
        Ok((key, self.values(row, from + 1, &all)?))
    }

    /// Reads these columns, from the column at `from` on, and encodes them as a row.
    pub fn values(
        &self,
        row: &dyno_postgres::postgres::Row,
        from: usize,
        columns: &[u16],
    ) -> Result<Vec<u8>> {
        let mut values = Vec::with_capacity(columns.len());
        for (at, &wanted) in columns.iter().enumerate() {
            let at = from + at;
            values.push(match self.table.def.columns[usize::from(wanted)].kind {
                Kind::U64 => some(column(row, at)?, |n: i64| ValueRef::U64(n as u64)),
                Kind::I64 => some(column(row, at)?, ValueRef::I64),
                Kind::F64 => some(column(row, at)?, ValueRef::F64),
                Kind::Text => some(column(row, at)?, ValueRef::Text),
                Kind::Bytes => some(column(row, at)?, ValueRef::Bytes),
            });
        }
        Ok(encode_row(&values))
    }

    /// The statement of a scan. Its first parameter is the start, its second the end if `ends`, and
    /// its last the limit. It returns the place in the order, then the key, then the requested
    /// columns.
    pub fn scan(&self, scan: &Scan, ends: bool) -> String {
        let at = place(scan.index);
        let columns = match self.projected(scan) {
            Some(columns) => {
                let names = columns
                    .iter()
                    .map(|&at| quoted(&self.table.def.columns[usize::from(at)].name));
                let names: Vec<String> = ["_key".to_owned()].into_iter().chain(names).collect();
                names.join(", ")
            }
            None => self.columns.clone(),
        };
        let (end, limit) = if ends {
            (format!(" AND {at} < $2"), "$3")
        } else {
            (String::new(), "$2")
        };
        let order = match scan.direction {
            Direction::Forward => "",
            Direction::Backward => " DESC",
        };
        format!(
            "SELECT {at}, {columns} FROM {} WHERE {at} >= $1{end} ORDER BY {at}{order} LIMIT {limit}",
            self.name
        )
    }

    /// The columns that the server is asked for. With a filter these are all, because the client
    /// evaluates it.
    pub fn projected<'a>(&self, scan: &'a Scan) -> Option<&'a [u16]> {
        match scan.filter {
            None => scan.projection.as_deref(),
            Some(_) => None,
        }
    }
}

/// The column that determines an order.
fn place(index: Option<u16>) -> String {
    match index {
        Some(index) => format!("_index_{index}"),
        None => "_key".to_owned(),
    }
}

fn some<'a, T>(value: Option<T>, of: impl Fn(T) -> ValueRef<'a>) -> ValueRef<'a> {
    value.map_or(ValueRef::Null, of)
}

/// Reads a column of a row that the server returned.
pub fn column<'a, T: dyno_postgres::postgres::types::FromSql<'a>>(
    row: &'a dyno_postgres::postgres::Row,
    at: usize,
) -> Result<T> {
    row.try_get(at).map_err(|error| {
        let text = format!("column {at} of what the server returned: {error}");
        Error::new(Code::Damaged, text)
    })
}
