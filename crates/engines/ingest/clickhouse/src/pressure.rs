//! Back-pressure: the load waits for a server that falls behind with merging, before the server has
//! to refuse inserts.
//!
//! Every block becomes a part, and the server merges parts in the background. Beyond a number of
//! parts in one partition it delays inserts (`parts_to_delay_insert`), beyond a second one it
//! refuses them.

use crate::error::{Error, Result};
use crate::http::{Client, quoted};
use crate::patience::{Patience, Waiting};

/// The number of parts in a partition of one table at which to wait.
pub(crate) struct Pressure {
    count: String,
    limit: u64,
}

/// What was observed before one block.
pub(crate) struct Pressed {
    pub waited_s: f64,
    pub parts_most: u64,
}

impl Pressure {
    /// Watches the stage `table` against the limit of its server.
    pub fn new(limit: u64, database: &str, table: &str) -> Pressure {
        let count = format!(
            "SELECT max(parts) FROM (SELECT count() AS parts FROM system.parts \
             WHERE active AND database = {} AND table = {} GROUP BY partition_id)",
            quoted(database),
            quoted(table)
        );
        Pressure { count, limit }
    }

    /// Parts per partition at which a server begins to delay inserts.
    pub fn limit(client: &Client) -> Result<u64> {
        let sql =
            "SELECT value FROM system.merge_tree_settings WHERE name = 'parts_to_delay_insert'";
        client.number("ask for the limit of parts", sql)
    }

    /// Waits while the stage has so many parts that the server would delay, as long as merging
    /// makes progress. If it makes none, the server decides by itself.
    pub fn obey(&self, client: &Client, patience: &Patience) -> Result<Pressed> {
        let mut waiting = Waiting::new(patience);
        let mut waited_s = 0.0;
        let mut parts_most = 0;
        loop {
            let action = "count the parts of the stage";
            // Without parts the answer is empty or 0, depending on the version.
            let text = patience.with(|| client.query(action, &self.count))?;
            let parts = match text.trim() {
                "" => 0,
                text => text.parse().map_err(|_| client.odd(action, text))?,
            };
            parts_most = parts_most.max(parts);
            if parts < self.limit {
                break;
            }
            let busy = Error::Busy {
                server: client.server.clone(),
                action: "insert a block".to_owned(),
                code: 0,
                message: format!("{parts} parts wait to be merged"),
            };
            match waiting.wait(busy) {
                Ok(()) => waited_s = waiting.seconds(),
                // Time is up. The server now delays the insert or refuses it, which the sender
                // handles.
                Err(Error::Busy { .. }) => break,
                Err(other) => return Err(other),
            }
        }
        Ok(Pressed {
            waited_s,
            parts_most,
        })
    }
}
