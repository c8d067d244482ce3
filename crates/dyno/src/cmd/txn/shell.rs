//! `dyno txn shell`: rows by hand, a line at a time.

use std::io::{BufRead, IsTerminal, Write, stderr, stdin};
use std::time::Instant;

use dyno_report::{counted, quantity};
use dyno_suite::Stop;
use dyno_txn_api::{
    Code, Database, Error, Operations, Options, Partitioning, Result, Scan, TableDef, Transact,
    Transaction,
};

use crate::args::TxnShellArgs;
use crate::databases;
use crate::exit::Exit;
use crate::terminal;

/// Rows of a scan unless told otherwise.
const ROWS: u32 = 20;

pub fn run(args: &TxnShellArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let db = if args.create {
        databases::open_or_create(&args.on, &args.guarantees)?
    } else {
        databases::open(&args.on, &args.guarantees)?
    };
    let prompt = stdin().is_terminal();
    let mut open = None;
    let mut failed = false;
    let mut lines = (1..).zip(stdin().lock().lines());
    loop {
        if prompt {
            eprint!("{}", if open.is_some() { "txn* " } else { "txn> " });
            stderr().flush()?;
        }
        let Some((number, line)) = lines.next() else {
            break;
        };
        let line = line?;
        if stop.asked() {
            break;
        }
        match command(&*db, &mut open, &line) {
            Ok(text) if text.is_empty() => {}
            Ok(text) => terminal::print(&text)?,
            Err(error) => {
                failed = true;
                if prompt {
                    eprintln!("{error}");
                } else {
                    // Lines from a file or a pipe are not on the screen above.
                    eprintln!("line {number}: {error}");
                }
            }
        }
    }
    // A transaction that is open at the end of the input is not committed: the line that would have
    // said so never came.
    if let Some(open) = open {
        eprintln!("the transaction that was begun is rolled back");
        Transaction::rollback(open)?;
    }
    Ok(if failed { Exit::No } else { Exit::Done })
}

type Open<'a> = Option<Box<dyn Transaction + 'a>>;

fn command<'a>(db: &'a dyn Database, open: &mut Open<'a>, line: &str) -> Result<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let done = "done".to_owned();
    match words[..] {
        [] => Ok(String::new()),
        ["create", table] => db.create_table(&TableDef::hash(table, 0)).map(|_| done),
        ["create", table, "range", ref splits @ ..] if !splits.is_empty() => {
            let splits = splits.iter().map(|split| bytes_of(split));
            let def = TableDef::range(table, splits.collect::<Result<_>>()?);
            db.create_table(&def).map(|_| done)
        }
        ["tables"] => {
            let names = db.tables()?.into_iter().map(|table| table.def.name);
            Ok(names.collect::<Vec<_>>().join("\n"))
        }
        ["begin"] if open.is_some() => Err(misuse("a transaction is under way already")),
        ["begin"] => {
            *open = Some(db.begin(&Options::default())?);
            Ok(done)
        }
        ["commit"] => {
            let transaction = open.take().ok_or_else(|| misuse("nothing was begun"))?;
            let timestamp = transaction.commit()?;
            Ok(timestamp.map_or(done, |timestamp| format!("done at {timestamp}")))
        }
        ["rollback"] => {
            let transaction = open.take().ok_or_else(|| misuse("nothing was begun"))?;
            transaction.rollback().map(|()| done)
        }
        ["explain", table, key] => explain(db, table, &bytes_of(key)?),
        // A command inside `begin` and `commit` runs in the open transaction. Outside of them each
        // line is a transaction of its own, which `transact` repeats on a conflict.
        _ => match open {
            Some(transaction) => act(&mut **transaction, &words),
            None => db.transact(|transaction| act(transaction, &words)),
        },
    }
}

fn act(transaction: &mut dyn Operations, words: &[&str]) -> Result<String> {
    match *words {
        ["get", table, key] => {
            let table = transaction.table(table)?;
            let found = transaction.get(table, &bytes_of(key)?)?;
            Ok(found.map_or_else(|| "(nothing)".to_owned(), |value| shown(&value)))
        }
        ["put", table, key, ref value @ ..] if !value.is_empty() => {
            let table = transaction.table(table)?;
            let value = bytes_of(&value.join(" "))?;
            transaction.put(table, &bytes_of(key)?, &value)?;
            Ok("done".to_owned())
        }
        ["delete", table, key] => {
            let table = transaction.table(table)?;
            transaction.delete(table, &bytes_of(key)?)?;
            Ok("done".to_owned())
        }
        ["scan", table] => scan(transaction, table, b"", ROWS),
        ["scan", table, prefix] => scan(transaction, table, &bytes_of(prefix)?, ROWS),
        ["scan", table, prefix, limit] => {
            let limit = limit.parse().map_err(|_| misuse("LIMIT is not a number"))?;
            scan(transaction, table, &bytes_of(prefix)?, limit)
        }
        [word, ..] => match USES.iter().find(|(command, _)| *command == word) {
            Some((command, operands)) => Err(misuse(&format!("{command} {operands}"))),
            None => Err(misuse(&format!(
                "there is no command `{word}`; `dyno txn shell --help` lists them"
            ))),
        },
        [] => Ok(String::new()),
    }
}

