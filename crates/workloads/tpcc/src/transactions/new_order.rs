//! New Order (clause 2.4.2). Its input determines all rows that it needs, so it reads once and
//! writes once. It takes the district's next order number together with the reads. Every order of
//! the district needs that number, so a second transaction waits there.

use dyno_txn_api::{
    Assignment, Change, Error, Key, Operations, Result, Row, Rows, TableId, ValueRef, encode_row,
};

use super::{place, present};
use crate::input::{Line, NewOrder};
use crate::rows::{Order, OrderLine, Waiting};
use crate::schema::{
    Keys, Stored, Tables, customer, district_order, item, key, stock, stock_info, warehouse,
};

/// Reads at the beginning of the batch: warehouse, district, customer.
const FIXED: usize = 3;
/// Values that the terminal shows of the order, and of each line. Those of the order come first,
/// but are filled in last, because the total is known only after all lines.
const SHOWN: usize = 6;
const SHOWN_OF_LINE: usize = 3;

/// The new values of a stock row, while the lines are processed.
struct Sold {
    quantity: i64,
    ytd: u64,
    orders: u64,
    remote: u64,
}

pub(super) fn run(
    transaction: &mut dyn Operations,
    tables: &Tables,
    input: &NewOrder,
) -> Result<Vec<u8>> {
    let home = [input.warehouse, input.district];
    let most = input.lines.len();
    let (mut items, mut stocks) = (Vec::with_capacity(most), Vec::with_capacity(most));
    let row_indexes: Vec<RowIndexes> = input
        .lines
        .iter()
        .map(|line| RowIndexes {
            item: place(&mut items, line.item),
            stock: place(&mut stocks, [line.supply, line.item]),
        })
        .collect();
    let rows = read(transaction, tables, input, &items, &stocks)?;
    let stocks_at = FIXED + items.len();
    let infos_at = stocks_at + stocks.len();
    if (FIXED..stocks_at).any(|at| rows.get(at).is_none()) {
        // By clause 2.4.2.3 this is a rollback and not a failure. It comes after the reads for all
        // lines, which the clause demands.
        return Err(Error::user_abort("item number is not valid"));
    }
    let at_warehouse = present(rows.get(0), "warehouse", &home[..1])?;
    let at_district = present(rows.get(1), "district", &home)?;
    let buyer = present(rows.get(2), "customer", &[home[0], home[1], input.customer])?;
    // The number was read after its own change in this transaction.
    let number = at_district.u64(district_order::NEXT)? as u32 - 1;

    let mut writes = order_rows(tables, input, number);
    let mut sold: Vec<Option<Sold>> = stocks.iter().map(|_| None).collect();
    let (mut total, mut lines) = (0, Vec::with_capacity(most));
    let mut shown = Vec::with_capacity(SHOWN + SHOWN_OF_LINE * most);
    shown.resize(SHOWN, ValueRef::Null);
    for ((at, line), place) in input.lines.iter().enumerate().zip(row_indexes) {
        let stock =
            |from: usize| present(rows.get(from + place.stock), "stock", &stocks[place.stock]);
        let numbers = stock(stocks_at)?;
        let rows = LineRows {
            item: present(rows.get(FIXED + place.item), "item", &[line.item])?,
            stock: stock(infos_at)?,
        };
        let left = sell(&mut sold[place.stock], &numbers, line, input.warehouse)?;
        let line = rows.order_line(input, number, at)?;
        total += line.amount;
        shown.extend([
            ValueRef::I64(left),
            ValueRef::I64(line.amount),
            ValueRef::Text(rows.brand()?),
        ]);
        lines.push(line);
    }
    inserts(&lines, tables, &mut Vec::new(), &mut writes);
    let sold = stocks.iter().zip(sold);
    writes.extend(sold.filter_map(|(at, sold)| Some(sold?.update(tables.stock, at))));
    transaction.write_many(writes)?;

    let tax = at_warehouse.u64(warehouse::TAX)? + at_district.u64(district_order::TAX)?;
    let discount = buyer.u64(customer::DISCOUNT)?;
    shown[..SHOWN].copy_from_slice(&[
        ValueRef::U64(u64::from(number)),
        ValueRef::I64(charged(total, discount, tax)),
        ValueRef::Text(buyer.text(customer::LAST)?),
        ValueRef::Text(buyer.text(customer::CREDIT)?),
        ValueRef::U64(discount),
        ValueRef::U64(tax),
    ]);
    Ok(encode_row(&shown))
}

/// Where the rows of a line are among the rows that were read.
struct RowIndexes {
    item: usize,
    stock: usize,
}

/// The rows that were read for a line.
struct LineRows<'a> {
    item: Row<'a>,
    /// The text columns of STOCK.
    stock: Row<'a>,
}

