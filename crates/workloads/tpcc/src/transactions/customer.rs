//! Finds a customer by number or by last name (clauses 2.5.2.2 and 2.6.2.2).

use dyno_txn_api::{Answer, Code, Error, Key, Operation, Result, Scan, Tuple};

use crate::input::{CustomerRef, Who};
use crate::schema::{CUSTOMER_BY_NAME, Tables, key, numbers_of};
use crate::text::last_name;

/// A customer that was found.
pub(super) struct Customer {
    pub id: u32,
    /// The stored columns of CUSTOMER without its sums.
    pub row: Vec<u8>,
}

/// The operation that finds the customer.
pub(super) fn find(tables: &Tables, wanted: &CustomerRef) -> Operation {
    match wanted.who {
        Who::Id(id) => {
            let at = key(&[wanted.warehouse, wanted.district, id]);
            Operation::Get(Key::new(tables.customer, at))
        }
        Who::LastName(number) => {
            let at = key(&[wanted.warehouse, wanted.district]);
            let prefix = Tuple::after(at).text(&last_name(number)).finish();
            Operation::Scan(Scan::prefix(tables.customer, prefix).index(CUSTOMER_BY_NAME))
        }
    }
}

/// The customer in that operation's answer. Of several with one last name it is the one in the
/// middle, rounded up, in the index's order of first names.
pub(super) fn found(wanted: &CustomerRef, answer: Answer) -> Result<Customer> {
    let none = || {
        let text = format!("customer {wanted:?}: there is none; was the database loaded?");
        Error::new(Code::NotFound, text)
    };
    match wanted.who {
        Who::Id(id) => {
            let row = answer.value()?.ok_or_else(none)?;
            Ok(Customer { id, row })
        }
        Who::LastName(_) => {
            let page = answer.page()?;
            // The middle of a part of the customers is not the middle of all. A page holds far more
            // than there are of one name.
            if page.next.is_some() {
                let text = format!("customer {wanted:?}: more of this name than a page holds");
                return Err(Error::new(Code::TooLarge, text));
            }
            let middle = page
                .rows
                .len()
                .div_ceil(2)
                .checked_sub(1)
                .ok_or_else(none)?;
            let row = page.rows.into_iter().nth(middle).ok_or_else(none)?;
            let [_, _, id, _] = numbers_of(&row.key);
            Ok(Customer { id, row: row.value })
        }
    }
}
