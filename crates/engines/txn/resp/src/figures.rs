//! What the front counts, for `/metrics` and for `INFO`.

use dyno_serve::{Counter, Gauge, Registry, ServeError};

/// The counts since the start, and the connections now.
pub struct Figures {
    /// Connections now.
    pub connections: Gauge,
    /// Connections since the start.
    pub accepted: Counter,
    /// Connections that were refused because there were too many.
    pub refused: Counter,
    /// Connections that were closed because they did not show the token, complete a command or read
    /// a reply in time.
    pub late: Counter,
    /// Commands.
    pub commands: Counter,
    /// Transactions that went to the engine, each with what one connection had sent.
    pub transactions: Counter,
    /// Transactions that were sent again after a conflict.
    pub retries: Counter,
    /// Transactions that failed.
    pub failed: Counter,
    /// Keys that the sweep has removed.
    pub expired: Counter,
}

impl Figures {
    /// Adds them to what a server shows.
    ///
    /// # Errors
    /// If their names are taken by something else.
    pub fn new(registry: &Registry) -> Result<Figures, ServeError> {
        let counter = |name: &str, help: &str| {
            registry.counter(&format!("dyno_txn_resp_{name}_total"), help, &[])
        };
        let help = "Open connections of clients of Redis.";
        Ok(Figures {
            connections: registry.gauge("dyno_txn_resp_connections", help, &[])?,
            accepted: counter("accepted_connections", "Connections that were accepted.")?,
            refused: counter(
                "refused_connections",
                "Connections beyond the most that there may be.",
            )?,
            late: counter(
                "late_connections",
                "Connections closed because no token, command or reading of a reply came in time.",
            )?,
            commands: counter("commands", "Commands of clients of Redis.")?,
            transactions: counter(
                "transactions",
                "Transactions of what one connection had sent.",
            )?,
            retries: counter("retries", "Transactions sent again after a conflict.")?,
            failed: counter("failed_transactions", "Transactions that failed.")?,
            expired: counter("expired_keys", "Expired keys removed in the background.")?,
        })
    }
}
