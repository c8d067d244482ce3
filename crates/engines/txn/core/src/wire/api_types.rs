//! The api's types on the wire.

use dyno_txn_api::{
    Answer, Assign, Assignment, Change, Code, Column, Committed, Compare, Continuation, Direction,
    Error, Filter, IndexDef, Key, Kind, Operation, Page, Partitioning, Request, Result, Retry,
    Scan, ScanRow, Table, TableDef, TableId, Value,
};
use dyno_wire::Wire;

use super::{Reader, Txn, wire_enum, wire_struct, write_bytes};

wire_struct!(Txn: TableId { 0 });
wire_struct!(Txn: Continuation { 0 });
wire_struct!(Txn: Key { table, bytes });
wire_struct!(Txn: ScanRow { key, value });
wire_struct!(Txn: Page { rows, next });
wire_struct!(Txn: Column { name, kind, nullable });
wire_struct!(Txn: IndexDef { name, columns, shared_prefix });
wire_struct!(Txn: TableDef { name, partitioning, columns, indexes });
wire_struct!(Txn: Table { id, def });
wire_struct!(Txn: Assignment { column, assign });
wire_struct!(Txn: Committed { timestamp, answers, returned });
wire_struct!(Txn: Scan {
    table, index, start, end, direction, limit, filter, projection, after
});

wire_enum!(Txn: Kind { 1 U64, 2 I64, 3 F64, 4 Text, 5 Bytes });
wire_enum!(Txn: Direction { 0 Forward, 1 Backward });
wire_enum!(Txn: Compare {
    0 Equal, 1 NotEqual, 2 Less, 3 LessOrEqual, 4 Greater, 5 GreaterOrEqual
});
wire_enum!(Txn: Assign { 0 Set(value), 1 Add(value) });
wire_enum!(Txn: Retry { 0 Safe, 1 Never, 2 Unknown });
wire_enum!(Txn: Value {
    0 Null, 1 U64(value), 2 I64(value), 3 F64(value), 4 Text(value), 5 Bytes(value)
});
wire_enum!(Txn: Partitioning { 0 Hash { prefix }, 1 Range { splits } });
wire_enum!(Txn: Change { 0 Put(value), 1 Insert(value), 2 Delete, 3 Update(columns) });
wire_enum!(Txn: Operation { 0 Get(key), 1 Write(key, change), 2 Scan(scan) });
wire_enum!(Txn: Answer { 0 Value(value), 1 Done, 2 Page(page) });
wire_enum!(Txn: Request { 0 Operations(operations), 1 Call { procedure, arguments, home } });

impl Wire<Txn> for Error {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.kind().number());
        self.retry().write(out);
        write_bytes(self.text().as_bytes(), out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let number = reader.byte()?;
        let Some(code) = Code::numbered(number) else {
            return Err(reader.damaged("name an error that is not known"));
        };
        let retry = Retry::read(reader)?;
        Ok(Error::with_retry(code, retry, String::read(reader)?))
    }
}

// By hand, because a condition may contain conditions, and a reader bounds their depth.
impl Wire<Txn> for Filter {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Filter::Column {
                column,
                compare,
                value,
            } => {
                out.push(0);
                Wire::<Txn>::write(column, out);
                Wire::<Txn>::write(compare, out);
                Wire::<Txn>::write(value, out);
            }
            Filter::IsNull(column) => {
                out.push(1);
                Wire::<Txn>::write(column, out);
            }
            Filter::Prefix(column, prefix) => {
                out.push(2);
                Wire::<Txn>::write(column, out);
                Wire::<Txn>::write(prefix, out);
            }
            Filter::And(all) => {
                out.push(3);
                Wire::<Txn>::write(all, out);
            }
            Filter::Or(any) => {
                out.push(4);
                Wire::<Txn>::write(any, out);
            }
            Filter::Not(filter) => {
                out.push(5);
                filter.as_ref().write(out);
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
