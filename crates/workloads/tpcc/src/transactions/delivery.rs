//! Delivery (clause 2.7.4): the oldest waiting order of each district, all in one transaction,
//! which the clause allows. A district without one is skipped.

use dyno_txn_api::{
    Answer, Assignment, Change, Key, Operation, Operations, Result, Scan, ScanRow, ValueRef,
    encode_row,
};

use super::present;
use crate::input::Delivery;
use crate::rows::OrderLine;
use crate::schema::{
    Layout, Tables, customer_sums, each_line, find_lines, key, lines_found, numbers_of, order,
    order_line, pack,
};

/// Districts of a warehouse. One that a small database lacks has no waiting order.
const DISTRICTS: u32 = 10;

pub(super) fn run(
    transaction: &mut dyn Operations,
    tables: &Tables,
    input: &Delivery,
) -> Result<Vec<u8>> {
    let oldest: Vec<Operation> = (1..=DISTRICTS)
        .map(|district| {
            let prefix = key(&[input.warehouse, district]);
            Operation::Scan(Scan::prefix(tables.waiting, prefix).limit(1))
        })
        .collect();
    let mut orders = Vec::new();
    for answer in transaction.run(&oldest)? {
        orders.extend(answer.page()?.rows.into_iter().map(|row| row.key));
    }
    // All reads of all districts go in one call, and all writes in another one. With a call for
    // each district the transaction would take ten times as many round trips.
    let reads: Vec<Operation> = orders
        .iter()
        .flat_map(|at| {
            [
                Operation::Get(Key::new(tables.order, at.clone())),
                find_lines(tables, at),
            ]
        })
        .collect();
    let answers = transaction.run(&reads)?;
    let mut writes = Vec::new();
    let mut screen = vec![ValueRef::U64(u64::from(input.carrier))];
    let mut answers = answers.into_iter();
    for at in orders {
        let mut next = || answers.next().unwrap_or(Answer::Done);
        let (order, lines) = (next(), next());
        let number = deliver(tables, input, at, order, lines, &mut writes)?;
        screen.push(ValueRef::U64(number));
    }
    transaction.write_many(writes)?;
    Ok(encode_row(&screen))
}

/// Adds the writes for one order, and returns its number.
fn deliver(
    tables: &Tables,
    input: &Delivery,
    at: Vec<u8>,
    order: Answer,
    lines: Answer,
    writes: &mut Vec<(Key, Change)>,
) -> Result<u64> {
    let [warehouse, district, number, _] = numbers_of(&at);
    let row = order.value()?;
    let numbers = [warehouse, district, number];
    let buyer = present(row.as_deref(), "order", &numbers)?.u64(order::CUSTOMER)?;
    let mut amount = 0;
    for row in lines_found(&at, lines)? {
        amount += deliver_lines(tables, input, row, writes)?;
    }
    let carrier = vec![Assignment::set(order::CARRIER, u64::from(input.carrier))];
    writes.push((Key::new(tables.order, at.clone()), Change::Update(carrier)));
    // Two deliveries of one order conflict here, because both have read this row. So no order is
    // delivered twice.
    writes.push((Key::new(tables.waiting, at), Change::Delete));
    let of_customer = vec![
        Assignment::add(customer_sums::BALANCE, amount),
        Assignment::add(customer_sums::DELIVERIES, 1u64),
    ];
    let buyer = key(&[warehouse, district, buyer as u32]);
    writes.push((
        Key::new(tables.customer_sums, buyer),
        Change::Update(of_customer),
    ));
    Ok(u64::from(number))
}

/// Adds the write for the lines of a stored row, and returns the sum of their amounts.
fn deliver_lines(
    tables: &Tables,
    input: &Delivery,
    row: ScanRow,
    writes: &mut Vec<(Key, Change)>,
) -> Result<i64> {
    let mut lines = Vec::new();
    each_line(tables.layout, &row.key, &row.value, |line| {
        let delivered = Some(input.delivered_ms);
        lines.push(OrderLine { delivered, ..line });
        Ok(())
    })?;
    let amount = lines.iter().map(|line| line.amount).sum();
    let change = match tables.layout {
        Layout::Packed => Change::Put(pack(&lines)),
        Layout::Rows => Change::Update(vec![Assignment::set(
            order_line::DELIVERED,
            input.delivered_ms,
        )]),
    };
    writes.push((Key::new(tables.order_line, row.key), change));
    Ok(amount)
}
