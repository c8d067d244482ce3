//! What a transaction can do while it runs. Procedures in the engine and interactive transactions
//! see the same trait, so that one piece of code runs in both places.

use crate::{
    Answer, Assignment, Change, Code, Error, Key, Operation, Page, Result, Rows, Scan, TableId,
};

/// Reads and writes of one transaction. It reads its snapshot and its own writes.
///
/// A failed write dooms the transaction: whatever it does then, its commit is refused. So errors
/// are handed on with `?`. In an engine that runs a procedure again from the start when something
/// has to be fetched first, handing errors on is also what makes that work.
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
    /// Does all these, in parallel where the engine can, and answers in their order. Operations on
    /// one key happen in their order. One error stands for all; others may have been done then.
    fn run(&mut self, operations: &[Operation]) -> Result<Vec<Answer>>;

    /// The last operations of a transaction, reads before writes: an engine that can commits in the
    /// same message, which keeps what is written undecided for the shortest time. After an answer
    /// there is nothing but the commit, since it may be too late to roll back; an error may be the
    /// commit's.
    fn run_last(&mut self, operations: &[Operation]) -> Result<Vec<Answer>> {
        self.run(operations)
    }

    /// The number of a table.
    fn table(&mut self, name: &str) -> Result<TableId>;

    /// A row's value.
    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        one(self.run(&[Operation::Get(Key::new(table, key))])?)?.value()
    }

    /// Many rows' values at once, in the order of the keys.
    fn get_many(&mut self, keys: &[(TableId, &[u8])]) -> Result<Rows> {
        let gets = keys.iter().map(get);
        let answers = self.run(&gets.collect::<Vec<_>>())?;
        values(answers.into_iter(), keys.len())
    }

    /// Writes, and then reads many rows' values, all at once: what is read is what the writes left.
    /// A row that is written first and read behind that no other transaction sees before the end,
    /// so that others wait for it where they would be refused if it were read first.
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

    /// Writes a row. It may return before the engine took it: a failure then comes from a later
    /// call or from the commit.
    fn write(&mut self, table: TableId, key: &[u8], change: Change) -> Result<()> {
        self.run(&[Operation::Write(Key::new(table, key), change)])
            .map(drop)
    }

    /// Writes many rows at once. It may return before the engine took them, as
    /// [`Operations::write`] may.
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

fn get(key: &(TableId, &[u8])) -> Operation {
    Operation::Get(Key::new(key.0, key.1))
}

/// So many answers of gets.
fn values(answers: impl Iterator<Item = Answer>, count: usize) -> Result<Rows> {
    let mut rows = Rows::with_capacity(count);
    for answer in answers {
        rows.push(answer.value()?.as_deref());
    }
    match rows.len() == count {
        true => Ok(rows),
        false => Err(unanswered()),
    }
}

fn one(answers: Vec<Answer>) -> Result<Answer> {
    answers.into_iter().next().ok_or_else(unanswered)
}

fn unanswered() -> Error {
    Error::new(
        Code::Damaged,
        "an engine gave fewer answers than it was asked for",
    )
}
