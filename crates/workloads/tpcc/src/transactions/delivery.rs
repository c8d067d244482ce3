//! Delivery (clause 2.7.4): the oldest waiting order of each district, all in one transaction,
//! which the clause allows. A district without one is skipped.

use dyno_txn_api::{
    Answer, Assignment, Change, Key, Operation, Operations, Result, Row, Scan, ValueRef, encode_row,
};

use super::present;
use crate::input::Delivery;
use crate::schema::{Tables, customer_sums, key, numbers_of, order, order_line};

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
                Operation::Scan(Scan::prefix(tables.order_line, at.clone())),
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
    for line in lines.page()?.rows {
        amount += Row::parse(&line.value)?.i64(order_line::AMOUNT)?;
        let delivered = vec![Assignment::set(order_line::DELIVERED, input.delivered_ms)];
        let line = Key::new(tables.order_line, line.key);
        writes.push((line, Change::Update(delivered)));
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
