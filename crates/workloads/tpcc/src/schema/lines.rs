//! The rows of ORDER-LINE: each a row of the engine, or all lines of an order in one value.
//!
//! A line is written once with its order, gets its time of delivery together with all others of the
//! order, and is always read together with them. So a key-value engine keeps them in one value, and
//! writes one key where there would be ten. Clause 1.4.1 allows such clustering, and no column is
//! left out. It is nevertheless not what clauses 1.4.8, 1.4.14 and 1.6 ask for, because the
//! transactions and not the engine find a column in the value. PostgreSQL keeps a row for each
//! line, as its users would.
//!
//! | bytes of a packed value | what |
//! |---|---|
//! | 0 | version, 1 |
//! | then, for each line: 1 | OL_NUMBER |
//! | 4, 4, 4 | OL_I_ID, OL_SUPPLY_W_ID, OL_QUANTITY |
//! | 8 | OL_AMOUNT, in cents |
//! | 1, and 8 if it is 1 | whether OL_DELIVERY_D is set, and OL_DELIVERY_D |
//! | 2, and as many | the length of OL_DIST_INFO, and OL_DIST_INFO |

use std::borrow::Cow;

use dyno_txn_api::{
    Answer, Code, Error, Key, Operation, Result, Row, Scan, ScanRow, TableId, Target, ValueRef,
    encode_row,
};
use dyno_wire::{Protocol, Reader, Wire, write_short};

use super::{Tables, key, numbers_of, order_line};
use crate::rows::OrderLine;

/// How the lines of an order are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// All lines of an order in one value.
    Packed,
    /// A row for each line, as databases before this layout have them too.
    Rows,
}

impl Layout {
    /// The layout of a new database at this address.
    pub fn for_target(target: &Target) -> Layout {
        match target {
            Target::Local(_) | Target::Dyno(_) | Target::Etcd(_) => Layout::Packed,
            Target::Postgres(_) => Layout::Rows,
        }
    }

    /// The name of the table of lines. It tells the layout of a database, so that no program takes
    /// values of one layout for those of the other.
    pub(super) fn table_name(self) -> &'static str {
        match self {
            Layout::Packed => "tpcc-order-lines-packed",
            Layout::Rows => "tpcc-order-line",
        }
    }
}

/// The version of packed values that this program writes, and the only one that it reads.
const VERSION: u8 = 1;

/// The protocol of packed values.
struct Packed;

impl Protocol for Packed {
    type Error = Error;

    fn damaged(what: &'static str, left_bytes: usize) -> Error {
        let text = format!("packed lines of an order {what}, {left_bytes} before their end");
        Error::new(Code::Damaged, text)
    }
}

/// The operation that reads the lines of the order with this key, for [`lines_found`].
pub fn find_lines(tables: &Tables, order: &[u8]) -> Operation {
    match tables.layout {
        Layout::Packed => Operation::Get(Key::new(tables.order_line, order)),
        Layout::Rows => Operation::Scan(Scan::prefix(tables.order_line, order.to_vec())),
    }
}

/// The stored rows in the answer to [`find_lines`].
pub fn lines_found(order: &[u8], answer: Answer) -> Result<Vec<ScanRow>> {
    Ok(match answer {
        Answer::Page(page) => page.rows,
        answer => {
            let key = order.to_vec();
            let found = answer.value()?.map(|value| ScanRow { key, value });
            found.into_iter().collect()
        }
    })
}

/// Calls a function with each line of a stored row, of which there is one unless lines are packed.
pub fn each_line<'a>(
    layout: Layout,
    key: &[u8],
    value: &'a [u8],
    mut line: impl FnMut(OrderLine<'a>) -> Result<()>,
) -> Result<()> {
    let at = numbers_of(key);
    match layout {
        Layout::Packed => unpack(at, value, line),
        Layout::Rows => line(from_row(at, &Row::parse(value)?)?),
    }
}

/// Appends the keys and values of the lines, which are those of one order.
pub(super) fn store(tables: &Tables, lines: &[OrderLine<'_>], out: &mut Vec<(Key, Vec<u8>)>) {
    match (tables.layout, lines.first()) {
        (_, None) => {}
        (Layout::Packed, Some(first)) => {
            let at = key(&[first.warehouse, first.district, first.order]);
            out.push((Key::new(tables.order_line, at), pack(lines)));
        }
        (Layout::Rows, _) => {
            out.extend(lines.iter().map(|line| as_row(tables.order_line, line)));
        }
    }
}

/// A line as a row of its own, which is also what a checksum of the database is made of.
pub fn as_row(table: TableId, line: &OrderLine<'_>) -> (Key, Vec<u8>) {
    let at = key(&[line.warehouse, line.district, line.order, line.number]);
    let row = encode_row(&[
        ValueRef::U64(line.item.into()),
        ValueRef::U64(line.supply.into()),
        ValueRef::U64(line.quantity.into()),
        ValueRef::I64(line.amount),
        line.delivered.map_or(ValueRef::Null, ValueRef::I64),
        ValueRef::Text(&line.info),
    ]);
    (Key::new(table, at), row)
}

fn from_row<'a>(at: [u32; 4], row: &Row<'a>) -> Result<OrderLine<'a>> {
    let [warehouse, district, order, number] = at;
    let count = |column| row.u64(column).map(|value| value as u32);
    Ok(OrderLine {
        warehouse,
        district,
        order,
        number,
        item: count(order_line::ITEM)?,
        supply: count(order_line::SUPPLY)?,
        delivered: match row.get(order_line::DELIVERED)? {
            ValueRef::Null => None,
            _ => Some(row.i64(order_line::DELIVERED)?),
        },
        quantity: count(order_line::QUANTITY)?,
        amount: row.i64(order_line::AMOUNT)?,
        info: Cow::Borrowed(row.text(order_line::INFO)?),
    })
}

