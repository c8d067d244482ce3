//! The table on its servers, opened for one load.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dyno_ingest::load::{Opening, Stage, StoredArchive, Target};
use dyno_ingest::scan::Columns;
use dyno_ingest_feeds::{Location, RowFormat, Rows};
use parking_lot::Mutex;

use crate::address::Address;
use crate::error::{Error, Result};
use crate::feed_rows::FeedRows;
use crate::http::{Client, Password, quoted};
use crate::ledger::{Entry, Ledger, Share, State};
use crate::native::Encode;
use crate::patience::Patience;
use crate::pressure::Pressure;
use crate::schema::{self, Column, Contract};
use crate::setup::{make_databases, make_tables};
use crate::spots::Spots;
use crate::stage::ServerStage;
use crate::swap::Tables;
use crate::writer_lock::WriterLock;

/// How to load into a server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The password of the user in the address.
    pub password: Password,
    /// Connections for each archive; each server gets at least one.
    pub connections: usize,
    /// Whether strings in a table that we create get dictionaries.
    pub dictionary_types: bool,
    /// Name of the cluster whose shards the servers are.
    pub cluster: Option<String>,
    /// How long to retry while a server is away or busy.
    pub patience: Duration,
    /// A flag that other threads set to end the load.
    pub stop: Arc<AtomicBool>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            password: Password::default(),
            connections: 1,
            dictionary_types: false,
            cluster: None,
            patience: Duration::from_secs(60),
            stop: Arc::default(),
        }
    }
}

impl Settings {
    /// Memory that an archive needs for each row of a chunk: columns with spare capacity, the
    /// order, and blocks being made, waiting and in flight.
    fn row_bytes(&self, address: &Address) -> usize {
        const COLUMNS: usize = 100;
        const ORDER: usize = 2 * 16 + 4;
        const FRAMES: usize = 102;
        COLUMNS + ORDER + FRAMES * (2 + self.senders(address))
    }

    /// How many times the bytes of a chunk of another feed are in memory: columns, order, indexes
    /// of values, and blocks being made, waiting and in flight.
    fn copies(&self, address: &Address) -> usize {
        2 + 2 + self.senders(address)
    }

    fn senders(&self, address: &Address) -> usize {
        self.connections.max(address.servers.len())
    }
}

/// A table that is open for writing. While it exists no other process loads into it.
pub struct ServerTable {
    pub(crate) clients: Vec<Arc<Client>>,
    pub(crate) address: Address,
    /// Name of the table that holds the rows, which differs if the named one is Distributed.
    pub(crate) local: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) ledger: Mutex<Ledger>,
    pub(crate) patience: Patience,
    /// For each server the parts per partition at which it delays inserts.
    parts_limits: Vec<u64>,
    pub(crate) senders: usize,
    pub(crate) writer: String,
    lock: Mutex<WriterLock>,
}

impl ServerTable {
    /// Opens a table for spots of WSPR: connects, creates what is missing, and completes what a
    /// killed load had begun.
    ///
    /// # Errors
    /// [`Error::Unreachable`], [`Error::Credentials`], [`Error::Permission`], [`Error::Schema`]
    /// when the table is another one, [`Error::Locked`] while another load lives,
    /// [`Error::Ledger`].
    pub fn open(address: &Address, settings: &Settings) -> Result<ServerTable> {
        ServerTable::open_as(&Contract::for_spots(), address, settings)
    }

    fn open_as(contract: &Contract, address: &Address, settings: &Settings) -> Result<ServerTable> {
        let patience = Patience {
            limit: settings.patience,
            stops: vec![settings.stop.clone()],
        };
        let clients: Vec<Arc<Client>> = Client::for_all_servers(address, &settings.password)?
            .into_iter()
            .map(Arc::new)
            .collect();
        let home = &clients[0];
        for client in &clients {
            // A server that cannot be reached at the beginning is not waited for.
            client.query("connect", "SELECT version()")?;
        }
        make_databases(&clients, address, settings)?;
        // The lock comes before the tables and the ledger, because the process that holds it may
        // change what is read without it.
        let lock = WriterLock::acquire(home, address, &patience)?;
        let local = make_tables(&clients, address, settings, contract)?;
        let mut columns = Vec::new();
        for client in &clients {
            let found = schema::columns(client, address, &local, contract)?;
            if contract.by_month {
                schema::check_time_zone(client, &address.full_name(""), &found)?;
            }
            if !columns.is_empty() && columns != found {
                return Err(Error::Schema {
                    table: address.full_name(""),
                    reason: format!("{} has other types than {}", client.server, home.server),
                });
            }
            columns = found;
        }
        let parts_limits = clients
            .iter()
            .map(|client| Pressure::limit(client))
            .collect::<Result<_>>()?;
        let ledger = Ledger::read(home, &address.full_name("_ledger"))?;
        let table = ServerTable {
            address: address.clone(),
            local,
            columns,
            ledger: Mutex::new(ledger),
            patience,
            parts_limits,
            senders: settings.senders(address),
            writer: WriterLock::writer()?,
            lock: Mutex::new(lock),
            clients,
        };
        table.finish_swaps()?;
        // What is still in state `swap` has lost its stages, so none is needed any more.
        table.drop_stages(&BTreeSet::new())?;
        Ok(table)
    }

