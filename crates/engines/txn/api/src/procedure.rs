//! Procedures: transactions that run inside the engine. They are functions, which are registered by
//! name when the engine starts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::limits::NAME_BYTES_MAX;
use crate::{Code, Error, Operations, Result};

/// A transaction as a function.
///
/// It must depend only on its arguments and on what it reads, because an engine may run it more
/// than once. So it uses no clock, no randomness and no state of its own. An error means that
/// nothing is committed.
pub trait Procedure: Send + Sync {
    /// Runs the transaction. The caller gets the result once it is committed.
    fn run(&self, transaction: &mut dyn Operations, arguments: &[u8]) -> Result<Vec<u8>>;
}

impl<F> Procedure for F
where
    F: Fn(&mut dyn Operations, &[u8]) -> Result<Vec<u8>> + Send + Sync,
{
    fn run(&self, transaction: &mut dyn Operations, arguments: &[u8]) -> Result<Vec<u8>> {
        self(transaction, arguments)
    }
}

/// The procedures that an engine is started with.
///
/// ```
/// use dyno_txn_api::{Operations, Procedures};
/// let mut procedures = Procedures::new();
/// procedures.add("read-it", |t: &mut dyn Operations, key: &[u8]| {
///     let table = t.table("things")?;
///     Ok(t.get(table, key)?.unwrap_or_default())
/// })?;
/// assert!(procedures.get("read-it").is_ok());
/// # Ok::<(), dyno_txn_api::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Procedures(BTreeMap<String, Arc<dyn Procedure>>);

impl Procedures {
    /// A set without procedures.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a procedure, and refuses a second one with the same name.
    pub fn add(&mut self, name: &str, procedure: impl Procedure + 'static) -> Result<()> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || self.0.contains_key(name) {
            let text = format!("procedure `{name}`: the name is empty, too long, or taken");
            return Err(Error::new(Code::BadArgument, text));
        }
        self.0.insert(name.to_owned(), Arc::new(procedure));
        Ok(())
    }

    /// The procedure with this name.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn Procedure>> {
        self.0.get(name).ok_or_else(|| {
            let text = format!("procedure `{name}` is not registered in the engine");
            Error::new(Code::NoSuchProcedure, text)
        })
    }

    /// The names of all procedures, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl fmt::Debug for Procedures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
