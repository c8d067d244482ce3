//! Stock Level (clause 2.8.2): counts the items in a district's last 20 orders whose stock is low.

use dyno_txn_api::{Operations, Result, Row, Scan, ValueRef, encode_row};

use super::{all, present};
use crate::input::StockLevel;
use crate::schema::{Keys, Layout, Tables, district_order, each_line, key, order_line, stock};

/// How many of the last orders count.
const ORDERS: u32 = 20;

pub(super) fn run(
    transaction: &mut dyn Operations,
    tables: &Tables,
    input: &StockLevel,
) -> Result<Vec<u8>> {
    let home = [input.warehouse, input.district];
    let row = transaction.get(tables.district_order, &key(&home))?;
    let next = present(row.as_deref(), "district", &home)?.u64(district_order::NEXT)? as u32;
    let from = key(&[home[0], home[1], next.saturating_sub(ORDERS)]);
    let until = key(&[home[0], home[1], next]);
    // Lines of consecutive orders are consecutive rows, so one range has them all.
    let scan = Scan::range(tables.order_line, from, Some(until));
    let mut items = Vec::new();
    match tables.layout {
        Layout::Packed => {
            for found in all(transaction, scan)? {
                each_line(tables.layout, &found.key, &found.value, |line| {
                    items.push(line.item);
                    Ok(())
                })?;
            }
        }
        Layout::Rows => {
            for line in all(transaction, scan.columns(&[order_line::ITEM]))? {
                items.push(Row::parse(&line.value)?.u64(0)? as u32);
            }
        }
    }
    items.sort_unstable();
    // Each item counts once (clause 2.8.2.2), and its stock is read once.
    items.dedup();
    let mut keys = Keys::with_capacity(items.len());
    for item in &items {
        keys.push(tables.stock, &[home[0], *item]);
    }
    let rows = keys.get(transaction)?;
    let mut short = 0;
    for (item, row) in items.iter().zip(rows.iter()) {
        let quantity = present(row, "stock", &[home[0], *item])?.i64(stock::QUANTITY)?;
        short += u64::from(quantity < i64::from(input.threshold));
    }
    Ok(encode_row(&[ValueRef::U64(short)]))
}
