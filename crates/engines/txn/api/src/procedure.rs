//! Transactions that run inside the engine: functions, registered by name when it starts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::limits::NAME_BYTES_MAX;
use crate::{Code, Error, Operations, Result};

/// A transaction as a function.
///
/// It must be deterministic in its arguments and in what it reads, because an engine may run it
/// more than once: no clock, no randomness, no state of its own. An error means that nothing is
/// committed.
pub trait Procedure: Send + Sync {
    /// Runs it; what it returns goes to the caller once it is committed.
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

/// The procedures that an engine was started with.
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
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more; a second one of the same name is refused.
    pub fn add(&mut self, name: &str, procedure: impl Procedure + 'static) -> Result<()> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || self.0.contains_key(name) {
            let text = format!("procedure `{name}`: the name is empty, too long, or taken");
            return Err(Error::new(Code::BadArgument, text));
        }
        self.0.insert(name.to_owned(), Arc::new(procedure));
        Ok(())
    }

    /// The procedure of a name.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn Procedure>> {
        self.0.get(name).ok_or_else(|| {
            let text = format!("procedure `{name}`: none of this name is registered");
            Error::new(Code::NoSuchProcedure, text)
        })
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl fmt::Debug for Procedures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
