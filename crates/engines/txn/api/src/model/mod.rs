//! A database that is obviously correct: one copy in a sorted map, and one transaction at a time.
//! It is for tests of workloads, and a reference for engines. It stores nothing on disk.
//!
//! A transaction locks the database until it ends, and [`Database::begin`] waits for that until the
//! deadline. So one thread must not have two transactions open. Indexes are not stored: a scan of
//! one computes and sorts the entries of the whole table.

mod rows;

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::limits::OPERATIONS_MAX;
use crate::{
    Answer, Code, Committed, Database, Description, Error, Operation, Operations, Options,
    Procedures, Request, Result, Table, TableDef, TableId, Timestamp, Transaction,
};
use rows::Rows;

/// A database in memory that runs one transaction at a time.
#[derive(Debug, Default)]
pub struct Model {
    state: Mutex<State>,
    free: Condvar,
    procedures: Procedures,
}

#[derive(Debug, Default)]
struct State {
    tables: BTreeMap<TableId, TableDef>,
    rows: Rows,
    timestamp: Timestamp,
    busy: bool,
    committed: u64,
    rolled_back: u64,
}

impl Model {
    /// A model without tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// A model without tables that can call these procedures.
    pub fn with(procedures: Procedures) -> Self {
        Self {
            procedures,
            ..Self::default()
        }
    }

    /// Locks the state even if a test panicked while it had the lock. Every change is one
    /// insertion, so the rows are whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, options: &Options) -> Result<ModelTransaction<'_>> {
        let until = Instant::now() + options.deadline;
        let mut state = self.lock();
        // A flag and not the lock, so that other threads can read the tables and counters while a
        // transaction is open.
        while state.busy {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let text = "another transaction holds the model for longer than the deadline";
                return Err(Error::new(Code::Deadline, text));
            }
            let waited = self.free.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.busy = true;
        state.timestamp += 1;
        let timestamp = state.timestamp;
        Ok(ModelTransaction {
            model: self,
            timestamp,
            read_only: options.read_only,
            undo: Vec::new(),
            doomed: false,
            over: false,
        })
    }
}

/// The one transaction that is running.
struct ModelTransaction<'a> {
    model: &'a Model,
    timestamp: Timestamp,
    read_only: bool,
    /// The old value of each key that was written, in the order of the writes.
    undo: Vec<(TableId, Vec<u8>, Option<Vec<u8>>)>,
    doomed: bool,
    over: bool,
}

impl ModelTransaction<'_> {
    fn one(&mut self, state: &mut State, operation: &Operation) -> Result<Answer> {
        let table = operation.table();
        let Some(def) = state.tables.get(&table) else {
            let text = format!("table number {} does not exist", table.0);
            return Err(Error::new(Code::NoSuchTable, text));
        };
        match operation {
            Operation::Get(key) => Ok(Answer::Value(state.rows.get(key))),
            Operation::Scan(scan) => state.rows.scan(def, scan).map(Answer::Page),
            Operation::Write(..) if self.read_only => {
                let text = "a write in a transaction that was begun as read only";
                Err(Error::new(Code::ReadOnly, text))
            }
            Operation::Write(key, change) => {
                let old = state.rows.write(def, key, change)?;
                self.undo.push((key.table, key.bytes.clone(), old));
                Ok(Answer::Done)
            }
        }
    }

    fn finish(&mut self, commit: bool) -> Result<()> {
        if self.over {
            return Ok(());
        }
        // A commit that fails must not be rolled back once more when the transaction is dropped.
        self.over = true;
        let mut state = self.model.lock();
        let keep = commit && !self.doomed;
        if keep {
            state.committed += 1;
        } else {
            state.rolled_back += 1;
            // In reverse order, so that a key that was written twice gets its oldest value back.
            for (table, key, old) in self.undo.drain(..).rev() {
                state.rows.set(table, key, old);
            }
        }
        state.busy = false;
        self.model.free.notify_one();
        if commit && self.doomed {
            Err(Error::new(
                Code::WriteFailed,
                "one of the transaction's writes failed: it was rolled back",
            ))
        } else {
            Ok(())
        }
    }
}

