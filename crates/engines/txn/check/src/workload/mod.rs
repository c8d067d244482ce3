//! What clients do in a check. The same steps run interactively, as a procedure in the engine and
//! as one request, in simulations and against real servers.

mod mix;
mod session;
mod tables;

use dyno_txn_api::{Code, Error, Operations, Procedures, Result};
use serde::{Deserialize, Serialize};

use crate::history::{Key, Op, Value};

pub use mix::{Mix, Shape};
pub use session::Session;
pub use tables::{ACCOUNTS, LISTS, REGISTERS, Tables, definitions};
pub(crate) use tables::{addition, register, value};

/// The name under which [`procedures`] registers [`PlannedTransaction`].
pub const PROCEDURE: &str = "check-work";

/// A step of a transaction. Rows are named by the number that their table has in the history
/// ([`ACCOUNTS`], [`REGISTERS`], [`LISTS`]) and their number in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Reads rows in one request.
    Read(Vec<Key>),
    /// Sets a register to a number.
    Write(Key, i64),
    /// Sets a register to a number, and fails if it exists.
    Insert(Key, i64),
    /// Adds to a register without reading it, and fails if it does not exist.
    Add(Key, i64),
    /// Deletes a register, whether it exists or not.
    Delete(Key),
    /// Reads a list and writes it back with one more element.
    Append(Key, u64),
    /// Reads registers of a table by their keys, page by page.
    Scan {
        /// The number of the table in the history.
        table: u32,
        /// The number of the first row.
        from: u64,
        /// The number after that of the last row.
        to: u64,
        /// Whether the scan begins at the end.
        reverse: bool,
        /// The most rows to return.
        limit: Option<usize>,
    },
    /// Reads registers of a table by their values, through the index.
    Lookup {
        /// The number of the table in the history.
        table: u32,
        /// The lowest value.
        from: i64,
        /// The value after the highest one.
        to: i64,
    },
    /// Moves money from one account to another, if there is enough.
    Transfer {
        /// The account that is debited.
        from: u64,
        /// The account that is credited.
        to: u64,
        /// The amount, which is positive.
        amount: i64,
    },
}

/// The steps of a transaction, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTransaction {
    /// The transaction's id, which everything that it writes carries.
    pub by: u64,
    /// The steps, which run until one fails.
    pub steps: Vec<Step>,
}

impl PlannedTransaction {
    /// Runs the steps. What was done and seen so far is in the session, even after an error.
    ///
    /// # Errors
    /// The error of the first step that failed, unchanged.
    pub fn run(&self, session: &mut Session) -> Result<()> {
        self.steps
            .iter()
            .try_for_each(|step| self.step(step, session))
    }

    fn step(&self, step: &Step, session: &mut Session) -> Result<()> {
        match step {
            Step::Read(keys) => session.read(keys).map(drop),
            Step::Write(key, n) => session.write(&[(*key, Some(*n))]),
            Step::Delete(key) => session.write(&[(*key, None)]),
            Step::Insert(key, n) => session.insert(*key, *n),
            Step::Add(key, amount) => session.add(*key, *amount),
            Step::Append(key, element) => session.append(*key, *element),
            &Step::Scan {
                table,
                from,
                to,
                reverse,
                limit,
            } => session.scan(table, from..to, reverse, limit),
            &Step::Lookup { table, from, to } => session.lookup(table, from..to),
            &Step::Transfer { from, to, amount } => {
                let keys = [Key::new(ACCOUNTS, from), Key::new(ACCOUNTS, to)];
                let values = session.read(&keys)?;
                let balance = |at: usize| match values[at] {
                    Some(Value::Register { n, .. }) => n,
                    _ => 0,
                };
                // A transfer to the same account would write its row twice, and the second write
                // would create money.
                if balance(0) < amount || from == to {
                    return Ok(());
                }
                session.write(&[
                    (keys[0], Some(balance(0) - amount)),
                    (keys[1], Some(balance(1) + amount)),
                ])
            }
        }
    }

    /// What the transaction may have written, for a client that was never told what it did.
    pub fn intended(&self) -> Vec<Op> {
        let by = self.by;
        let mut ops = Vec::new();
        for step in &self.steps {
            match *step {
                Step::Write(key, n) | Step::Insert(key, n) => {
                    let value = Some(Value::Register { n, by });
                    ops.push(Op::Write { key, value });
                }
                Step::Delete(key) => ops.push(Op::Write { key, value: None }),
                Step::Add(key, _) => ops.push(Op::Change { key }),
                Step::Append(key, element) => ops.push(Op::Append { key, element }),
                Step::Transfer { from, to, .. } => {
                    let keys = [from, to].map(|id| Key::new(ACCOUNTS, id));
                    ops.extend(keys.map(|key| Op::Change { key }));
                }
                Step::Read(_) | Step::Scan { .. } | Step::Lookup { .. } => {}
            }
        }
        ops
    }

    /// Encodes the work as the argument of [`PROCEDURE`].
    pub fn arguments(&self) -> Vec<u8> {
        // A struct of numbers and lists can always be written as JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Decodes the result of [`PROCEDURE`]: what the transaction did and saw.
///
/// # Errors
/// [`Code::Damaged`] if the bytes are not what was written.
pub fn returned(bytes: &[u8]) -> Result<Vec<Op>> {
    serde_json::from_slice(bytes).map_err(|error| {
        let text = format!("procedure `{PROCEDURE}` returned something else: {error}");
        Error::new(Code::Damaged, text)
    })
}

/// The procedures that an engine under check is started with.
///
/// # Errors
/// None in practice, because the set is empty before.
pub fn procedures() -> Result<Procedures> {
    let mut procedures = Procedures::new();
    register_procedures(&mut procedures)?;
    Ok(procedures)
}

/// Adds the procedure [`PROCEDURE`], which runs the [`PlannedTransaction`] that its argument holds
/// as JSON.
///
/// # Errors
/// If the name is taken.
pub fn register_procedures(procedures: &mut Procedures) -> Result<()> {
    procedures.add(PROCEDURE, |t: &mut dyn Operations, arguments: &[u8]| {
        let planned: PlannedTransaction = serde_json::from_slice(arguments).map_err(|error| {
            let text = format!("arguments of procedure `{PROCEDURE}`: {error}");
            Error::new(Code::BadArgument, text)
        })?;
        let tables = Tables::find(t)?;
        let mut session = Session::new(t, tables, planned.by);
        planned.run(&mut session)?;
        let ops = session.into_ops();
        Ok(serde_json::to_vec(&ops).unwrap_or_default())
    })
}
