//! What a transaction can do while it runs. Procedures in the engine and interactive transactions
//! use the same trait, so that one piece of code runs in both places.

use crate::{
    Answer, Assignment, Change, Code, Error, Key, Operation, Page, Result, Rows, Scan, TableId,
};

/// Reads and writes of one transaction, which sees its snapshot and its own writes.
///
/// After a failed write the transaction cannot commit, whatever it does. So code should return
/// errors with `?`. Some engines depend on that: they run a procedure again from the start when a
/// row has to be fetched first, and end the first run with an error.
///
/// ```
/// use dyno_txn_api::{Error, Operations, Result, TableId};
///
/// fn transfer(bank: &mut dyn Operations, table: TableId, from: &[u8], to: &[u8]) -> Result<()> {
///     let balances = bank.get_many(&[(table, from), (table, to)])?;
///     let amount = |n: usize| balances.get(n).map_or(0, |value| value[0]);
///     if amount(0) == 0 {
///         return Err(Error::user_abort("nothing left"));
///     }
///     bank.put(table, from, &[amount(0) - 1])?;
///     bank.put(table, to, &[amount(1) + 1])
/// }
/// ```
pub trait Operations {
    /// Runs operations, in parallel where the engine can, and returns their answers in order.
    /// Operations on one key happen in order. If one fails, its error stands for all of them, and
    /// the others may have been done.
    fn run(&mut self, operations: &[Operation]) -> Result<Vec<Answer>>;

    /// Runs the last operations of a transaction, reads before writes. An engine that can sends the
    /// commit in the same message, which keeps the time short in which others wait for the writes.
    /// After this only the commit may follow, because it may be too late to roll back. An error may
    /// be that of the commit.
    fn run_last(&mut self, operations: &[Operation]) -> Result<Vec<Answer>> {
        self.run(operations)
    }

    /// The id of the table with this name.
    fn table(&mut self, name: &str) -> Result<TableId>;

    /// Reads the value of a row, or `None` if there is no row.
    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        one(self.run(&[Operation::Get(Key::new(table, key))])?)?.value()
    }

    /// Reads the values of several rows in one call, in the order of the keys.
    fn get_many(&mut self, keys: &[(TableId, &[u8])]) -> Result<Rows> {
        let gets = keys.iter().map(get);
        let answers = self.run(&gets.collect::<Vec<_>>())?;
        values(answers.into_iter(), keys.len())
    }

    /// Writes rows and then reads rows in one call, so that the reads see the writes. If a row is
    /// written before it is read, no other transaction can read it in between, and others wait for
    /// it. If it were read first, one of two such transactions would be refused.
    fn write_then_get(
        &mut self,
        writes: Vec<(Key, Change)>,
        keys: &[(TableId, &[u8])],
    ) -> Result<Rows> {
        let written = writes.len();
        let writes = writes.into_iter().map(|(k, c)| Operation::Write(k, c));
        let gets = keys.iter().map(get);
        let answers = self.run(&writes.chain(gets).collect::<Vec<_>>())?;
        values(answers.into_iter().skip(written), keys.len())
    }

    /// Writes a row. It may return before the engine has the write. A failure then comes from a
    /// later call or from the commit.
    fn write(&mut self, table: TableId, key: &[u8], change: Change) -> Result<()> {
        self.run(&[Operation::Write(Key::new(table, key), change)])
            .map(drop)
    }

    /// Writes several rows in one call. Like [`Operations::write`] it may return before the engine
    /// has them.
    fn write_many(&mut self, writes: Vec<(Key, Change)>) -> Result<()> {
        let writes = writes.into_iter().map(|(k, c)| Operation::Write(k, c));
        self.run(&writes.collect::<Vec<_>>()).map(drop)
    }

    /// Sets the value of a row, whether or not there was one.
    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(table, key, Change::Put(value.to_vec()))
    }

    /// Adds a row, and fails with [`Code::AlreadyExists`] if there is one.
    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(table, key, Change::Insert(value.to_vec()))
    }

    /// Changes some columns of a row, and fails with [`Code::NotFound`] if there is none.
    fn update(&mut self, table: TableId, key: &[u8], columns: Vec<Assignment>) -> Result<()> {
        self.write(table, key, Change::Update(columns))
    }

    /// Removes a row, whether or not there is one.
    fn delete(&mut self, table: TableId, key: &[u8]) -> Result<()> {
        self.write(table, key, Change::Delete)
    }

    /// Reads one page of a range, of the table's keys or of an index ([`Scan::index`]).
    fn scan(&mut self, scan: &Scan) -> Result<Page> {
        one(self.run(&[Operation::Scan(scan.clone())])?)?.page()
    }
}

fn get(key: &(TableId, &[u8])) -> Operation {
    Operation::Get(Key::new(key.0, key.1))
}

/// Collects the answers of `count` gets.
fn values(answers: impl Iterator<Item = Answer>, count: usize) -> Result<Rows> {
    let mut rows = Rows::with_capacity(count);
    for answer in answers {
        rows.push(answer.value()?.as_deref());
    }
    // With an answer missing, every later row would be taken for the one before it.
    if rows.len() == count {
        Ok(rows)
    } else {
        Err(unanswered())
    }
}

fn one(answers: Vec<Answer>) -> Result<Answer> {
    answers.into_iter().next().ok_or_else(unanswered)
}

fn unanswered() -> Error {
    Error::new(
        Code::Damaged,
        "the engine returned fewer answers than there were operations",
    )
}