impl Operations for ModelTransaction<'_> {
    fn run(&mut self, operations: &[Operation]) -> Result<Vec<Answer>> {
        // The limit is checked before anything is done, as engines do that reject the whole
        // message.
        if operations.len() > OPERATIONS_MAX {
            let text = format!("{} operations: {OPERATIONS_MAX} at most", operations.len());
            return Err(Error::new(Code::TooLarge, text));
        }
        let model = self.model;
        let mut state = model.lock();
        let mut answers = Vec::with_capacity(operations.len());
        for operation in operations {
            let answer = self.one(&mut state, operation);
            // A failed read leaves the transaction usable, and a failed write does not, as
            // [`Operations`] demands.
            self.doomed |= answer.is_err() && operation.is_write();
            answers.push(answer?);
        }
        Ok(answers)
    }

    fn table(&mut self, name: &str) -> Result<TableId> {
        Ok(self.model.table(name)?.id)
    }
}

impl Transaction for ModelTransaction<'_> {
    fn commit(mut self: Box<Self>) -> Result<Option<Timestamp>> {
        self.finish(true)?;
        Ok(Some(self.timestamp))
    }

    fn rollback(mut self: Box<Self>) -> Result<()> {
        self.finish(false)
    }

    fn timestamp(&self) -> Option<Timestamp> {
        Some(self.timestamp)
    }
}

impl Drop for ModelTransaction<'_> {
    fn drop(&mut self) {
        // A rollback cannot fail. Only the commit of a doomed transaction returns an error.
        let _ = self.finish(false);
    }
}

impl Database for Model {
    fn create_table(&self, def: &TableDef) -> Result<TableId> {
        def.check()?;
        let mut state = self.lock();
        if let Some((id, old)) = state.tables.iter().find(|(_, old)| old.name == def.name) {
            return if old == def {
                Ok(*id)
            } else {
                Err(Error::new(
                    Code::TableExists,
                    format!("table `{}` exists with another definition", def.name),
                ))
            };
        }
        let id = TableId(state.tables.len() as u32 + 1);
        state.tables.insert(id, def.clone());
        Ok(id)
    }

    fn tables(&self) -> Result<Vec<Table>> {
        let state = self.lock();
        let tables = state.tables.iter().map(|(&id, def)| Table {
            id,
            def: def.clone(),
        });
        Ok(tables.collect())
    }

    fn begin(&self, options: &Options) -> Result<Box<dyn Transaction + '_>> {
        Ok(Box::new(self.start(options)?))
    }

    fn execute(&self, request: Request, options: &Options) -> Result<Committed> {
        let mut transaction = self.start(options)?;
        let (answers, returned) = match request {
            Request::Operations(operations) => (transaction.run(&operations)?, Vec::new()),
            Request::Call {
                procedure,
                arguments,
                ..
            } => {
                let procedure = self.procedures.get(&procedure)?;
                (Vec::new(), procedure.run(&mut transaction, &arguments)?)
            }
        };
        transaction.finish(true)?;
        Ok(Committed {
            timestamp: Some(transaction.timestamp),
            answers,
            returned,
        })
    }

    fn describe(&self) -> Result<Description> {
        Ok(Description {
            engine: "model".to_owned(),
            isolation: "strict serializable, one at a time".to_owned(),
            durability: "none".to_owned(),
            partitions: 1,
            procedures: true,
        })
    }

    fn stats(&self) -> Result<Vec<(String, u64)>> {
        let state = self.lock();
        Ok(vec![
            ("committed".to_owned(), state.committed),
            ("rolled-back".to_owned(), state.rolled_back),
            ("rows".to_owned(), state.rows.len() as u64),
        ])
    }

    fn as_database(&self) -> &dyn Database {
        self
    }
}
