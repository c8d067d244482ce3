//! The api's types on the wire.

use dyno_txn_api::{
    Answer, Assign, Assignment, Change, Code, Column, Committed, Compare, Continuation, Direction,
    Error, Filter, Found, IndexDef, Key, Kind, Operation, Page, Partitioning, Request, Result,
    Retry, Scan, Table, TableDef, TableId, Value,
};

use super::{Reader, Wire, wire_struct};

wire_struct!(Key { table, bytes });
wire_struct!(Found { key, value });
wire_struct!(Page { rows, next });
wire_struct!(Column {
    name,
    kind,
    nullable
});
wire_struct!(IndexDef {
    name,
    columns,
    shared_prefix
});
wire_struct!(TableDef {
    name,
    partitioning,
    columns,
    indexes
});
wire_struct!(Table { id, def });
wire_struct!(Assignment { column, assign });
wire_struct!(Committed {
    stamp,
    answers,
    returned
});
wire_struct!(Scan {
    table,
    index,
    start,
    end,
    direction,
    limit,
    filter,
    projection,
    after
});

/// A tuple struct of one field is that field; a list of plain variants is a byte.
macro_rules! plain {
    ($name:ident: $($tag:literal $variant:ident)+) => {
        impl Wire for $name {
            fn write(&self, out: &mut Vec<u8>) {
                out.push(match self { $($name::$variant => $tag),+ });
            }
            fn read(reader: &mut Reader<'_>) -> Result<Self> {
                Ok(match reader.byte()? {
                    $($tag => $name::$variant,)+
                    _ => return Err(reader.damaged("name a kind that is not known")),
                })
            }
        }
    };
}

/// Variants with one unnamed field each.
macro_rules! wrapped {
    ($name:ident: $($tag:literal $variant:ident)+) => {
        impl Wire for $name {
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $($name::$variant(value) => {
                        out.push($tag);
                        value.write(out);
                    })+
                }
            }
            fn read(reader: &mut Reader<'_>) -> Result<Self> {
                Ok(match reader.byte()? {
                    $($tag => $name::$variant(Wire::read(reader)?),)+
                    _ => return Err(reader.damaged("name a kind that is not known")),
                })
            }
        }
    };
}

plain!(Kind: 1 U64 2 I64 3 F64 4 Text 5 Bytes);
plain!(Direction: 0 Forward 1 Backward);
plain!(Compare: 0 Equal 1 NotEqual 2 Less 3 LessOrEqual 4 Greater 5 GreaterOrEqual);
wrapped!(Assign: 0 Set 1 Add);

impl Wire for TableId {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(TableId(u32::read(reader)?))
    }
}

impl Wire for Continuation {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(Continuation(Vec::read(reader)?))
    }
}

impl Wire for Error {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.kind().number());
        out.push(match self.retry() {
            Retry::Safe => 0,
            Retry::Never => 1,
            Retry::Unknown => 2,
        });
        self.text().to_owned().write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let number = reader.byte()?;
        let Some(code) = Code::numbered(number) else {
            return Err(reader.damaged("name an error that is not known"));
        };
        let retry = match reader.byte()? {
            0 => Retry::Safe,
            1 => Retry::Never,
            2 => Retry::Unknown,
            _ => return Err(reader.damaged("name a retry that is not known")),
        };
        Ok(Error::with_retry(code, retry, String::read(reader)?))
    }
}

impl Wire for Value {
    fn write(&self, out: &mut Vec<u8>) {
        let mut tagged = |tag| out.push(tag);
        match self {
            Value::Null => tagged(0),
            Value::U64(_) => tagged(1),
            Value::I64(_) => tagged(2),
            Value::F64(_) => tagged(3),
            Value::Text(_) => tagged(4),
            Value::Bytes(_) => tagged(5),
        }
        match self {
            Value::Null => {}
            Value::U64(value) => value.write(out),
            Value::I64(value) => value.write(out),
            Value::F64(value) => value.write(out),
            Value::Text(value) => value.write(out),
            Value::Bytes(value) => value.write(out),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match reader.byte()? {
            0 => Value::Null,
            1 => Value::U64(Wire::read(reader)?),
            2 => Value::I64(Wire::read(reader)?),
            3 => Value::F64(Wire::read(reader)?),
            4 => Value::Text(Wire::read(reader)?),
            5 => Value::Bytes(Wire::read(reader)?),
            _ => return Err(reader.damaged("name a kind of value that is not known")),
        })
    }
}

