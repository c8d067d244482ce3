//! Reads the ledger of a table without opening the table for writing.

use std::sync::Arc;

use crate::address::Address;
use crate::error::{Error, Result};
use crate::http::{Client, Password, quoted};
use crate::ledger::{Entry, Ledger};

/// The archives of a table, by its ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The version of the first server.
    pub version: String,
    /// The last ledger row of each archive, by name.
    pub archives: Vec<Entry>,
    /// Rows in the table, no matter how they were loaded.
    pub rows: u64,
}

/// Reads it from the servers of `address`.
///
/// # Errors
/// [`Error::Unreachable`], [`Error::Credentials`], [`Error::Permission`], [`Error::Schema`] when
/// nothing was loaded there, [`Error::Ledger`].
pub fn status(address: &Address, password: &Password) -> Result<Status> {
    let clients = Client::for_all_servers(address, password)?;
    let home = Arc::new(clients.into_iter().next().ok_or_else(|| Error::Address {
        reason: "it names no server".to_owned(),
    })?);
    let version = home.query("connect", "SELECT version()")?.trim().to_owned();
    let ledger = format!("{}_ledger", address.table);
    let sql = format!(
        "SELECT count() FROM system.tables WHERE database = {} AND name = {}",
        quoted(&address.database),
        quoted(&ledger)
    );
    // Reading a table that is missing would give an error that does not say what to do.
    if home.number("look for the ledger", &sql)? == 0 {
        return Err(Error::Schema {
            table: address.full_name(""),
            reason: "it has no ledger: load an archive into it first".to_owned(),
        });
    }
    let ledger = Ledger::read(&home, &address.full_name("_ledger"))?;
    let sql = format!("SELECT count() FROM {}", address.full_name(""));
    Ok(Status {
        version,
        rows: home.number("count rows", &sql)?,
        archives: ledger.entries.into_values().collect(),
    })
}
