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
            fn put(&self, out: &mut Vec<u8>) {
                out.push(match self { $($name::$variant => $tag),+ });
            }
            fn take(reader: &mut Reader<'_>) -> Result<Self> {
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
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $($name::$variant(value) => {
                        out.push($tag);
                        value.put(out);
                    })+
                }
            }
            fn take(reader: &mut Reader<'_>) -> Result<Self> {
                Ok(match reader.byte()? {
                    $($tag => $name::$variant(Wire::take(reader)?),)+
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
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(TableId(u32::take(reader)?))
    }
}

impl Wire for Continuation {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(Continuation(Vec::take(reader)?))
    }
}

impl Wire for Error {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(self.kind().number());
        out.push(match self.retry() {
            Retry::Safe => 0,
            Retry::Never => 1,
            Retry::Unknown => 2,
        });
        self.text().to_owned().put(out);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
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
        Ok(Error::with_retry(code, retry, String::take(reader)?))
    }
}

impl Wire for Value {
    fn put(&self, out: &mut Vec<u8>) {
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
            Value::U64(value) => value.put(out),
            Value::I64(value) => value.put(out),
            Value::F64(value) => value.put(out),
            Value::Text(value) => value.put(out),
            Value::Bytes(value) => value.put(out),
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match reader.byte()? {
            0 => Value::Null,
            1 => Value::U64(Wire::take(reader)?),
            2 => Value::I64(Wire::take(reader)?),
            3 => Value::F64(Wire::take(reader)?),
            4 => Value::Text(Wire::take(reader)?),
            5 => Value::Bytes(Wire::take(reader)?),
            _ => return Err(reader.damaged("name a kind of value that is not known")),
        })
    }
}

impl Wire for Partitioning {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Partitioning::Hash { prefix } => {
                out.push(0);
                prefix.put(out);
            }
            Partitioning::Range { splits } => {
                out.push(1);
                splits.put(out);
            }
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match reader.byte()? {
            0 => Partitioning::Hash {
                prefix: Wire::take(reader)?,
            },
            1 => Partitioning::Range {
                splits: Wire::take(reader)?,
            },
            _ => return Err(reader.damaged("name a partitioning that is not known")),
        })
    }
}

impl Wire for Change {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Change::Put(value) => {
                out.push(0);
                value.put(out);
            }
            Change::Insert(value) => {
                out.push(1);
                value.put(out);
            }
            Change::Delete => out.push(2),
            Change::Update(columns) => {
                out.push(3);
                columns.put(out);
            }
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match reader.byte()? {
            0 => Change::Put(Wire::take(reader)?),
            1 => Change::Insert(Wire::take(reader)?),
            2 => Change::Delete,
            3 => Change::Update(Wire::take(reader)?),
            _ => return Err(reader.damaged("name a change that is not known")),
        })
    }
}

impl Wire for Operation {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Operation::Get(key) => {
                out.push(0);
                key.put(out);
            }
            Operation::Write(key, change) => {
                out.push(1);
                key.put(out);
                change.put(out);
            }
            Operation::Scan(scan) => {
                out.push(2);
                scan.put(out);
            }
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match reader.byte()? {
            0 => Operation::Get(Wire::take(reader)?),
            1 => Operation::Write(Wire::take(reader)?, Wire::take(reader)?),
            2 => Operation::Scan(Wire::take(reader)?),
            _ => return Err(reader.damaged("name an operation that is not known")),
        })
    }
}

impl Wire for Answer {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Answer::Value(value) => {
                out.push(0);
                value.put(out);
            }
            Answer::Done => out.push(1),
            Answer::Page(page) => {
                out.push(2);
                page.put(out);
            }
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match reader.byte()? {
            0 => Answer::Value(Wire::take(reader)?),
            1 => Answer::Done,
            2 => Answer::Page(Wire::take(reader)?),
            _ => return Err(reader.damaged("name an answer that is not known")),
        })
    }
}

impl Wire for Request {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Request::Operations(operations) => {
                out.push(0);
                operations.put(out);
            }
            Request::Call {
                procedure,
                arguments,
                home,
            } => {
                out.push(1);
                procedure.put(out);
                arguments.put(out);
                home.put(out);
            }
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match reader.byte()? {
            0 => Request::Operations(Wire::take(reader)?),
            1 => Request::Call {
                procedure: Wire::take(reader)?,
                arguments: Wire::take(reader)?,
                home: Wire::take(reader)?,
            },
            _ => return Err(reader.damaged("name a request that is not known")),
        })
    }
}

impl Wire for Filter {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Filter::Column {
                column,
                compare,
                value,
            } => {
                out.push(0);
                column.put(out);
                compare.put(out);
                value.put(out);
            }
            Filter::IsNull(column) => {
                out.push(1);
                column.put(out);
            }
            Filter::Prefix(column, prefix) => {
                out.push(2);
                column.put(out);
                prefix.put(out);
            }
            Filter::And(all) => {
                out.push(3);
                all.put(out);
            }
            Filter::Or(any) => {
                out.push(4);
                any.put(out);
            }
            Filter::Not(filter) => {
                out.push(5);
                filter.put(out);
            }
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match reader.byte()? {
            0 => Filter::Column {
                column: Wire::take(reader)?,
                compare: Wire::take(reader)?,
                value: Wire::take(reader)?,
            },
            1 => Filter::IsNull(Wire::take(reader)?),
            2 => Filter::Prefix(Wire::take(reader)?, Wire::take(reader)?),
            3 => Filter::And(reader.nested()?),
            4 => Filter::Or(reader.nested()?),
            5 => Filter::Not(Box::new(reader.nested()?)),
            _ => return Err(reader.damaged("name a condition that is not known")),
        })
    }
}