impl Wire for Partitioning {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Partitioning::Hash { prefix } => {
                out.push(0);
                prefix.write(out);
            }
            Partitioning::Range { splits } => {
                out.push(1);
                splits.write(out);
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match reader.byte()? {
            0 => Partitioning::Hash {
                prefix: Wire::read(reader)?,
            },
            1 => Partitioning::Range {
                splits: Wire::read(reader)?,
            },
            _ => return Err(reader.damaged("name a partitioning that is not known")),
        })
    }
}

impl Wire for Change {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Change::Put(value) => {
                out.push(0);
                value.write(out);
            }
            Change::Insert(value) => {
                out.push(1);
                value.write(out);
            }
            Change::Delete => out.push(2),
            Change::Update(columns) => {
                out.push(3);
                columns.write(out);
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match reader.byte()? {
            0 => Change::Put(Wire::read(reader)?),
            1 => Change::Insert(Wire::read(reader)?),
            2 => Change::Delete,
            3 => Change::Update(Wire::read(reader)?),
            _ => return Err(reader.damaged("name a change that is not known")),
        })
    }
}

impl Wire for Operation {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Operation::Get(key) => {
                out.push(0);
                key.write(out);
            }
            Operation::Write(key, change) => {
                out.push(1);
                key.write(out);
                change.write(out);
            }
            Operation::Scan(scan) => {
                out.push(2);
                scan.write(out);
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match reader.byte()? {
            0 => Operation::Get(Wire::read(reader)?),
            1 => Operation::Write(Wire::read(reader)?, Wire::read(reader)?),
            2 => Operation::Scan(Wire::read(reader)?),
            _ => return Err(reader.damaged("name an operation that is not known")),
        })
    }
}

impl Wire for Answer {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Answer::Value(value) => {
                out.push(0);
                value.write(out);
            }
            Answer::Done => out.push(1),
            Answer::Page(page) => {
                out.push(2);
                page.write(out);
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match reader.byte()? {
            0 => Answer::Value(Wire::read(reader)?),
            1 => Answer::Done,
            2 => Answer::Page(Wire::read(reader)?),
            _ => return Err(reader.damaged("name an answer that is not known")),
        })
    }
}

impl Wire for Request {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Request::Operations(operations) => {
                out.push(0);
                operations.write(out);
            }
            Request::Call {
                procedure,
                arguments,
                home,
            } => {
                out.push(1);
                procedure.write(out);
                arguments.write(out);
                home.write(out);
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match reader.byte()? {
            0 => Request::Operations(Wire::read(reader)?),
            1 => Request::Call {
                procedure: Wire::read(reader)?,
                arguments: Wire::read(reader)?,
                home: Wire::read(reader)?,
            },
            _ => return Err(reader.damaged("name a request that is not known")),
        })
    }
}

impl Wire for Filter {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Filter::Column {
                column,
                compare,
                value,
            } => {
                out.push(0);
                column.write(out);
                compare.write(out);
                value.write(out);
            }
            Filter::IsNull(column) => {
                out.push(1);
                column.write(out);
            }
            Filter::Prefix(column, prefix) => {
                out.push(2);
                column.write(out);
                prefix.write(out);
            }
            Filter::And(all) => {
                out.push(3);
                all.write(out);
            }
            Filter::Or(any) => {
                out.push(4);
                any.write(out);
            }
            Filter::Not(filter) => {
                out.push(5);
                filter.write(out);
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match reader.byte()? {
            0 => Filter::Column {
                column: Wire::read(reader)?,
                compare: Wire::read(reader)?,
                value: Wire::read(reader)?,
            },
            1 => Filter::IsNull(Wire::read(reader)?),
            2 => Filter::Prefix(Wire::read(reader)?, Wire::read(reader)?),
            3 => Filter::And(reader.nested()?),
            4 => Filter::Or(reader.nested()?),
            5 => Filter::Not(Box::new(reader.nested()?)),
            _ => return Err(reader.damaged("name a condition that is not known")),
        })
    }
}
