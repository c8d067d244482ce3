//! Runs one transaction against a database, and records what its client can say about it.

use dyno_txn_api::{
    Answer, Change, Committed, Database, Error, Operation, Options, Request, Result, Retry,
};

use crate::history::{Key, Op, Outcome, Transaction, Value};
use crate::workload::{self, PROCEDURE, PlannedTransaction, Session, Step, Tables};

/// How a transaction is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// With begin, single operations and commit.
    Interactive,
    /// As a procedure inside the engine, which must know [`crate::workload::procedures`].
    Call,
    /// With all operations in one request. Work that depends on what it reads is run interactively
    /// instead.
    Operations,
}

/// Runs work once. `clock` returns nanoseconds. The error is the database's, if the transaction
/// failed.
pub fn attempt(
    db: &dyn Database,
    tables: Tables,
    planned: &PlannedTransaction,
    way: Way,
    options: &Options,
    clock: &dyn Fn() -> u64,
) -> (Transaction, Option<Error>) {
    let mut recorded = Transaction {
        id: planned.by,
        process: 0,
        begin_ns: clock(),
        end_ns: None,
        outcome: Outcome::Unknown,
        timestamp: None,
        // Until more is known, the transaction may have written everything that it was going to
        // write.
        ops: planned.intended(),
    };
    let result = match (way, one_shot(tables, planned)) {
        (Way::Call, _) => call(db, tables, planned, options, &mut recorded),
        (Way::Operations, Some((operations, ops))) => {
            let sent = db.execute(Request::Operations(operations), options);
            sent.map(|committed| answered(committed, ops, &mut recorded))
        }
        _ => interactive(db, tables, planned, options, &mut recorded),
    };
    let error = result.err();
    recorded.outcome = match &error {
        None => Outcome::Ok,
        Some(error) if error.retry() == Retry::Unknown => Outcome::Unknown,
        Some(_) => Outcome::Fail,
    };
    // A transaction of unknown outcome has no end: it may still take effect, after any moment named
    // here.
    recorded.end_ns = (recorded.outcome != Outcome::Unknown).then(clock);
    (recorded, error)
}

fn interactive(
    db: &dyn Database,
    tables: Tables,
    planned: &PlannedTransaction,
    options: &Options,
    recorded: &mut Transaction,
) -> Result<()> {
    let mut transaction = db.begin(options)?;
    let mut session = Session::new(&mut *transaction, tables, planned.by);
    let worked = planned.run(&mut session);
    recorded.ops = session.into_ops();
    // The timestamp is noted before the commit, so that it is known even if the answer to the
    // commit is lost.
    recorded.timestamp = transaction.timestamp();
    match worked {
        Ok(()) => {
            if let Some(timestamp) = transaction.commit()? {
                recorded.timestamp = Some(timestamp);
            }
            Ok(())
        }
        Err(error) => {
            // Nothing can have happened before a commit was sent, even if the rollback fails.
            let _ = transaction.rollback();
            Err(Error::with_retry(error.kind(), Retry::Safe, error.text()))
        }
    }
}

fn call(
    db: &dyn Database,
    tables: Tables,
    planned: &PlannedTransaction,
    options: &Options,
    recorded: &mut Transaction,
) -> Result<()> {
    let first = planned.intended().first().and_then(Op::written);
    let request = Request::Call {
        procedure: PROCEDURE.to_owned(),
        arguments: planned.arguments(),
        home: first.map(|key| tables.key(key)),
    };
    let committed = db.execute(request, options)?;
    recorded.timestamp = committed.timestamp;
    recorded.ops = workload::returned(&committed.returned)?;
    Ok(())
}

/// The work as a list of operations, and as operations of the history, if it needs no answers in
/// between.
pub(crate) fn one_shot(
    tables: Tables,
    planned: &PlannedTransaction,
) -> Option<(Vec<Operation>, Vec<Op>)> {
    let by = planned.by;
    let mut operations = Vec::new();
    let mut ops = Vec::new();
    for step in &planned.steps {
        match step {
            Step::Read(keys) => {
                for &key in keys {
                    operations.push(Operation::Get(tables.key(key)));
                    ops.push(Op::Read { key, value: None });
                }
            }
            &Step::Write(key, n) => {
                operations.push(Operation::put(tables.key(key), workload::register(n, by)));
                let value = Some(Value::Register { n, by });
                ops.push(Op::Write { key, value });
            }
            &Step::Delete(key) => {
                operations.push(Operation::delete(tables.key(key)));
                ops.push(Op::Write { key, value: None });
            }
            &Step::Add(key, amount) => {
                let change = Change::Update(workload::addition(amount, by));
                operations.push(Operation::Write(tables.key(key), change));
                ops.push(Op::Change { key });
            }
            _ => return None,
        }
    }
    Some((operations, ops))
}

/// Fills the values that were read into the history.
pub(crate) fn answered(committed: Committed, ops: Vec<Op>, recorded: &mut Transaction) {
    recorded.timestamp = committed.timestamp;
    recorded.ops = ops;
    for (op, answer) in recorded.ops.iter_mut().zip(committed.answers) {
        if let (Op::Read { key, value }, Answer::Value(bytes)) = (op, answer) {
            let key: Key = *key;
            *value = bytes.map(|bytes| workload::value(key.table, &bytes));
        }
    }
}