/// Encodes the lines of one order as one value.
pub fn pack(lines: &[OrderLine<'_>]) -> Vec<u8> {
    /// The bytes of a delivered line of the specification.
    const LINE_BYTES: usize = 56;
    let mut out = Vec::with_capacity(1 + lines.len() * LINE_BYTES);
    out.push(VERSION);
    for line in lines {
        // An order has 15 lines at most, and its input says so.
        out.push(line.number as u8);
        Wire::<Packed>::write(&[line.item, line.supply, line.quantity], &mut out);
        Wire::<Packed>::write(&line.amount, &mut out);
        Wire::<Packed>::write(&line.delivered, &mut out);
        write_short(line.info.as_bytes(), &mut out);
    }
    out
}

fn unpack<'a>(
    [warehouse, district, order, _]: [u32; 4],
    bytes: &'a [u8],
    mut found: impl FnMut(OrderLine<'a>) -> Result<()>,
) -> Result<()> {
    let mut reader = Reader::<Packed>::new(bytes);
    let version = reader.byte()?;
    if version != VERSION {
        let text = format!("packed lines of version {version}: this program reads {VERSION}");
        return Err(Error::new(Code::NewerVersion, text));
    }
    let mut left = reader.rest();
    while !left.is_empty() {
        let mut reader = Reader::<Packed>::new(left);
        let number = reader.byte()?.into();
        let [item, supply, quantity] = Wire::<Packed>::read(&mut reader)?;
        let amount = Wire::<Packed>::read(&mut reader)?;
        let delivered = Wire::<Packed>::read(&mut reader)?;
        let info = std::str::from_utf8(reader.short()?);
        let info = info.map_err(|_| reader.damaged("hold text that is not UTF-8"))?;
        left = reader.rest();
        found(OrderLine {
            warehouse,
            district,
            order,
            number,
            item,
            supply,
            delivered,
            quantity,
            amount,
            info: Cow::Borrowed(info),
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Vec<OrderLine<'static>> {
        let line = |number, delivered| OrderLine {
            warehouse: 1,
            district: 2,
            order: 3,
            number,
            item: 4,
            supply: 5,
            delivered,
            quantity: 6,
            amount: -7,
            info: Cow::Borrowed("ab"),
        };
        // Number 2 is missing, and only one of the others is delivered: each line is a row of its
        // own for its readers, whatever the others are.
        vec![line(1, None), line(3, Some(8))]
    }

    fn read(layout: Layout, key: &[u8], value: &[u8]) -> Result<Vec<OrderLine<'static>>> {
        let mut all = Vec::new();
        each_line(layout, key, value, |line| {
            let info = Cow::Owned(line.info.into_owned());
            all.push(OrderLine { info, ..line });
            Ok(())
        })?;
        Ok(all)
    }

    /// The bytes of version 1, which databases have stored.
    #[test]
    fn packed_version_1_stays_what_it_is() {
        let bytes = pack(&lines());
        assert_eq!(
            bytes,
            b"\x01\x01\x04\0\0\0\x05\0\0\0\x06\0\0\0\xf9\xff\xff\xff\xff\xff\xff\xff\0\x02\0ab\
              \x03\x04\0\0\0\x05\0\0\0\x06\0\0\0\xf9\xff\xff\xff\xff\xff\xff\xff\
              \x01\x08\0\0\0\0\0\0\0\x02\0ab"
        );
        let at = key(&[1, 2, 3]);
        assert_eq!(read(Layout::Packed, &at, &bytes), Ok(lines()));
    }

    #[test]
    fn a_line_leads_back_from_its_row() {
        for line in lines() {
            let (at, row) = as_row(TableId(1), &line);
            assert_eq!(read(Layout::Rows, &at.bytes, &row), Ok(vec![line]));
        }
    }

    #[test]
    fn damaged_and_newer_values_are_refused() {
        let (at, bytes) = (key(&[1, 2, 3]), pack(&lines()));
        let first_line = pack(&lines()[..1]).len();
        for length in (0..bytes.len()).filter(|length| ![1, first_line].contains(length)) {
            let cut = read(Layout::Packed, &at, &bytes[..length]).expect_err("it is cut");
            assert_eq!(cut.kind(), Code::Damaged, "{length} bytes");
        }
        let newer = [&[2], &bytes[1..]].concat();
        let refused = read(Layout::Packed, &at, &newer).expect_err("a version to come");
        assert_eq!(refused.kind(), Code::NewerVersion);
    }
}
