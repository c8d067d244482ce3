//! Payment (clause 2.5.2). Sums are added to without being read.

use dyno_txn_api::{
    Assignment, Change, Key, Operation, Operations, Result, Row, ValueRef, encode_row,
};

use super::{customer as customers, present};
use crate::input::Payment;
use crate::rows::History;
use crate::schema::{Stored, Tables, customer, district, key, warehouse, ytd};

/// C_DATA holds so many characters.
const DATA_MAX: usize = 500;

pub(super) fn run(
    transaction: &mut dyn Operations,
    tables: &Tables,
    input: &Payment,
) -> Result<Vec<u8>> {
    let home = [input.warehouse, input.district];
    let mut answers = transaction
        .run(&[
            Operation::Get(Key::new(tables.warehouse, key(&home[..1]))),
            Operation::Get(Key::new(tables.district, key(&home))),
            customers::find(tables, &input.customer),
        ])?
        .into_iter();
    let mut next = || answers.next().unwrap_or(dyno_txn_api::Answer::Done);
    let (at_warehouse, at_district) = (next().value()?, next().value()?);
    let payer = customers::found(&input.customer, next())?;
    let at_warehouse = present(&at_warehouse, "warehouse", &home[..1])?;
    let at_district = present(&at_district, "district", &home)?;
    let row = Row::parse(&payer.row)?;

    let history = History {
        warehouse: input.warehouse,
        district: input.district,
        unique: input.unique,
        customer_warehouse: input.customer.warehouse,
        customer_district: input.customer.district,
        customer: payer.id,
        date: input.paid_ms,
        amount: input.amount,
        data: [
            at_warehouse.text(warehouse::NAME)?,
            "    ",
            at_district.text(district::NAME)?,
        ]
        .concat(),
    };
    let mut stored = Vec::with_capacity(1);
    history.store(tables, &mut stored);
    let mut writes: Vec<(Key, Change)> = stored
        .into_iter()
        .map(|(key, value)| (key, Change::Insert(value)))
        .collect();
    let sum = || Change::Update(vec![Assignment::add(ytd::YTD, input.amount)]);
    writes.push((Key::new(tables.warehouse_ytd, key(&home[..1])), sum()));
    writes.push((Key::new(tables.district_ytd, key(&home)), sum()));
    let at = [input.customer.warehouse, input.customer.district, payer.id];
    let columns = of_customer(input, payer.id, &row)?;
    writes.push((Key::new(tables.customer, key(&at)), Change::Update(columns)));
    transaction.write_many(writes)?;

    Ok(encode_row(&[
        ValueRef::U64(u64::from(payer.id)),
        ValueRef::Text(row.text(customer::FIRST)?),
        ValueRef::Text(row.text(customer::LAST)?),
        ValueRef::Text(row.text(customer::CREDIT)?),
        ValueRef::I64(row.i64(customer::BALANCE)? - input.amount),
        ValueRef::Text(at_warehouse.text(warehouse::STREET_1)?),
        ValueRef::Text(at_district.text(district::STREET_1)?),
    ]))
}

fn of_customer(input: &Payment, id: u32, row: &Row<'_>) -> Result<Vec<Assignment>> {
    let mut columns = vec![
        Assignment::set(
            customer::BALANCE,
            row.i64(customer::BALANCE)? - input.amount,
        ),
        Assignment::set(
            customer::YTD_PAYMENT,
            row.i64(customer::YTD_PAYMENT)? + input.amount,
        ),
        Assignment::set(customer::PAYMENTS, row.u64(customer::PAYMENTS)? + 1),
    ];
    if row.text(customer::CREDIT)? == "BC" {
        let mut data = format!(
            "{id} {} {} {} {} {} ",
            input.customer.district,
            input.customer.warehouse,
            input.district,
            input.warehouse,
            input.amount,
        );
        data.push_str(row.text(customer::DATA)?);
        data.truncate(DATA_MAX);
        columns.push(Assignment::set(customer::DATA, data));
    }
    Ok(columns)
}
