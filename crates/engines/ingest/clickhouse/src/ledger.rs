//! The ledger: which archives are in the table, in which partitions of which servers.
//!
//! It is a table of the database that is only appended to; an archive's last row counts. State
//! `swap` says what is about to be put into the table and from which stages, so that the next
//! writer can repeat it after a kill. State `done` says that it is there.

use std::collections::BTreeMap;

use dyno_ingest::table::SourceIdentity;

use crate::error::{Error, Result};
use crate::http::{Client, quoted};
use crate::patience::Patience;

/// The version that this program writes; a newer one is refused by name.
pub const LEDGER_VERSION: u64 = 1;

const COLUMNS: [(&str, &str); 14] = [
    ("version", "UInt16"),
    ("generation", "UInt64"),
    ("archive", "String"),
    ("state", "String"),
    ("source_path", "String"),
    ("source_bytes", "UInt64"),
    ("source_hash", "String"),
    ("rows", "UInt64"),
    ("bad_rows", "UInt64"),
    ("table_bytes", "UInt64"),
    ("partitions", "String"),
    ("quarantine_stage", "String"),
    ("loaded_at_s", "UInt64"),
    ("writer", "String"),
];

/// Whether an archive is in the table or being put into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The swap has been decided and may be under way.
    Swap,
    /// All partitions have been swapped in.
    Done,
}

/// One partition on one server that an archive occupies or used to occupy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Host and port of the server.
    pub server: String,
    /// ClickHouse's ID of the partition.
    pub partition: String,
    /// Rows of the archive in it; 0 if the archive no longer has rows there.
    pub rows: u64,
    /// The stage that it is swapped from.
    pub stage: String,
}

/// A row of the ledger: the state of one archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Increases with every row of the ledger, so the last row of an archive is known.
    pub generation: u64,
    /// The archive's identity, the key of the ledger.
    pub archive: String,
    /// Whether the swap is decided or done.
    pub state: State,
    /// Name, length and hash of the file that was read.
    pub source: SourceIdentity,
    /// Rows that were put into the table.
    pub rows: u64,
    /// Rows that were put into quarantine.
    pub bad_rows: u64,
    /// Compressed bytes on the servers' disks at the time of the swap.
    pub table_bytes: u64,
    /// The partitions that hold its rows.
    pub shares: Vec<Share>,
    /// The stage of its bad rows; empty if there are none.
    pub quarantine_stage: String,
    /// When it was loaded, in Unix seconds.
    pub loaded_at_s: u64,
    /// The process that loaded it.
    pub writer: String,
}

impl Entry {
    /// The statement that appends this row to `ledger`.
    fn insert(&self, ledger: &str) -> String {
        let names: Vec<&str> = COLUMNS.iter().map(|&(name, _)| name).collect();
        let state = match self.state {
            State::Swap => "swap",
            State::Done => "done",
        };
        let shares: Vec<String> = self
            .shares
            .iter()
            .map(|s| format!("{} {} {} {}", s.server, s.partition, s.rows, s.stage))
            .collect();
        let values = [
            LEDGER_VERSION.to_string(),
            self.generation.to_string(),
            quoted(&self.archive),
            quoted(state),
            quoted(&self.source.path),
            self.source.bytes.to_string(),
            quoted(&self.source.hash),
            self.rows.to_string(),
            self.bad_rows.to_string(),
            self.table_bytes.to_string(),
            quoted(&shares.join("\n")),
            quoted(&self.quarantine_stage),
            self.loaded_at_s.to_string(),
            quoted(&self.writer),
        ];
        let (names, values) = (names.join(", "), values.join(", "));
        format!("INSERT INTO {ledger} ({names}) VALUES ({values})")
    }

