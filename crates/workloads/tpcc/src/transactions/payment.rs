//! Payment (clause 2.5.2). It adds to sums without reading them.

use dyno_txn_api::{
    Answer, Assignment, Key, Operation, Operations, Result, Row, ValueRef, encode_row,
};

use super::{customer as customers, present};
use crate::input::Payment;
use crate::rows::History;
use crate::schema::{Stored, Tables, customer, customer_sums, district, key, warehouse, ytd};

/// The most characters of C_DATA.
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
    let mut next = || answers.next().unwrap_or(Answer::Done);
    let (at_warehouse, at_district) = (next().value()?, next().value()?);
    let payer = customers::found(&input.customer, next())?;
    let at_warehouse = present(at_warehouse.as_deref(), "warehouse", &home[..1])?;
    let at_district = present(at_district.as_deref(), "district", &home)?;
    let row = Row::parse(&payer.row)?;

    let of = [input.customer.warehouse, input.customer.district, payer.id];
    let sums = Key::new(tables.customer_sums, key(&of));
    // The balance before the change, because reads go before writes.
    let mut operations = vec![Operation::Get(sums.clone())];
    let mut stored = Vec::with_capacity(1);
    history(input, payer.id, &at_warehouse, &at_district)?.store(tables, &mut stored);
    let inserts = stored.into_iter();
    operations.extend(inserts.map(|(key, value)| Operation::insert(key, value)));
    operations.push(Operation::update(sums, paid(input.amount)));
    if row.text(customer::CREDIT)? == "BC" {
        let at = Key::new(tables.customer, key(&of));
        let data = Assignment::set(customer::DATA, data_after(input, payer.id, &row)?);
        operations.push(Operation::update(at, vec![data]));
    }
    // Every payment of a district and warehouse changes these rows. They come last, so that they
    // are locked for the shortest time.
    let sum = || vec![Assignment::add(ytd::YTD, input.amount)];
    let at = Key::new(tables.district_ytd, key(&home));
    operations.push(Operation::update(at, sum()));
    let at = Key::new(tables.warehouse_ytd, key(&home[..1]));
    operations.push(Operation::update(at, sum()));
    // The commit goes with these operations where the engine allows it, which further shortens the
    // time for which the sums are locked.
    let before = transaction.run_last(&operations)?.into_iter().next();
    let before = before.unwrap_or(Answer::Done).value()?;
    let sums = present(before.as_deref(), "customer", &of)?;
    let balance = sums.i64(customer_sums::BALANCE)? - input.amount;

    Ok(encode_row(&[
        ValueRef::U64(u64::from(payer.id)),
        ValueRef::Text(row.text(customer::FIRST)?),
        ValueRef::Text(row.text(customer::LAST)?),
        ValueRef::Text(row.text(customer::CREDIT)?),
        ValueRef::I64(balance),
        ValueRef::Text(at_warehouse.text(warehouse::STREET_1)?),
        ValueRef::Text(at_district.text(district::STREET_1)?),
    ]))
}

fn history(
    input: &Payment,
    payer: u32,
    warehouse: &Row<'_>,
    district: &Row<'_>,
) -> Result<History> {
    Ok(History {
        warehouse: input.warehouse,
        district: input.district,
        unique: input.unique,
        customer_warehouse: input.customer.warehouse,
        customer_district: input.customer.district,
        customer: payer,
        date: input.paid_ms,
        amount: input.amount,
        data: [
            warehouse.text(warehouse::NAME)?,
            "    ",
            district.text(district::NAME)?,
        ]
        .concat(),
    })
}

/// The changes of a payment to a customer's sums.
fn paid(amount: i64) -> Vec<Assignment> {
    vec![
        Assignment::add(customer_sums::BALANCE, -amount),
        Assignment::add(customer_sums::YTD_PAYMENT, amount),
        Assignment::add(customer_sums::PAYMENTS, 1u64),
    ]
}

/// C_DATA of a customer with bad credit: the payment, followed by the old text.
fn data_after(input: &Payment, id: u32, row: &Row<'_>) -> Result<String> {
    let mut data = format!(
        "{id} {} {} {} {} {} ",
        input.customer.district,
        input.customer.warehouse,
        input.district,
        input.warehouse,
        input.amount,
    );
    // The new payment comes first, so the oldest ones are cut off at the end.
    data.push_str(row.text(customer::DATA)?);
    if let Some((end, _)) = data.char_indices().nth(DATA_MAX) {
        data.truncate(end);
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{CustomerRef, Who};

    #[test]
    fn the_text_of_a_customer_is_cut_between_characters() {
        let after = |amount: i64, old: &str| {
            let input = Payment {
                warehouse: 1,
                district: 1,
                customer: CustomerRef {
                    warehouse: 1,
                    district: 1,
                    who: Who::Id(1),
                },
                amount,
                paid_ms: 0,
                unique: [1, 1],
            };
            let mut columns = vec![ValueRef::Null; usize::from(customer::DATA)];
            columns.push(ValueRef::Text(old));
            let row = encode_row(&columns);
            let row = Row::parse(&row).expect("it was encoded");
            data_after(&input, 1, &row).expect("it has a text")
        };
        let old = "\u{e9}".repeat(400);
        for amount in [1, 10] {
            // More than 500 bytes, and fewer than 500 characters.
            assert_eq!(after(amount, &old), format!("1 1 1 1 1 {amount} {old}"));
        }
        let cut = after(10, &old.repeat(2));
        assert_eq!(cut.chars().count(), DATA_MAX);
        assert!(cut.ends_with('\u{e9}'));
    }
}