    /// The server with the ledger, the quarantine and the lock.
    pub(crate) fn home(&self) -> &Arc<Client> {
        &self.clients[0]
    }

    pub(crate) fn tables<'a>(&'a self, client: &'a Arc<Client>) -> Tables<'a> {
        Tables {
            client,
            database: &self.address.database,
            patience: &self.patience,
        }
    }

    pub(crate) fn pressure(&self, server: usize, stage: &str) -> Pressure {
        Pressure::new(self.parts_limits[server], &self.address.database, stage)
    }

    /// The common prefix of the names of all stages of this table.
    pub(crate) fn stage_prefix(&self) -> String {
        format!("{}_dyno_stage_", self.address.table)
    }

    /// Carries out an entry in state `swap`. It may be repeated.
    pub(crate) fn carry_out(&self, entry: &Entry) -> Result<()> {
        // Every step can be repeated, so a kill between two of them does no harm: the next writer
        // begins again with the first.
        for share in &entry.shares {
            let client = self.client_of(&share.server)?;
            self.tables(client).swap(&self.local, share)?;
        }
        let quarantine = self.address.full_name("_quarantine");
        let archive = quoted(&entry.archive);
        let home = self.tables(self.home());
        let sql = match entry.quarantine_stage.as_str() {
            "" => format!("ALTER TABLE {quarantine} DROP PARTITION {archive}"),
            stage => format!(
                "ALTER TABLE {quarantine} REPLACE PARTITION {archive} FROM {}.{stage}",
                self.address.database
            ),
        };
        home.run("put bad rows aside", &sql)
    }

    fn client_of(&self, server: &str) -> Result<&Arc<Client>> {
        let client = self.clients.iter().find(|client| client.server == server);
        client.ok_or_else(|| Error::Ledger {
            ledger: self.address.full_name("_ledger"),
            reason: format!("an archive lies on {server}, which the address does not name"),
        })
    }

    /// Carries out what a killed load had decided. If its stages are gone, the archive counts as
    /// not loaded.
    fn finish_swaps(&self) -> Result<()> {
        let mut ledger = self.ledger.lock();
        let begun: Vec<Entry> = ledger
            .entries
            .values()
            .filter(|entry| entry.state == State::Swap)
            .cloned()
            .collect();
        for entry in begun {
            if !self.has_stages(&entry)? {
                continue;
            }
            self.carry_out(&entry)?;
            let done = Entry {
                state: State::Done,
                ..entry
            };
            ledger.append(self.home(), &self.patience, done)?;
        }
        Ok(())
    }

