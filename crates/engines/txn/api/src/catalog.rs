//! Encodes a table's definition, for engines that store their catalogue in another system.
//!
//! The bytes are a version and then a tuple: name, partitioning, columns and indexes, with counts
//! before lists.

use crate::limits::{COLUMNS_MAX, INDEXES_MAX, SPLITS_MAX};
use crate::{
    Code, Column, Error, IndexDef, Kind, Partitioning, Result, TableDef, Tuple, TupleReader,
};

/// The version of the encoding that this program writes.
const VERSION: u8 = 1;

impl TableDef {
    /// Encodes the definition.
    ///
    /// ```
    /// use dyno_txn_api::{Kind, TableDef};
    /// let def = TableDef::hash("things", 8)
    ///     .column("name", Kind::Text)
    ///     .index("by-name", &["name"], 0)?;
    /// assert_eq!(TableDef::from_bytes(&def.to_bytes())?, def);
    /// # Ok::<(), dyno_txn_api::Error>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut tuple = Tuple::new().u8(VERSION).text(&self.name);
        tuple = match &self.partitioning {
            Partitioning::Hash { prefix } => tuple.u8(0).u16(*prefix),
            Partitioning::Range { splits } => {
                let tuple = tuple.u8(1).u16(splits.len() as u16);
                splits.iter().fold(tuple, |tuple, split| tuple.bytes(split))
            }
        };
        tuple = tuple.u16(self.columns.len() as u16);
        for column in &self.columns {
            let kind = tag(column.kind);
            tuple = tuple
                .text(&column.name)
                .u8(kind)
                .u8(u8::from(column.nullable));
        }
        tuple = tuple.u16(self.indexes.len() as u16);
        for index in &self.indexes {
            let head = tuple.text(&index.name).u16(index.shared_prefix);
            let head = head.u16(index.columns.len() as u16);
            tuple = index
                .columns
                .iter()
                .fold(head, |tuple, column| tuple.u16(*column));
        }
        tuple.finish()
    }

    /// Decodes a definition, and checks it.
    pub fn from_bytes(bytes: &[u8]) -> Result<TableDef> {
        let mut reader = TupleReader::new(bytes);
        match reader.u8()? {
            VERSION => {}
            version if version > VERSION => {
                let text = format!(
                    "a table's definition of version {version}: this program reads {VERSION}"
                );
                return Err(Error::new(Code::NewerVersion, text));
            }
            _ => return Err(damaged("its version is not known")),
        }
        let def = TableDef {
            name: reader.text()?,
            partitioning: partitioning(&mut reader)?,
            columns: columns(&mut reader)?,
            indexes: indexes(&mut reader)?,
        };
        if !reader.rest().is_empty() {
            return Err(damaged("bytes follow its end"));
        }
        // The bytes come from another system's store, where something else may have written them.
        def.check()?;
        Ok(def)
    }
}

fn partitioning(reader: &mut TupleReader<'_>) -> Result<Partitioning> {
    match reader.u8()? {
        0 => Ok(Partitioning::Hash {
            prefix: reader.u16()?,
        }),
        1 => {
            let splits = (0..count(reader, SPLITS_MAX)?).map(|_| reader.bytes());
            let splits = splits.collect::<Result<_>>()?;
            Ok(Partitioning::Range { splits })
        }
        _ => Err(damaged("its partitioning is not known")),
    }
}

fn columns(reader: &mut TupleReader<'_>) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    for _ in 0..count(reader, COLUMNS_MAX)? {
        columns.push(Column {
            name: reader.text()?,
            kind: kind(reader.u8()?)?,
            nullable: reader.u8()? != 0,
        });
    }
    Ok(columns)
}

fn indexes(reader: &mut TupleReader<'_>) -> Result<Vec<IndexDef>> {
    let mut indexes = Vec::new();
    for _ in 0..count(reader, INDEXES_MAX)? {
        let (name, shared_prefix) = (reader.text()?, reader.u16()?);
        let columns = (0..count(reader, COLUMNS_MAX)?).map(|_| reader.u16());
        indexes.push(IndexDef {
            name,
            columns: columns.collect::<Result<_>>()?,
            shared_prefix,
        });
    }
    Ok(indexes)
}

/// Reads the length of a list, and checks it against its limit before memory is allocated for it.
fn count(reader: &mut TupleReader<'_>, most: usize) -> Result<usize> {
    let count = usize::from(reader.u16()?);
    if count <= most {
        Ok(count)
    } else {
        Err(damaged("a list is longer than it may be"))
    }
}

fn tag(kind: Kind) -> u8 {
    match kind {
        Kind::U64 => 1,
        Kind::I64 => 2,
        Kind::F64 => 3,
        Kind::Text => 4,
        Kind::Bytes => 5,
    }
}

fn kind(tag: u8) -> Result<Kind> {
    Ok(match tag {
        1 => Kind::U64,
        2 => Kind::I64,
        3 => Kind::F64,
        4 => Kind::Text,
        5 => Kind::Bytes,
        _ => return Err(damaged("a column holds what is not known")),
    })
}

fn damaged(what: &str) -> Error {
    Error::new(Code::Damaged, format!("a table's definition: {what}"))
}
