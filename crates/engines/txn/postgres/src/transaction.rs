//! A transaction on one connection.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use dyno_txn_api::limits::OPERATIONS_MAX;
use dyno_txn_api::{
    Answer, Change, Code, Error, Operation, Operations, Options, Result, Row, TableId, Timestamp,
    Transaction,
};

use crate::database::{Inner, Isolation};
use crate::meaning::During;
use crate::pool::Lease;
use crate::statements::{self, Layouts, Step, Style};

/// The most statements in flight at once. It bounds the answers that the server has to buffer.
const TOGETHER_MAX: usize = 256;
/// How long the rollback of an abandoned transaction may take.
const ROLLBACK: Duration = Duration::from_secs(5);

/// A running transaction. It takes a connection with its first operation.
pub struct Running<'a> {
    inner: &'a Inner,
    lease: Option<Lease<'a>>,
    until: Instant,
    read_only: bool,
    style: Style,
    begun: bool,
    wrote: bool,
    /// The error after which the transaction can only be rolled back.
    doomed: Option<Error>,
}

impl<'a> Running<'a> {
    pub fn begin(inner: &'a Inner, options: &Options) -> Running<'a> {
        let weak = inner.isolation == Isolation::ReadCommitted;
        Running {
            inner,
            lease: None,
            until: Instant::now() + options.deadline,
            read_only: options.read_only,
            style: Style {
                separate: options.separate,
                lock: weak && !options.read_only,
            },
            begun: false,
            wrote: false,
            doomed: None,
        }
    }

    /// Runs operations in order.
    pub fn batch(&mut self, operations: &[Operation]) -> Result<Vec<Answer>> {
        if let Some(error) = &self.doomed {
            let text = format!("an earlier operation failed: {error}");
            return Err(Error::new(Code::WriteFailed, text));
        }
        if operations.len() > OPERATIONS_MAX {
            let text = format!("{} operations: {OPERATIONS_MAX} at most", operations.len());
            return Err(Error::new(Code::TooLarge, text));
        }
        let writes = operations.iter().any(Operation::is_write);
        if writes && self.read_only {
            let text = "a write in a transaction that was begun as read only";
            return Err(Error::new(Code::ReadOnly, text));
        }
        self.wrote |= writes;
        let mut layouts = Layouts::new();
        for operation in operations {
            let table = operation.table();
            if let std::collections::btree_map::Entry::Vacant(vacant) = layouts.entry(table) {
                vacant.insert(self.inner.catalogue.numbered(&self.inner.pool, table)?);
            }
        }
        let done = self.answers(&layouts, operations);
        if let Err(error) = &done
            && writes
        {
            self.doomed = Some(error.clone());
        }
        done
    }

    fn answers(&mut self, layouts: &Layouts, operations: &[Operation]) -> Result<Vec<Answer>> {
        let mut answers = vec![Answer::Done; operations.len()];
        let mut steps: Vec<Step<'_>> = Vec::new();
        let mut at = 0;
        while let Some(operation) = operations.get(at) {
            let rest = &operations[at..];
            let mut count = 1;
            match operation {
                Operation::Get(_) => {
                    count = rest
                        .iter()
                        .take_while(|one| matches!(one, Operation::Get(_)))
                        .count();
                    let of = &rest[..count];
                    steps.extend(statements::gets(layouts, self.style, at, of)?);
                }
                Operation::Scan(scan) => {
                    let layout = &layouts[&scan.table];
                    steps.push(statements::scan(layout, self.style, at, scan)?);
                }
                Operation::Write(key, Change::Put(_) | Change::Insert(_)) => {
                    let mut rows = statements::puts_together(rest);
                    if self.style.separate {
                        rows.truncate(1);
                    }
                    count = rows.len();
                    steps.push(statements::puts(&layouts[&key.table], &rows)?);
                }
                Operation::Write(key, Change::Delete) => {
                    steps.push(statements::delete(&layouts[&key.table], key)?);
                }
                Operation::Write(key, Change::Update(assignments)) => {
                    let layout = &layouts[&key.table];
                    match statements::update(layout, key, assignments)? {
                        Some(step) => steps.push(step),
                        // The row is needed to compute the new one. What was collected so far is
                        // sent first, because it may change that row.
                        None => {
                            self.flush(&mut steps, &mut answers)?;
                            let mut old = [Answer::Done];
                            let mut get = vec![Step::get(layout, self.style, 0, &key.bytes)];
                            self.flush(&mut get, &mut old)?;
                            let [old] = old;
                            let old = old.value()?;
                            let old = old.ok_or_else(|| statements::not_found(layout, key))?;
                            let new = Row::parse(&old)?.update(assignments)?;
                            steps.push(Step::put(layout, &key.bytes, &new)?);
                        }
                    }
                }
            }
            at += count;
            if steps.len() >= TOGETHER_MAX {
                self.flush(&mut steps, &mut answers)?;
            }
        }
        self.flush(&mut steps, &mut answers)?;
        Ok(answers)
    }

    /// Sends the collected statements, after BEGIN if the transaction has not begun.
    fn flush(&mut self, steps: &mut Vec<Step<'_>>, answers: &mut [Answer]) -> Result<()> {
        if steps.is_empty() {
            return Ok(());
        }
        if Instant::now() >= self.until {
            return Err(Error::new(
                Code::Deadline,
                "the transaction's deadline has passed",
            ));
        }
        let lease = match &mut self.lease {
            Some(lease) => lease,
            None => self.lease.insert(self.inner.pool.acquire(self.until)?),
        };
        let begin = match (self.begun, self.read_only) {
            (true, _) => None,
            (false, true) => Some("BEGIN READ ONLY"),
            (false, false) => Some("BEGIN"),
        };
        self.begun = true;
        let calls: Vec<_> = steps.iter().map(|step| step.call.clone()).collect();
        self.inner.counts.statements(calls.len());
        let sent = lease
            .session()?
            .send(begin, &calls, self.until, During::Transaction);
        let rows = match sent {
            Ok(rows) => rows,
            Err(error) => {
                // After a failed statement the server refuses everything but ROLLBACK.
                self.doomed = Some(error.clone());
                if error.kind() == Code::Conflict {
                    self.inner.counts.conflicts.fetch_add(1, Ordering::Relaxed);
                }
                return Err(error);
            }
        };
        for (step, rows) in steps.drain(..).zip(rows) {
            step.answer(&rows, answers)?;
        }
        Ok(())
    }

    /// Commits the transaction, and returns the connection to the pool.
    pub fn finish(&mut self) -> Result<()> {
        if let Some(error) = self.doomed.clone() {
            self.give_up();
            let text = format!("an earlier operation failed: {error}");
            return Err(Error::new(Code::WriteFailed, text));
        }
        if self.begun {
            // If nothing was written, a lost COMMIT has no effect that could be unknown.
            let during = if self.wrote {
                During::Commit
            } else {
                During::Transaction
            };
            self.begun = false;
            if let Some(mut lease) = self.lease.take() {
                let done = lease.session()?.command("COMMIT", self.until, during);
                if done.as_ref().is_err_and(|e| e.kind() == Code::Conflict) {
                    self.inner.counts.conflicts.fetch_add(1, Ordering::Relaxed);
                }
                done?;
            }
        }
        self.inner.counts.committed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Rolls back, if the transaction has begun. It must not fail: destructors call it.
    fn give_up(&mut self) {
        if let Some(mut lease) = self.lease.take()
            && std::mem::take(&mut self.begun)
        {
            let until = Instant::now() + ROLLBACK;
            let done = match lease.session() {
                Ok(session) if session.is_good() => {
                    session.command("ROLLBACK", until, During::Transaction)
                }
                _ => return lease.let_go(),
            };
            // If that fails the connection is closed, and the server rolls back what it left open.
            if done.is_err() {
                lease.let_go();
            }
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl Operations for Running<'_> {
    fn run(&mut self, operations: &[Operation]) -> Result<Vec<Answer>> {
        self.batch(operations)
    }

    fn table(&mut self, name: &str) -> Result<TableId> {
        let layout = self.inner.catalogue.named(&self.inner.pool, name)?;
        Ok(layout.table.id)
    }
}

impl Transaction for Running<'_> {
    fn commit(mut self: Box<Self>) -> Result<Option<Timestamp>> {
        self.finish().map(|()| None)
    }

    fn rollback(mut self: Box<Self>) -> Result<()> {
        self.give_up();
        Ok(())
    }
}