impl<'a> LineRows<'a> {
    fn order_line(&self, input: &NewOrder, order: u32, at: usize) -> Result<OrderLine<'a>> {
        let line = input.lines[at];
        let district = stock_info::DISTRICT_1 + input.district as u16 - 1;
        Ok(OrderLine {
            warehouse: input.warehouse,
            district: input.district,
            order,
            number: at as u32 + 1,
            item: line.item,
            supply: line.supply,
            delivered: None,
            quantity: line.quantity,
            amount: self.item.i64(item::PRICE)? * i64::from(line.quantity),
            info: self.stock.text(district)?.into(),
        })
    }

    /// `B` if both item and stock contain ORIGINAL, else `G` (clause 2.4.2.2).
    fn brand(&self) -> Result<&'static str> {
        let original = has_original(self.item.text_bytes(item::DATA)?)
            && has_original(self.stock.text_bytes(stock_info::DATA)?);
        Ok(if original { "B" } else { "G" })
    }
}

fn has_original(data: &[u8]) -> bool {
    const WORD: &[u8] = b"ORIGINAL";
    let mut begins = (0..data.len()).filter(|at| data[*at] == WORD[0]);
    begins.any(|at| data[at..].starts_with(WORD))
}

fn read(
    transaction: &mut dyn Operations,
    tables: &Tables,
    input: &NewOrder,
    items: &[u32],
    stocks: &[[u32; 2]],
) -> Result<Rows> {
    let home = [input.warehouse, input.district, input.customer];
    let mut keys = Keys::with_capacity(FIXED + items.len() + 2 * stocks.len());
    keys.push(tables.warehouse, &home[..1]);
    keys.push(tables.district_order, &home[..2]);
    keys.push(tables.customer, &home);
    for item in items {
        keys.push(tables.item, &[*item]);
    }
    for table in [tables.stock, tables.stock_info] {
        for at in stocks {
            keys.push(table, at);
        }
    }
    let next = vec![Assignment::add(district_order::NEXT, 1u64)];
    let district = Key::new(tables.district_order, key(&home[..2]));
    keys.get_after((district, Change::Update(next)), transaction)
}

/// The writes of the order, of its row in NEW-ORDER, and of its lines.
fn order_rows(tables: &Tables, input: &NewOrder, number: u32) -> Vec<(Key, Change)> {
    // The order, its row in NEW-ORDER, and for each line its row and its stock.
    let mut writes = Vec::with_capacity(2 + 2 * input.lines.len());
    let order = Order {
        warehouse: input.warehouse,
        district: input.district,
        id: number,
        customer: input.customer,
        entered: input.entered_ms,
        carrier: None,
        lines: input.lines.len() as u32,
        all_local: input
            .lines
            .iter()
            .all(|line| line.supply == input.warehouse),
    };
    let mut stored = Vec::new();
    inserts(&order, tables, &mut stored, &mut writes);
    let waiting = Waiting {
        warehouse: input.warehouse,
        district: input.district,
        order: number,
    };
    inserts(&waiting, tables, &mut stored, &mut writes);
    writes
}

/// Appends the inserts of a row. `stored` is scratch space, empty before and after.
fn inserts(
    row: &dyn Stored,
    tables: &Tables,
    stored: &mut Vec<(Key, Vec<u8>)>,
    writes: &mut Vec<(Key, Change)>,
) {
    row.store(tables, stored);
    let inserts = stored.drain(..);
    writes.extend(inserts.map(|(key, value)| (key, Change::Insert(value))));
}

/// Takes a line's quantity from the stock (clause 2.4.2.2) and returns what is left. An order may
/// have the same item twice: the second line continues from what the first one left.
fn sell(sold: &mut Option<Sold>, stock: &Row<'_>, line: &Line, home: u32) -> Result<i64> {
    let sold = match sold {
        Some(sold) => sold,
        None => sold.insert(Sold::from_row(stock)?),
    };
    let quantity = i64::from(line.quantity);
    // By clause 2.4.2.2 the stock is refilled by 91 if fewer than 10 would be left.
    let enough = sold.quantity >= quantity + 10;
    sold.quantity += if enough { -quantity } else { 91 - quantity };
    sold.ytd += u64::from(line.quantity);
    sold.orders += 1;
    sold.remote += u64::from(line.supply != home);
    Ok(sold.quantity)
}

impl Sold {
    fn from_row(row: &Row<'_>) -> Result<Sold> {
        Ok(Sold {
            quantity: row.i64(stock::QUANTITY)?,
            ytd: row.u64(stock::YTD)?,
            orders: row.u64(stock::ORDERS)?,
            remote: row.u64(stock::REMOTE)?,
        })
    }

    fn update(&self, table: TableId, at: &[u32; 2]) -> (Key, Change) {
        let columns = vec![
            Assignment::set(stock::QUANTITY, self.quantity),
            Assignment::set(stock::YTD, self.ytd),
            Assignment::set(stock::ORDERS, self.orders),
            Assignment::set(stock::REMOTE, self.remote),
        ];
        (Key::new(table, key(at)), Change::Update(columns))
    }
}

/// The sum of the lines after discount and with taxes (clause 2.4.2.2), in cents. Rates are in
/// hundredths of a percent.
fn charged(total: i64, discount: u64, tax: u64) -> i64 {
    let factor = i128::from(10_000 - discount as i64) * i128::from(10_000 + tax as i64);
    // In 128 bits, because quantities come from clients and may be far above those of the
    // specification.
    (i128::from(total) * factor / 100_000_000) as i64
}