/// The operands of each command, for messages about too few or too many.
const USES: [(&str, &str); 10] = [
    (
        "create",
        "needs TABLE, and takes `range` with a SPLIT or more",
    ),
    ("tables", "takes nothing else"),
    ("get", "needs TABLE KEY, and nothing else"),
    ("put", "needs TABLE KEY VALUE"),
    ("delete", "needs TABLE KEY, and nothing else"),
    ("scan", "needs TABLE, and takes PREFIX and LIMIT"),
    ("begin", "takes nothing else"),
    ("commit", "takes nothing else"),
    ("rollback", "takes nothing else"),
    ("explain", "needs TABLE KEY, and nothing else"),
];

fn scan(
    transaction: &mut dyn Operations,
    table: &str,
    prefix: &[u8],
    limit: u32,
) -> Result<String> {
    let table = transaction.table(table)?;
    let page = transaction.scan(&Scan::prefix(table, prefix.to_vec()).limit(limit))?;
    let rows = page.rows.iter();
    let mut lines: Vec<String> = rows
        .map(|row| format!("{}\t{}", shown(&row.key), shown(&row.value)))
        .collect();
    if page.next.is_some() {
        lines.push("(more)".to_owned());
    }
    Ok(lines.join("\n"))
}

fn explain(db: &dyn Database, table: &str, key: &[u8]) -> Result<String> {
    let table = db.table(table)?;
    let partitions = counted(u64::from(db.describe()?.partitions), "partition");
    let spread = match &table.def.partitioning {
        Partitioning::Hash { prefix: 0 } => {
            format!("by a hash of the whole key over {partitions}")
        }
        Partitioning::Hash { prefix } => {
            format!("by a hash of the first {prefix} bytes of the key over {partitions}")
        }
        Partitioning::Range { splits } => {
            let before = splits.partition_point(|split| **split <= *key);
            format!(
                "range {before} of {} in the order of keys",
                splits.len() + 1
            )
        }
    };
    let began = Instant::now();
    let found = db.transact(|transaction| transaction.get(table.id, key))?;
    let took = quantity(began.elapsed().as_secs_f64(), "s");
    let what = found.map_or_else(
        || "nothing is there".to_owned(),
        |value| format!("{} bytes are there", value.len()),
    );
    Ok(format!(
        "table {} (number {}), {spread}; {what}; begin, read and commit took {took}",
        table.def.name, table.id.0
    ))
}

/// Bytes as they are typed: UTF-8, and `\x00` for other bytes.
fn bytes_of(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\\x") {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let digits = rest.get(at + 2..at + 4);
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or_else(|| misuse("\\x wants two hexadecimal digits"))?);
        rest = &rest[at + 4..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

/// Bytes as they can be typed.
fn shown(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => bytes.escape_ascii().to_string(),
    }
}

fn misuse(text: &str) -> Error {
    Error::new(Code::BadArgument, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_txn_api::model::Model;

    fn say<'a>(db: &'a Model, open: &mut Open<'a>, line: &str) -> String {
        command(db, open, line).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn lines_are_transactions_of_their_own_or_parts_of_one() {
        let db = Model::new();
        let mut open = None;
        assert_eq!(say(&db, &mut open, "create accounts"), "done");
        assert_eq!(say(&db, &mut open, "put accounts ada 7 00"), "done");
        assert_eq!(say(&db, &mut open, "begin"), "done");
        assert_eq!(say(&db, &mut open, "put accounts bob\\x00 1"), "done");
        assert_eq!(
            say(&db, &mut open, "scan accounts"),
            "ada\t7 00\nbob\\x00\t1"
        );
        assert_eq!(say(&db, &mut open, "rollback"), "done");
        assert_eq!(say(&db, &mut open, "scan accounts"), "ada\t7 00");
        assert_eq!(say(&db, &mut open, "get accounts bob"), "(nothing)");
        assert!(say(&db, &mut open, "explain accounts ada").contains("4 bytes are there"));
        assert!(say(&db, &mut open, "get nothing ada").contains("no-such-table"));
        assert!(say(&db, &mut open, "commit").contains("nothing was begun"));
        assert!(say(&db, &mut open, "fetch").contains("no command `fetch`"));
        assert!(say(&db, &mut open, "put").contains("put needs TABLE KEY VALUE"));
        assert!(say(&db, &mut open, "put accounts ada").contains("put needs TABLE KEY VALUE"));
        assert!(say(&db, &mut open, "get accounts").contains("get needs TABLE KEY"));
        assert!(say(&db, &mut open, "begin now").contains("begin takes nothing else"));
    }

    #[test]
    fn a_table_is_split_at_the_keys_that_are_named() {
        let db = Model::new();
        let mut open = None;
        assert_eq!(say(&db, &mut open, "create words range g \\x70"), "done");
        for (key, range) in [("f", 0), ("g", 1), ("p", 2)] {
            let said = say(&db, &mut open, &format!("explain words {key}"));
            assert!(said.contains(&format!("range {range} of 3")), "{said}");
        }
        let descending = say(&db, &mut open, "create others range p g");
        assert!(descending.contains("splits do not ascend"), "{descending}");
        for wrong in ["create others range", "create others sideways g"] {
            let said = say(&db, &mut open, wrong);
            assert!(said.contains("create needs TABLE"), "{wrong}: {said}");
        }
    }
}
