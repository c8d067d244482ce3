//! Order Status (clause 2.6.2): the customer's last order and its lines.

use dyno_txn_api::{Answer, Key, Operation, Operations, Result, Row, Scan, ValueRef, encode_row};

use super::{customer as customers, present};
use crate::input::OrderStatus;
use crate::schema::{
    ORDER_BY_CUSTOMER, Tables, customer, customer_sums, each_line, find_lines, key, lines_found,
    numbers_of, order,
};

pub(super) fn run(
    transaction: &mut dyn Operations,
    tables: &Tables,
    input: &OrderStatus,
) -> Result<Vec<u8>> {
    let wanted = &input.customer;
    let answer = transaction.run(&[customers::find(tables, wanted)])?;
    let answer = answer.into_iter().next();
    let found = customers::found(wanted, answer.unwrap_or(Answer::Done))?;
    let row = Row::parse(&found.row)?;
    let of_customer = key(&[wanted.warehouse, wanted.district, found.id]);
    let last = Scan::prefix(tables.order, of_customer.clone())
        .index(ORDER_BY_CUSTOMER)
        // The index ends with the order's number, so the last order comes first.
        .backward()
        .limit(1);
    let answers = transaction.run(&[
        Operation::Get(Key::new(tables.customer_sums, of_customer)),
        Operation::Scan(last),
    ])?;
    let mut answers = answers.into_iter();
    let mut next = || answers.next().unwrap_or(Answer::Done);
    let (sums, last) = (next().value()?, next().page()?);
    let of = [wanted.warehouse, wanted.district, found.id];
    let mut screen = vec![
        ValueRef::U64(u64::from(found.id)),
        ValueRef::Text(row.text(customer::LAST)?),
        ValueRef::I64(present(sums.as_deref(), "customer", &of)?.i64(customer_sums::BALANCE)?),
    ];
    // In the initial population every customer has an order.
    let Some(last) = last.rows.first() else {
        return Ok(encode_row(&screen));
    };
    let order_row = Row::parse(&last.value)?;
    let [_, _, number, _] = numbers_of(&last.key);
    screen.extend([
        ValueRef::U64(u64::from(number)),
        ValueRef::I64(order_row.i64(order::ENTERED)?),
        order_row.get(order::CARRIER)?,
    ]);
    let answer = transaction.run(&[find_lines(tables, &last.key)])?;
    let answer = answer.into_iter().next();
    // The lines of an order are far fewer than a page holds.
    for found in lines_found(&last.key, answer.unwrap_or(Answer::Done))? {
        each_line(tables.layout, &found.key, &found.value, |line| {
            screen.extend([
                ValueRef::U64(line.item.into()),
                ValueRef::U64(line.supply.into()),
                ValueRef::U64(line.quantity.into()),
                ValueRef::I64(line.amount),
                line.delivered.map_or(ValueRef::Null, ValueRef::I64),
            ]);
            Ok(())
        })?;
    }
    Ok(encode_row(&screen))
}
