//! New Order and Payment as functions of a database of PostgreSQL's wire. They do what
//! `dyno_tpcc::transactions` does, and return the same; the other three types run in the client.

use dyno_tpcc::input::{CustomerRef, Input, Kind, NewOrder, Payment, Who};
use dyno_tpcc::schema::{history_key, key};
use dyno_tpcc::text::last_name;
use dyno_tpcc::transactions::procedure;
use dyno_txn_api::{Code, Error, Result, Tuple, ValueRef, encode_row, prefix_end};
use dyno_txn_postgres::{Argument, Fields, Function};

/// The SQL functions, New Order first, with their arguments.
pub fn functions() -> Vec<Function> {
    vec![
        Function {
            procedure: procedure(Kind::NewOrder),
            create: include_str!("new_order.sql").to_owned(),
            call: "SELECT * FROM dyno_txn.tpcc_new_order($1, $2, $3, $4, $5, $6, $7)".to_owned(),
            arguments: |bytes| match input(bytes)? {
                Input::NewOrder(order) => Ok(new_order(&order)),
                other => Err(another(Kind::NewOrder, &other)),
            },
            answer: ordered,
        },
        Function {
            procedure: procedure(Kind::Payment),
            create: include_str!("payment.sql").to_owned(),
            call: "SELECT * FROM dyno_txn.tpcc_payment($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
                .to_owned(),
            arguments: |bytes| match input(bytes)? {
                Input::Payment(paid) => Ok(payment(&paid)),
                other => Err(another(Kind::Payment, &other)),
            },
            answer: paid,
        },
    ]
}

fn input(bytes: &[u8]) -> Result<Input> {
    Input::from_bytes(bytes).map_err(|error| Error::new(Code::BadArgument, error))
}

fn another(wanted: Kind, got: &Input) -> Error {
    let text = format!("{} got the input of {}", wanted.name(), got.kind().name());
    Error::new(Code::BadArgument, text)
}

fn number(value: u32) -> Argument {
    Argument::Number(Some(i64::from(value)))
}

fn new_order(order: &NewOrder) -> Vec<Argument> {
    let of_lines = |of: fn(&dyno_tpcc::input::Line) -> u32| {
        Argument::Numbers(order.lines.iter().map(|line| i64::from(of(line))).collect())
    };
    vec![
        number(order.warehouse),
        number(order.district),
        number(order.customer),
        Argument::Number(Some(order.entered_ms)),
        of_lines(|line| line.item),
        of_lines(|line| line.supply),
        of_lines(|line| line.quantity),
    ]
}

fn ordered(fields: &Fields<'_>) -> Result<Vec<u8>> {
    let (lefts, amounts, brands) = (fields.numbers(6)?, fields.numbers(7)?, fields.texts(8)?);
    let mut screen = vec![
        ValueRef::U64(fields.number(0)? as u64),
        ValueRef::I64(fields.number(1)?),
        ValueRef::Text(fields.text(2)?),
        ValueRef::Text(fields.text(3)?),
        ValueRef::U64(fields.number(4)? as u64),
        ValueRef::U64(fields.number(5)? as u64),
    ];
    for ((left, amount), brand) in lefts.into_iter().zip(amounts).zip(brands) {
        screen.extend([
            ValueRef::I64(left),
            ValueRef::I64(amount),
            ValueRef::Text(brand),
        ]);
    }
    Ok(encode_row(&screen))
}

fn payment(paid: &Payment) -> Vec<Argument> {
    let CustomerRef {
        warehouse,
        district,
        who,
    } = paid.customer;
    let [by_key, from, until] = match who {
        Who::Id(id) => [Some(key(&[warehouse, district, id])), None, None],
        Who::LastName(name) => {
            let at = key(&[warehouse, district]);
            let from = Tuple::after(at).text(&last_name(name)).finish();
            let until = prefix_end(&from);
            [None, Some(from), until]
        }
    };
    let history = history_key(paid.warehouse, paid.district, paid.unique);
    vec![
        number(paid.warehouse),
        number(paid.district),
        number(warehouse),
        number(district),
        Argument::Bytes(by_key),
        Argument::Bytes(from),
        Argument::Bytes(until),
        Argument::Number(Some(paid.amount)),
        Argument::Number(Some(paid.paid_ms)),
        Argument::Bytes(Some(history)),
    ]
}

fn paid(fields: &Fields<'_>) -> Result<Vec<u8>> {
    Ok(encode_row(&[
        ValueRef::U64(fields.number(0)? as u64),
        ValueRef::Text(fields.text(1)?),
        ValueRef::Text(fields.text(2)?),
        ValueRef::Text(fields.text(3)?),
        ValueRef::I64(fields.number(4)?),
        ValueRef::Text(fields.text(5)?),
        ValueRef::Text(fields.text(6)?),
    ]))
}
