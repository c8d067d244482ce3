//! Moves stages into the table by swapping partitions, which can be repeated without a further
//! effect.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::http::{Client, quoted};
use crate::ledger::Share;
use crate::patience::{Patience, Waiting};

/// How often a partition is swapped again when replaced parts come back.
const SWAPS_MOST: u32 = 5;
/// ClickHouse's code for a directory that exists and should not.
const DIRECTORY_EXISTS: i32 = 84;
/// How many such directories are expected at most; a swap leaves one for each part.
const DIRECTORIES_MOST: u32 = 100;

/// ID, rows and bytes of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Partition {
    pub id: String,
    pub rows: u64,
    pub bytes: u64,
}

/// The tables of a database on one server.
pub(crate) struct Tables<'a> {
    pub client: &'a Arc<Client>,
    pub database: &'a str,
    pub patience: &'a Patience,
}

impl Tables<'_> {
    fn parts_clause(&self, table: &str) -> String {
        format!(
            "FROM system.parts WHERE database = {} AND table = {}",
            quoted(self.database),
            quoted(table)
        )
    }

    /// The partitions of `table` that have rows.
    pub fn partitions(&self, table: &str) -> Result<Vec<Partition>> {
        let sql = format!(
            "SELECT partition_id, sum(rows), sum(bytes_on_disk) {} AND active \
             GROUP BY partition_id ORDER BY partition_id",
            self.parts_clause(table)
        );
        let action = "look at the partitions";
        let rows = self.patience.with(|| self.client.rows(action, &sql))?;
        let partition = |row: &Vec<String>| {
            let number = |at: usize| row.get(at)?.parse().ok();
            Some(Partition {
                id: row.first()?.clone(),
                rows: number(1)?,
                bytes: number(2)?,
            })
        };
        rows.iter()
            .map(|row| partition(row).ok_or_else(|| self.client.odd(action, &row.join(" "))))
            .filter(|partition| !matches!(partition, Ok(p) if p.rows == 0))
            .collect()
    }

    fn rows_in(&self, table: &str, partition: &str) -> Result<u64> {
        let sql = format!(
            "SELECT sum(rows) {} AND active AND partition_id = {}",
            self.parts_clause(table),
            quoted(partition)
        );
        let client = self.client;
        self.patience
            .with(|| client.number("count a partition", &sql))
    }

    /// Repeats a statement until it succeeds; it must be idempotent.
    pub fn run(&self, action: &str, sql: &str) -> Result<()> {
        self.patience
            .with(|| self.client.query(action, sql))
            .map(drop)
    }

    /// Moves all rows of the stage `from` to the stage `to`, each once. Parts are linked, not
    /// copied.
    pub fn gather(&self, from: &str, to: &str) -> Result<()> {
        for partition in self.partitions(from)? {
            let id = &partition.id;
            let before = self.rows_in(to, id)?;
            let sql = format!(
                "ALTER TABLE {0}.{to} ATTACH PARTITION ID {1} FROM {0}.{from}",
                self.database,
                quoted(id)
            );
            // Attaching a partition twice would double its rows. So after a lost answer the count
            // decides whether the first attempt has attached it.
            let mut tried = false;
            self.patience.with(|| {
                if std::mem::replace(&mut tried, true)
                    && self.rows_in(to, id)? == before + partition.rows
                {
                    return Ok(());
                }
                self.client.query("gather the stages", &sql).map(drop)
            })?;
            self.expect_rows(to, id, before + partition.rows)?;
        }
        Ok(())
    }

    /// Makes a partition of `table` hold what `share` says.
    pub fn swap(&self, table: &str, share: &Share) -> Result<()> {
        for _attempt in 1..SWAPS_MOST {
            self.swap_once(table, share)?;
            if self.rows_in(table, &share.partition)? == share.rows {
                return Ok(());
            }
        }
        self.swap_once(table, share)?;
        self.expect_rows(table, &share.partition, share.rows)
    }

    fn swap_once(&self, table: &str, share: &Share) -> Result<()> {
        let id = quoted(&share.partition);
        let sql = format!(
            "SELECT name {} AND active AND partition_id = {id}",
            self.parts_clause(table)
        );
        // The names are read before the swap, because after it the parts are no longer listed as
        // active.
        let action = "look at the parts to replace";
        let before = self.patience.with(|| self.client.rows(action, &sql))?;
        let database = self.database;
        let sql = match share.rows {
            0 => format!("ALTER TABLE {database}.{table} DROP PARTITION ID {id}"),
            // This links the parts of the stage and leaves them there, so that it can be repeated.
            _ => format!(
                "ALTER TABLE {database}.{table} REPLACE PARTITION ID {id} FROM {database}.{}",
                share.stage
            ),
        };
        self.replace(&sql)?;
        let names: Vec<String> = before.iter().flatten().map(|name| quoted(name)).collect();
        match names.as_slice() {
            [] => Ok(()),
            names => self.wait_until_gone(table, &names.join(", ")),
        }
    }

    /// A server that is killed during a swap leaves a directory behind, named after the number of
    /// the swap in its process. It removes those when it starts, unless it starts within the second
    /// of the kill, and otherwise after a day. Until then the first swaps of the new process would
    /// use the same names. So the swap is repeated, because each attempt has the next number.
    fn replace(&self, sql: &str) -> Result<()> {
        let mut replaced = Ok(());
        for _number in 0..DIRECTORIES_MOST {
            replaced = self.run("swap a partition", sql);
            match &replaced {
                Err(Error::Refused { code, .. }) if *code == DIRECTORY_EXISTS => {}
                _ => break,
            }
        }
        replaced
    }

    /// Waits until the parts that were replaced are gone. A server that is killed before it has
    /// removed them from its disk finds them when it starts, beside those that replaced them. If
    /// they are back, the swap has to be repeated. If a query reads them for longer than a load
    /// should wait, the next load finds out, because it counts the rows.
    fn wait_until_gone(&self, table: &str, names: &str) -> Result<()> {
        let of_them = format!("{} AND name IN ({names})", self.parts_clause(table));
        let back = format!("SELECT count() {of_them} AND active");
        let left = format!("SELECT count() {of_them}");
        let client = self.client;
        let mut waiting = Waiting::new(self.patience);
        loop {
            let action = "wait until replaced parts are gone";
            let ask = |sql: &str| self.patience.with(|| client.number(action, sql));
            let left = ask(&left)?;
            if left == 0 || ask(&back)? > 0 {
                return Ok(());
            }
            let busy = Error::Busy {
                server: client.server.clone(),
                action: action.to_owned(),
                code: 0,
                message: format!("{left} of them are still on its disk"),
            };
            match waiting.wait(busy) {
                Err(Error::Busy { .. }) => return Ok(()),
                other => other?,
            }
        }
    }

    fn expect_rows(&self, table: &str, partition: &str, expected: u64) -> Result<()> {
        match self.rows_in(table, partition)? {
            found if found == expected => Ok(()),
            found => Err(Error::Torn {
                server: self.client.server.clone(),
                stage: format!("{}.{table}, partition {partition},", self.database),
                found,
                expected,
            }),
        }
    }
}
