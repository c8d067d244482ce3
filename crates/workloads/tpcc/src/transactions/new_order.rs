//! New Order (clause 2.4.2): all rows it needs are known from its input, so it reads once and writes once.

use dyno_txn_api::{
    Assignment, Change, Error, Key, Operations, Result, Row, TableId, ValueRef, encode_row,
};

use super::{place, present};
use crate::input::{Line, NewOrder};
use crate::rows::{Order, OrderLine, Waiting};
use crate::schema::{Stored, Tables, customer, district_order, item, key, stock, warehouse};

/// Reads at the front of the batch: warehouse, district, customer.
const FIXED: usize = 3;

/// What a stock row is changed to while lines are gone through.
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
    let (mut items, mut stocks) = (Vec::new(), Vec::new());
    let places: Vec<Place> = input
        .lines
        .iter()
        .map(|line| Place {
            item: place(&mut items, line.item),
            stock: place(&mut stocks, [line.supply, line.item]),
        })
        .collect();
    let rows = read(transaction, tables, input, &items, &stocks)?;
    let (fixed, rest) = rows.split_at(FIXED);
    let (item_rows, stock_rows) = rest.split_at(items.len());
    if item_rows.iter().any(Option::is_none) {
        return Err(Error::user_abort("item number is not valid"));
    }
    let at_warehouse = present(&fixed[0], "warehouse", &home[..1])?;
    let at_district = present(&fixed[1], "district", &home)?;
    let buyer = present(&fixed[2], "customer", &[home[0], home[1], input.customer])?;
    let number = at_district.u64(district_order::NEXT)? as u32;

    let mut writes = order_rows(tables, input, number, &at_district)?;
    let mut sold: Vec<Option<Sold>> = stocks.iter().map(|_| None).collect();
    let (mut total, mut shown) = (0, Vec::new());
    for ((at, line), place) in input.lines.iter().enumerate().zip(places) {
        let rows = LineRows {
            item: present(&item_rows[place.item], "item", &[line.item])?,
            stock: present(&stock_rows[place.stock], "stock", &stocks[place.stock])?,
        };
        let left = sell(&mut sold[place.stock], &rows.stock, line, input.warehouse)?;
        let stored = rows.order_line(input, number, at)?;
        total += stored.amount;
        shown.extend([
            ValueRef::I64(left),
            ValueRef::I64(stored.amount),
            ValueRef::Text(rows.brand()?),
        ]);
        inserts(&stored, tables, &mut writes);
    }
    let sold = stocks.iter().zip(sold);
    writes.extend(sold.filter_map(|(at, sold)| Some(sold?.update(tables.stock, at))));
    transaction.write_many(writes)?;

    let tax = at_warehouse.u64(warehouse::TAX)? + at_district.u64(district_order::TAX)?;
    let discount = buyer.u64(customer::DISCOUNT)?;
    let mut screen = vec![
        ValueRef::U64(u64::from(number)),
        ValueRef::I64(charged(total, discount, tax)),
        ValueRef::Text(buyer.text(customer::LAST)?),
        ValueRef::Text(buyer.text(customer::CREDIT)?),
        ValueRef::U64(discount),
        ValueRef::U64(tax),
    ];
    screen.extend(shown);
    Ok(encode_row(&screen))
}

/// Where a line's rows are among those that were read.
struct Place {
    item: usize,
    stock: usize,
}

/// What was read for a line.
struct LineRows<'a> {
    item: Row<'a>,
    stock: Row<'a>,
}

impl LineRows<'_> {
    fn order_line(&self, input: &NewOrder, order: u32, at: usize) -> Result<OrderLine> {
        let line = input.lines[at];
        let district = stock::DISTRICT_1 + input.district as u16 - 1;
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
            info: self.stock.text(district)?.to_owned(),
        })
    }

    /// B when item and stock both say that they are original, else G (clause 2.4.2.2).
    fn brand(&self) -> Result<&'static str> {
        let original = self.item.text(item::DATA)?.contains("ORIGINAL")
            && self.stock.text(stock::DATA)?.contains("ORIGINAL");
        Ok(if original { "B" } else { "G" })
    }
}

fn read(
    transaction: &mut dyn Operations,
    tables: &Tables,
    input: &NewOrder,
    items: &[u32],
    stocks: &[[u32; 2]],
) -> Result<Vec<Option<Vec<u8>>>> {
    let mut keys: Vec<(TableId, Vec<u8>)> = vec![
        (tables.warehouse, key(&[input.warehouse])),
        (
            tables.district_order,
            key(&[input.warehouse, input.district]),
        ),
        (
            tables.customer,
            key(&[input.warehouse, input.district, input.customer]),
        ),
    ];
    keys.extend(items.iter().map(|item| (tables.item, key(&[*item]))));
    keys.extend(stocks.iter().map(|at| (tables.stock, key(at))));
    let keys: Vec<(TableId, &[u8])> = keys.iter().map(|(table, key)| (*table, &**key)).collect();
    transaction.get_many(&keys)
}

/// The district's next number, the order, and that it is to be delivered.
fn order_rows(
    tables: &Tables,
    input: &NewOrder,
    number: u32,
    district: &Row<'_>,
) -> Result<Vec<(Key, Change)>> {
    let next = encode_row(&[
        district.get(district_order::TAX)?,
        ValueRef::U64(u64::from(number) + 1),
    ]);
    let at = key(&[input.warehouse, input.district]);
    let mut writes = vec![(Key::new(tables.district_order, at), Change::Put(next))];
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
    inserts(&order, tables, &mut writes);
    let waiting = Waiting {
        warehouse: input.warehouse,
        district: input.district,
        order: number,
    };
    inserts(&waiting, tables, &mut writes);
    Ok(writes)
}

fn inserts(row: &dyn Stored, tables: &Tables, writes: &mut Vec<(Key, Change)>) {
    let mut stored = Vec::with_capacity(1);
    row.store(tables, &mut stored);
    writes.extend(
        stored
            .into_iter()
            .map(|(key, value)| (key, Change::Insert(value))),
    );
}

/// Takes a line's quantity from the stock (clause 2.4.2.2); what is left.
fn sell(sold: &mut Option<Sold>, stock: &Row<'_>, line: &Line, home: u32) -> Result<i64> {
    let sold = match sold {
        Some(sold) => sold,
        None => sold.insert(Sold::of(stock)?),
    };
    let quantity = i64::from(line.quantity);
    let enough = sold.quantity >= quantity + 10;
    sold.quantity += if enough { -quantity } else { 91 - quantity };
    sold.ytd += u64::from(line.quantity);
    sold.orders += 1;
    sold.remote += u64::from(line.supply != home);
    Ok(sold.quantity)
}

impl Sold {
    fn of(row: &Row<'_>) -> Result<Sold> {
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

/// The sum of the lines after discount and with taxes (clause 2.4.2.2), in cents; rates are hundredths of a percent.
fn charged(total: i64, discount: u64, tax: u64) -> i64 {
    let factor = i128::from(10_000 - discount as i64) * i128::from(10_000 + tax as i64);
    (i128::from(total) * factor / 100_000_000) as i64
}
