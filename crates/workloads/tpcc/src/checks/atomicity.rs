//! Checks the atomicity of Payment (clause 3.2.2): one that is committed changes all its rows, one
//! that is rolled back none.

use dyno_txn_api::{
    Answer, Database, Error, Operation, Operations, Result, Row, TableId, Transact,
};

use crate::input::{CustomerRef, Input, Payment, Who};
use crate::schema::{Tables, customer_sums, history_key, key, ytd};
use crate::transactions::run;

/// The amount of each of the two payments, in cents.
const AMOUNT: i64 = 4_321;

/// Runs both payments on the first customer of the first district. Returns what went wrong, if
/// anything.
pub fn atomicity(db: &dyn Database, tables: &Tables, unique: [u64; 2]) -> Result<Option<String>> {
    let payment = Payment {
        warehouse: 1,
        district: 1,
        customer: CustomerRef {
            warehouse: 1,
            district: 1,
            who: Who::Id(1),
        },
        amount: AMOUNT,
        paid_ms: 0,
        unique,
    };
    let before = db.transact(|t| sums(&mut *t, tables, unique))?;
    let payment = Input::Payment(payment);
    // The payment does all its writes before the error, so there is something to roll back.
    let refused = db.transact(|t| {
        run(&mut Undecided(t), tables, &payment)?;
        Err::<(), Error>(Error::user_abort("rolled back to see whether it is"))
    });
    if refused.is_ok() {
        return Ok(Some(
            "a payment that was rolled back was committed".to_owned(),
        ));
    }
    let after_rollback = db.transact(|t| sums(&mut *t, tables, unique))?;
    if after_rollback != before {
        let text =
            format!("a payment was rolled back: before {before:?}, after {after_rollback:?}");
        return Ok(Some(text));
    }
    db.transact(|t| run(&mut *t, tables, &payment).map(drop))?;
    let after = db.transact(|t| sums(&mut *t, tables, unique))?;
    let wanted = Sums {
        warehouse: before.warehouse + AMOUNT,
        district: before.district + AMOUNT,
        balance: before.balance - AMOUNT,
        paid: before.paid + AMOUNT,
        payments: before.payments + 1,
        history: true,
    };
    if after != wanted {
        let text = format!("a payment was committed: after it {after:?}, it should be {wanted:?}");
        return Ok(Some(text));
    }
    Ok(None)
}

/// Passes on operations without committing ([`Operations::run_last`] would), so that the
/// transaction can still be rolled back.
struct Undecided<'a>(&'a mut dyn Operations);

impl Operations for Undecided<'_> {
    fn run(&mut self, operations: &[Operation]) -> Result<Vec<Answer>> {
        self.0.run(operations)
    }

    fn table(&mut self, name: &str) -> Result<TableId> {
        self.0.table(name)
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Sums {
    warehouse: i64,
    district: i64,
    balance: i64,
    paid: i64,
    payments: u64,
    history: bool,
}

fn sums<T: Operations + ?Sized>(t: &mut T, tables: &Tables, unique: [u64; 2]) -> Result<Sums> {
    let (warehouse, district, buyer) = (key(&[1]), key(&[1, 1]), key(&[1, 1, 1]));
    let history = history_key(1, 1, unique);
    let rows = t.get_many(&[
        (tables.warehouse_ytd, &warehouse),
        (tables.district_ytd, &district),
        (tables.customer_sums, &buyer),
        (tables.history, &history),
    ])?;
    let row = |at: usize| {
        let bytes = rows.get(at);
        Row::parse(
            bytes.ok_or_else(|| Error::user_abort("a row is missing: was the database loaded?"))?,
        )
    };
    let buyer = row(2)?;
    Ok(Sums {
        warehouse: row(0)?.i64(ytd::YTD)?,
        district: row(1)?.i64(ytd::YTD)?,
        balance: buyer.i64(customer_sums::BALANCE)?,
        paid: buyer.i64(customer_sums::YTD_PAYMENT)?,
        payments: buyer.u64(customer_sums::PAYMENTS)?,
        history: rows.get(3).is_some(),
    })
}
