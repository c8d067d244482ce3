//! What a transaction can do while it runs. Procedures in the engine and interactive transactions see
//! the same trait, so that one piece of code runs in both places.

use crate::{Answer, Assignment, Change, Key, Operation, Page, Result, Scan, TableId};

/// Reads and writes of one transaction. It reads its snapshot and its own writes.
///
/// A failed write dooms the transaction: whatever it does then, its commit is refused. So errors are
/// handed on with `?`. In an engine that runs a procedure again from the start when something has to be
/// fetched first, handing errors on is also what makes that work.
///
/// ```
/// use dyno_txn_api::{Error, Operations, Result, TableId};
///
/// fn transfer(bank: &mut dyn Operations, table: TableId, from: &[u8], to: &[u8]) -> Result<()> {
///     let balances = bank.get_many(&[(table, from), (table, to)])?;
///     let amount = |n: usize| balances[n].as_ref().map_or(0, |value| value[0]);
///     if amount(0) == 0 {
///         return Err(Error::user_abort("nothing left"));
///     }
///     bank.put(table, from, &[amount(0) - 1])?;
///     bank.put(table, to, &[amount(1) + 1])
/// }
/// ```
pub trait Operations {
    /// Does all these, in parallel where the engine can, and answers in their order. Operations on one
    /// key happen in their order. One error stands for all; others may have been done then.
    fn run(&mut self, operations: &[Operation]) -> Result<Vec<Answer>>;

    /// The number of a table.
    fn table(&mut self, name: &str) -> Result<TableId>;

    /// A row's value.
    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        one(self.run(&[Operation::Get(Key::new(table, key))])?)?.value()
    }

    /// Many rows' values at once, in the order of the keys.
    fn get_many(&mut self, keys: &[(TableId, &[u8])]) -> Result<Vec<Option<Vec<u8>>>> {
        let gets = keys
            .iter()
            .map(|(table, key)| Operation::Get(Key::new(*table, *key)));
        let answers = self.run(&gets.collect::<Vec<_>>())?;
        answers.into_iter().map(Answer::value).collect()
    }

    /// Writes a row. It may return before the engine took it: a failure then comes from a later call
    /// or from the commit.
    fn write(&mut self, table: TableId, key: &[u8], change: Change) -> Result<()> {
        self.run(&[Operation::Write(Key::new(table, key), change)])
            .map(drop)
    }

    /// Writes many rows at once.
    fn write_many(&mut self, writes: Vec<(Key, Change)>) -> Result<()> {
        let writes = writes.into_iter().map(|(k, c)| Operation::Write(k, c));
        self.run(&writes.collect::<Vec<_>>()).map(drop)
    }

    /// Writes a value, whether or not there was one.
    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(table, key, Change::Put(value.to_vec()))
    }

    /// Writes a value where there is none.
    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(table, key, Change::Insert(value.to_vec()))
    }

    /// Changes some columns of a row that is there.
    fn update(&mut self, table: TableId, key: &[u8], columns: Vec<Assignment>) -> Result<()> {
        self.write(table, key, Change::Update(columns))
    }

    /// Removes a row, whether or not it is there.
    fn delete(&mut self, table: TableId, key: &[u8]) -> Result<()> {
        self.write(table, key, Change::Delete)
    }

    /// One page of a range, of the table's keys or of an index ([`Scan::index`]).
    fn scan(&mut self, scan: &Scan) -> Result<Page> {
        one(self.run(&[Operation::Scan(scan.clone())])?)?.page()
    }
}

fn one(answers: Vec<Answer>) -> Result<Answer> {
    answers.into_iter().next().ok_or_else(|| {
        let text = "an engine answered nothing to one operation";
        crate::Error::new(crate::Code::Damaged, text)
    })
}