    fn has_stages(&self, entry: &Entry) -> Result<bool> {
        for share in entry.shares.iter().filter(|share| share.rows > 0) {
            let tables = self.tables(self.client_of(&share.server)?);
            let found = tables.partitions(&share.stage)?;
            let whole = |rows| rows == share.rows;
            let rows = found.iter().find(|p| p.id == share.partition);
            // A stage with fewer rows must not replace the partition, because the others would be
            // lost.
            if !rows.is_some_and(|p| whole(p.rows)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The stages of swaps that were decided and not completed, because a server failed meanwhile.
    fn stages_to_keep(&self) -> BTreeSet<String> {
        let ledger = self.ledger.lock();
        let entries = ledger.entries.values();
        let begun = entries.filter(|entry| entry.state == State::Swap);
        let stages = begun.flat_map(|entry| {
            let shares = entry.shares.iter().map(|share| &share.stage);
            shares.chain([&entry.quarantine_stage])
        });
        stages.cloned().collect()
    }

    /// Drops the stages on all servers, except those in `keep`. While we hold the lock no other
    /// process has any.
    fn drop_stages(&self, keep: &BTreeSet<String>) -> Result<()> {
        let prefix = self.stage_prefix();
        for client in &self.clients {
            let sql = format!(
                "SELECT name FROM system.tables WHERE database = {} AND startsWith(name, {})",
                quoted(&self.address.database),
                quoted(&prefix)
            );
            let action = "look for stages";
            let stages = self.patience.with(|| client.rows(action, &sql))?;
            for stage in stages.iter().flatten() {
                if !keep.contains(stage) {
                    self.drop_stage(client, stage)?;
                }
            }
        }
        Ok(())
    }

    /// Makes an empty stage by the statement `create`. An earlier attempt at the archive may have
    /// left a stage of this name with rows in it. While the server is away both statements are
    /// repeated, because a stage whose acknowledgement was lost is there already.
    pub(crate) fn make_stage(&self, client: &Arc<Client>, stage: &str, create: &str) -> Result<()> {
        self.patience.with(|| {
            self.drop_stage(client, stage)?;
            schema::make(client, "make a stage", create)
        })
    }

    pub(crate) fn drop_stage(&self, client: &Arc<Client>, stage: &str) -> Result<()> {
        let sql = format!("DROP TABLE IF EXISTS {}.{stage}", self.address.database);
        self.tables(client).run("remove a stage", &sql)
    }

    /// Rows that the servers have in the partitions of an archive.
    fn rows_of(&self, entry: &Entry) -> Result<u64> {
        let mut rows = 0;
        for client in &self.clients {
            let owned: BTreeMap<&str, u64> = entry
                .shares
                .iter()
                .filter(|share| share.server == client.server && share.rows > 0)
                .map(|share| (share.partition.as_str(), share.rows))
                .collect();
            for partition in self.tables(client).partitions(&self.local)? {
                if owned.contains_key(partition.id.as_str()) {
                    rows += partition.rows;
                }
            }
        }
        Ok(rows)
    }

    /// The archive that has rows in a partition of a server, by the ledger.
    pub(crate) fn owner<'l>(ledger: &'l Ledger, share: &Share) -> Option<&'l Entry> {
        let mut entries = ledger.entries.values();
        entries.find(|entry| entry.rows_in(&share.server, &share.partition) > 0)
    }
}

/// A table that is open for chunks of one kind, which `encoder` makes blocks of, given the archive.
struct Opened<F> {
    table: ServerTable,
    encoder: F,
}

impl<E: Encode + 'static, F: Fn(&str) -> E + Sync> Target<E::Rows> for Opened<F> {
    /// If rows were removed or added by hand, the archive counts as not loaded, so that a load
    /// repairs the table.
    fn stored(&self, archive: &str) -> dyno_ingest::Result<Option<StoredArchive>> {
        let entry = self.table.ledger.lock().entries.get(archive).cloned();
        let Some(entry) = entry.filter(|entry| entry.state == State::Done) else {
            return Ok(None);
        };
        let whole = self.table.rows_of(&entry)? == entry.rows;
        Ok(whole.then_some(StoredArchive {
            bytes: entry.source.bytes,
            hash: entry.source.hash,
            rows: entry.rows,
        }))
    }

    fn stage<'a>(
        &'a self,
        archive: &str,
        source: &Path,
    ) -> dyno_ingest::Result<Box<dyn Stage<E::Rows> + 'a>> {
        let encoder = (self.encoder)(archive);
        let stage = ServerStage::begin(&self.table, archive, source, encoder)?;
        Ok(Box::new(stage))
    }

    fn finish(&self) -> dyno_ingest::Result<()> {
        // A swap that failed half-way can only be completed from its stages, by the next writer.
        // Without them some partitions of the archive would stay new and the others old.
        self.table.drop_stages(&self.table.stages_to_keep())?;
        Ok(self.table.lock.lock().release()?)
    }
}

/// The location of a table on servers.
pub struct Servers {
    /// The servers, the database and the table.
    pub address: Address,
    /// How to load into them.
    pub settings: Settings,
}

impl Servers {
    fn opening<'a, E: Encode + 'static>(
        &'a self,
        each_bytes: usize,
        contract: Contract,
        encoder: impl Fn(&str) -> E + Sync + 'a,
    ) -> Opening<'a, E::Rows> {
        Opening {
            each_bytes,
            open: Box::new(move || {
                let table = ServerTable::open_as(&contract, &self.address, &self.settings)?;
                Ok(Box::new(Opened { table, encoder }))
            }),
        }
    }
}

impl Location for Servers {
    fn spots(&self) -> Opening<'_, Columns> {
        let row_bytes = self.settings.row_bytes(&self.address);
        self.opening(row_bytes, Contract::for_spots(), |_| Spots::default())
    }

    fn rows(&self, _feed: &'static str, format: &'static RowFormat) -> Opening<'_, Rows> {
        let copies = self.settings.copies(&self.address);
        let encoder = move |archive: &str| FeedRows::new(format.layout, archive);
        self.opening(copies, Contract::from_format(format), encoder)
    }
}

pub(crate) fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