    fn from_values(values: &[String]) -> Option<Entry> {
        let number = |at: usize| values.get(at)?.parse::<u64>().ok();
        let text = |at: usize| values.get(at).cloned();
        let share = |line: &str| {
            let mut words = line.split(' ');
            Some(Share {
                server: words.next()?.to_owned(),
                partition: words.next()?.to_owned(),
                rows: words.next()?.parse().ok()?,
                stage: words.next()?.to_owned(),
            })
        };
        Some(Entry {
            generation: number(1)?,
            archive: text(2)?,
            state: match text(3)?.as_str() {
                "swap" => State::Swap,
                "done" => State::Done,
                _ => return None,
            },
            source: SourceIdentity {
                path: text(4)?,
                bytes: number(5)?,
                hash: text(6)?,
            },
            rows: number(7)?,
            bad_rows: number(8)?,
            table_bytes: number(9)?,
            shares: text(10)?.lines().map(share).collect::<Option<_>>()?,
            quarantine_stage: text(11)?,
            loaded_at_s: number(12)?,
            writer: text(13)?,
        })
    }

    /// Rows of the archive in a partition of a server.
    pub(crate) fn rows_in(&self, server: &str, partition: &str) -> u64 {
        let here = |share: &&Share| share.server == server && share.partition == partition;
        self.shares.iter().find(here).map_or(0, |share| share.rows)
    }
}

/// The rows of the ledger, and the name of its table.
#[derive(Debug)]
pub(crate) struct Ledger {
    table: String,
    /// The last row of each archive, by identity.
    pub entries: BTreeMap<String, Entry>,
    generation: u64,
}

impl Ledger {
    /// A ledger without rows, whose table is `table`.
    pub fn empty(table: &str) -> Ledger {
        Ledger {
            table: table.to_owned(),
            entries: BTreeMap::new(),
            generation: 0,
        }
    }

    /// Creates the table `table` if it is missing.
    pub fn make(client: &Client, table: &str) -> Result<()> {
        let columns = COLUMNS.map(|(name, kind)| format!("{name} {kind}"));
        let sql = format!(
            "CREATE TABLE IF NOT EXISTS {table} ({}) ENGINE = MergeTree ORDER BY generation",
            columns.join(", ")
        );
        client.query("make the ledger", &sql).map(drop)
    }

    /// Reads the ledger from `table`.
    pub fn read(client: &Client, table: &str) -> Result<Ledger> {
        let wrong = |reason: String| Error::Ledger {
            ledger: table.to_owned(),
            reason,
        };
        // Rows of a newer version may have other meanings, so they are refused before the first is
        // read.
        let newest = format!("SELECT max(version) FROM {table}");
        let newest = client.number("read the ledger", &newest)?;
        if newest > LEDGER_VERSION {
            return Err(wrong(format!(
                "it has rows of version {newest}, this program reads version {LEDGER_VERSION}"
            )));
        }
        let names = COLUMNS.map(|(name, _)| name).join(", ");
        let sql = format!("SELECT {names} FROM {table} ORDER BY generation");
        let mut ledger = Ledger::empty(table);
        for values in client.rows("read the ledger", &sql)? {
            let entry = Entry::from_values(&values);
            let entry = entry.ok_or_else(|| {
                wrong(format!("it has a row that is not one of ours: {values:?}"))
            })?;
            ledger.generation = ledger.generation.max(entry.generation);
            // Rows come in the order of generations, so the last row of an archive replaces the
            // earlier ones.
            ledger.entries.insert(entry.archive.clone(), entry);
        }
        Ok(ledger)
    }

    /// Appends `entry` once, with the next generation, and remembers it.
    pub fn append(&mut self, client: &Client, patience: &Patience, mut entry: Entry) -> Result<()> {
        // The generation is used up even if this fails, because the row may have arrived all the
        // same. The next entry must not take that row for its own.
        self.generation += 1;
        entry.generation = self.generation;
        let insert = entry.insert(&self.table);
        let there = format!(
            "SELECT count() FROM {} WHERE generation = {}",
            self.table, entry.generation
        );
        let action = "write the ledger";
        let mut tried = false;
        patience.with(|| {
            // Only one process writes, so a row with this generation is our own, whose answer was
            // lost.
            if std::mem::replace(&mut tried, true) && client.number(action, &there)? > 0 {
                return Ok(());
            }
            client.query(action, &insert).map(drop)
        })?;
        self.entries.insert(entry.archive.clone(), entry);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
