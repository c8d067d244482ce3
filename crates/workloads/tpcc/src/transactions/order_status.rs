//! Order Status (clause 2.6.2): the customer's last order and its lines.

use dyno_txn_api::{Operations, Result, Row, Scan, TupleReader, ValueRef, encode_row};

use super::{all, customer as customers};
use crate::input::OrderStatus;
use crate::schema::{ORDER_BY_CUSTOMER, Tables, customer, key, order, order_line};

pub(super) fn run(
    transaction: &mut dyn Operations,
    tables: &Tables,
    input: &OrderStatus,
) -> Result<Vec<u8>> {
    let wanted = &input.customer;
    let answer = transaction.run(&[customers::find(tables, wanted)])?;
    let answer = answer.into_iter().next();
    let found = customers::found(wanted, answer.unwrap_or(dyno_txn_api::Answer::Done))?;
    let row = Row::parse(&found.row)?;
    let of_customer = key(&[wanted.warehouse, wanted.district, found.id]);
    let last = transaction.scan(
        &Scan::prefix(tables.order, of_customer)
            .index(ORDER_BY_CUSTOMER)
            .backward()
            .limit(1),
    )?;
    let mut screen = vec![
        ValueRef::U64(u64::from(found.id)),
        ValueRef::Text(row.text(customer::LAST)?),
        ValueRef::I64(row.i64(customer::BALANCE)?),
    ];
    // In the population every customer has an order.
    let Some(last) = last.rows.first() else {
        return Ok(encode_row(&screen));
    };
    let order_row = Row::parse(&last.value)?;
    let mut at = TupleReader::new(&last.key);
    let (_, _, number) = (at.u64()?, at.u64()?, at.u64()?);
    screen.extend([
        ValueRef::U64(number),
        ValueRef::I64(order_row.i64(order::ENTERED)?),
        order_row.get(order::CARRIER)?,
    ]);
    let lines = all(
        transaction,
        Scan::prefix(tables.order_line, last.key.clone()),
    )?;
    for line in &lines {
        let line = Row::parse(&line.value)?;
        for column in [
            order_line::ITEM,
            order_line::SUPPLY,
            order_line::QUANTITY,
            order_line::AMOUNT,
            order_line::DELIVERED,
        ] {
            screen.push(line.get(column)?);
        }
    }
    Ok(encode_row(&screen))
}
