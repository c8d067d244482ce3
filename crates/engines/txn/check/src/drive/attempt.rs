//! One transaction against a database, and what its client can say of it.

use dyno_txn_api::{
    Answer, Change, Committed, Database, Error, Operation, Options, Request, Result, Retry,
};

use crate::history::{Key, Op, Outcome, Transaction, Value};
use crate::work::{self, PROCEDURE, Session, Step, Tables, Work};

/// In which way a transaction is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Begin, operations, commit.
    Interactive,
    /// A procedure in the engine; it has to know [`work::procedures`].
    Call,
    /// All operations in one request. Work that depends on what it reads is run interactively.
    Operations,
}

/// Runs work once. `clock` gives nanoseconds. The error is the database's, if it failed.
pub fn attempt(
    db: &dyn Database,
    tables: Tables,
    work: &Work,
    way: Way,
    options: &Options,
    clock: &dyn Fn() -> u64,
) -> (Transaction, Option<Error>) {
    let mut told = Transaction {
        id: work.by,
        process: 0,
        begin_ns: clock(),
        end_ns: None,
        outcome: Outcome::Unknown,
        stamp: None,
        ops: work.intended(),
    };
    let result = match (way, one_shot(tables, work)) {
        (Way::Call, _) => call(db, tables, work, options, &mut told),
        (Way::Operations, Some((operations, ops))) => {
            let sent = db.execute(Request::Operations(operations), options);
            sent.map(|committed| answered(committed, ops, &mut told))
        }
        _ => interactive(db, tables, work, options, &mut told),
    };
    let error = result.err();
    told.outcome = match &error {
        None => Outcome::Ok,
        Some(error) if error.retry() == Retry::Unknown => Outcome::Unknown,
        Some(_) => Outcome::Fail,
    };
    told.end_ns = (told.outcome != Outcome::Unknown).then(clock);
    (told, error)
}

fn interactive(
    db: &dyn Database,
    tables: Tables,
    work: &Work,
    options: &Options,
    told: &mut Transaction,
) -> Result<()> {
    let mut transaction = db.begin(options)?;
    let mut session = Session::new(&mut *transaction, tables, work.by);
    let worked = work.run(&mut session);
    told.ops = session.into_ops();
    told.stamp = transaction.stamp();
    match worked {
        Ok(()) => {
            if let Some(stamp) = transaction.commit()? {
                told.stamp = Some(stamp);
            }
            Ok(())
        }
        Err(error) => {
            // Before a commit was sent nothing can have happened, whatever the rollback says.
            let _ = transaction.rollback();
            Err(Error::with_retry(error.kind(), Retry::Safe, error.text()))
        }
    }
}

fn call(
    db: &dyn Database,
    tables: Tables,
    work: &Work,
    options: &Options,
    told: &mut Transaction,
) -> Result<()> {
    let first = work.intended().first().and_then(Op::written);
    let request = Request::Call {
        procedure: PROCEDURE.to_owned(),
        arguments: work.arguments(),
        home: first.map(|key| tables.key(key)),
    };
    let committed = db.execute(request, options)?;
    told.stamp = committed.stamp;
    told.ops = work::returned(&committed.returned)?;
    Ok(())
}

/// The work as a list of operations, and as the history shows them, if it needs no answer in
/// between.
pub(crate) fn one_shot(tables: Tables, work: &Work) -> Option<(Vec<Operation>, Vec<Op>)> {
    let by = work.by;
    let mut operations = Vec::new();
    let mut ops = Vec::new();
    for step in &work.steps {
        match step {
            Step::Read(keys) => {
                for &key in keys {
                    operations.push(Operation::Get(tables.key(key)));
                    ops.push(Op::Read { key, value: None });
                }
            }
            &Step::Write(key, n) => {
                operations.push(Operation::put(tables.key(key), work::register(n, by)));
                let value = Some(Value::Register { n, by });
                ops.push(Op::Write { key, value });
            }
            &Step::Delete(key) => {
                operations.push(Operation::delete(tables.key(key)));
                ops.push(Op::Write { key, value: None });
            }
            &Step::Add(key, amount) => {
                let change = Change::Update(work::addition(amount, by));
                operations.push(Operation::Write(tables.key(key), change));
                ops.push(Op::Change { key });
            }
            _ => return None,
        }
    }
    Some((operations, ops))
}

/// Fills what was read into the history.
pub(crate) fn answered(committed: Committed, ops: Vec<Op>, told: &mut Transaction) {
    told.stamp = committed.stamp;
    told.ops = ops;
    for (op, answer) in told.ops.iter_mut().zip(committed.answers) {
        if let (Op::Read { key, value }, Answer::Value(bytes)) = (op, answer) {
            let key: Key = *key;
            *value = bytes.map(|bytes| work::value(key.table, &bytes));
        }
    }
}
