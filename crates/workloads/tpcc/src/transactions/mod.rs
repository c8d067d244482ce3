//! The five transactions (clauses 2.4 to 2.8). The same code runs interactively, in batches, and as
//! a procedure inside an engine. Operations that can be sent together are one call.
//!
//! What a terminal would show is returned as the bytes of a row ([`dyno_txn_api::encode_row`]).

mod customer;
mod delivery;
mod new_order;
mod order_status;
mod payment;
mod stock_level;

use std::sync::{Arc, OnceLock};

use dyno_txn_api::{Code, Error, Key, Operations, Procedures, Request, Result, Row, Scan, ScanRow};

use crate::input::{Input, Kind};
use crate::schema::{Tables, key};

/// Runs a transaction and returns what the terminal shows.
pub fn run(transaction: &mut dyn Operations, tables: &Tables, input: &Input) -> Result<Vec<u8>> {
    match input {
        Input::NewOrder(input) => new_order::run(transaction, tables, input),
        Input::Payment(input) => payment::run(transaction, tables, input),
        Input::OrderStatus(input) => order_status::run(transaction, tables, input),
        Input::Delivery(input) => delivery::run(transaction, tables, input),
        Input::StockLevel(input) => stock_level::run(transaction, tables, input),
    }
}

/// The name of a transaction's procedure.
pub fn procedure(kind: Kind) -> String {
    format!("tpcc-{}", kind.name())
}

/// Registers the five procedures. They take the bytes of an [`Input`].
pub fn register(procedures: &mut Procedures) -> Result<()> {
    // Table numbers never change during the life of a database, and an engine has one database.
    // Without this every call would look up 15 tables by name.
    let known: Arc<OnceLock<Tables>> = Arc::default();
    for kind in Kind::ALL {
        let known = Arc::clone(&known);
        procedures.add(
            &procedure(kind),
            move |transaction: &mut dyn Operations, arguments: &[u8]| {
                let tables = match known.get() {
                    Some(tables) => *tables,
                    None => *known.get_or_init({
                        let found = Tables::within(transaction)?;
                        move || found
                    }),
                };
                let input = Input::from_bytes(arguments)
                    .map_err(|error| Error::new(Code::BadArgument, error))?;
                if input.kind() != kind {
                    let text = format!("{} got the input of {}", kind.name(), input.kind().name());
                    return Err(Error::new(Code::BadArgument, text));
                }
                run(transaction, &tables, &input)
            },
        )?;
    }
    Ok(())
}

/// The call of an input's procedure, at the partition of its warehouse.
pub fn call(tables: &Tables, input: &Input) -> Request {
    Request::Call {
        procedure: procedure(input.kind()),
        arguments: input.to_bytes(),
        // Most rows of the transaction are in that partition, so it needs few rows from others.
        home: Some(Key::new(tables.warehouse, key(&[input.warehouse()]))),
    }
}

/// The row that was read, or an error if it is missing.
fn present<'a>(found: Option<&'a [u8]>, what: &str, number: &[u32]) -> Result<Row<'a>> {
    match found {
        Some(bytes) => Row::parse(bytes),
        None => {
            let text = format!("{what} {number:?}: there is none; was the database loaded?");
            Err(Error::new(Code::NotFound, text))
        }
    }
}

/// Reads all rows of a range, page by page.
pub(crate) fn all(transaction: &mut dyn Operations, mut scan: Scan) -> Result<Vec<ScanRow>> {
    let mut rows = Vec::new();
    loop {
        let mut page = transaction.scan(&scan)?;
        if rows.is_empty() {
            rows = page.rows
        } else {
            rows.append(&mut page.rows)
        }
        match page.next {
            Some(next) => scan = scan.after(next),
            None => return Ok(rows),
        }
    }
}

/// The index of `wanted` among the distinct values, because a key that is needed more than once is
/// fetched once.
fn place<T: PartialEq>(distinct: &mut Vec<T>, wanted: T) -> usize {
    match distinct.iter().position(|have| *have == wanted) {
        Some(at) => at,
        None => {
            distinct.push(wanted);
            distinct.len() - 1
        }
    }
}
