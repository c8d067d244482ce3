//! One archive's way into the database: chunks become blocks, blocks fill stages, and a swap puts
//! them into the table.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use dyno_codec::clickhouse::FrameWriter;
use dyno_ingest::load::{Before, Committed, Stage, StageSeconds};
use dyno_ingest::scan::BadRow;
use dyno_ingest::table::SourceIdentity;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::ledger::{Entry, Ledger, Share, State};
use crate::native::Encode;
use crate::quarantine::{self, Quarantine};
use crate::schema;
use crate::sender::{Block, Sender, Shared};
use crate::table::{ServerTable, now_s};

/// One sender's thread and its stage.
struct SenderThread {
    /// Index of the server in the address.
    server: usize,
    /// The stage's name in its database.
    stage: String,
    thread: JoinHandle<u64>,
}

/// An archive that is being loaded.
pub(crate) struct ServerStage<'a, E> {
    table: &'a ServerTable,
    archive: String,
    /// The common prefix of the names of its stages.
    tag: String,
    senders: Vec<SenderThread>,
    /// Server and name of every stage that was created.
    made: Vec<(usize, String)>,
    blocks: Option<SyncSender<Block>>,
    shared: Arc<Shared>,
    abandoned: Arc<AtomicBool>,
    encoder: E,
    frames: FrameWriter,
    quarantine: Quarantine<'a>,
    rows: u64,
}

impl<'a, E: Encode> ServerStage<'a, E> {
    /// Creates the stages and starts a sender for each; `encoder` makes the blocks.
    pub fn begin(
        table: &'a ServerTable,
        archive: &str,
        source: &Path,
        encoder: E,
    ) -> Result<ServerStage<'a, E>> {
        let hash = twox_hash::XxHash3_128::oneshot(archive.as_bytes()) as u64;
        let tag = format!("{}{hash:016x}", table.stage_prefix());
        let load = format!("{}-{}", std::process::id(), now_s());
        // All senders take from one queue, so a slow server gets fewer blocks. It holds one block
        // only: when all senders are busy, encoding waits, which bounds the memory.
        let (blocks, taken) = sync_channel::<Block>(1);
        let taken = Arc::new(Mutex::new(taken));
        let abandoned = Arc::new(AtomicBool::new(false));
        let quarantine = {
            let (tag, load) = (tag.clone(), load.clone());
            Quarantine::new(
                archive,
                source,
                Box::new(move || quarantine_sender(table, &tag, &load)),
            )
        };
        let mut stage = ServerStage {
            table,
            archive: archive.to_owned(),
            tag,
            senders: Vec::new(),
            made: Vec::new(),
            blocks: Some(blocks),
            shared: Arc::default(),
            abandoned,
            encoder,
            frames: FrameWriter::new(Vec::new()),
            quarantine,
            rows: 0,
        };
        for number in 0..table.senders {
            // If one cannot be started, dropping `stage` ends those that were.
            let sender = stage.start(number, &load, &taken)?;
            stage.made.push((sender.server, sender.stage.clone()));
            stage.senders.push(sender);
        }
        Ok(stage)
    }

    fn start(
        &self,
        number: usize,
        load: &str,
        blocks: &Arc<Mutex<Receiver<Block>>>,
    ) -> Result<SenderThread> {
        let table = self.table;
        let server = number % table.clients.len();
        let client = &table.clients[server];
        let stage = format!("{}_{number}", self.tag);
        let database = &table.address.database;
        let sql = format!(
            // Parts can only be moved between tables of one structure, so the stage copies that of
            // the table.
            "CREATE TABLE {database}.{stage} AS {database}.{}",
            table.local
        );
        table.make_stage(client, &stage, &sql)?;
        let full_name = format!("{database}.{stage}");
        let sender = Sender {
            client: client.clone(),
            sql: format!(
                "INSERT INTO {full_name} ({}) FORMAT Native",
                schema::names(&table.columns)
            ),
            stage: full_name,
            load: load.to_owned(),
            pressure: table.pressure(server, &stage),
            patience: table.patience.and(&self.abandoned),
            sent: 0,
            blocks: 0,
        };
        let (blocks, shared) = (blocks.clone(), self.shared.clone());
        let thread = std::thread::Builder::new()
            .name(format!("send-{number}"))
            .spawn(move || sender.run(&blocks, &shared))
            .map_err(|e| Error::Here {
                action: "start a thread",
                reason: e.to_string(),
            })?;
        Ok(SenderThread {
            server,
            stage,
            thread,
        })
    }

    /// Passes the rows `order` on as one block.
    fn send(&mut self, rows: &E::Rows, order: &[u32], stages: &mut StageSeconds) -> Result<()> {
        let begun = Instant::now();
        let Self {
            encoder, frames, ..
        } = self;
        encoder.block(rows, order, &self.table.columns, frames);
        let block = Block {
            rows: order.len() as u64,
            frames: frames.finish(self.shared.memory()),
        };
        self.rows += block.rows;
        stages.encode += begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let blocks = self
            .blocks
            .as_ref()
            .expect("blocks are taken until the end");
        let sent = blocks.send(block);
        stages.write += begun.elapsed().as_secs_f64();
        // The channel closes when the last sender has ended, which before the end happens only
        // after a failure.
        if sent.is_err() || self.shared.has_failed() {
            return Err(self.failure());
        }
        Ok(())
    }

    fn failure(&self) -> Error {
        self.shared.take_failure().unwrap_or(Error::Stopped)
    }

    /// Waits until all blocks have arrived, then gathers the stages of each server into one and
    /// returns those.
    fn gather(&mut self) -> Result<Vec<(usize, String)>> {
        // The senders end when the channel is closed and empty.
        self.blocks = None;
        let mut gathered: Vec<(usize, String)> = Vec::new();
        let mut ended = Vec::new();
        for sender in std::mem::take(&mut self.senders) {
            match sender.thread.join() {
                Ok(rows) => ended.push((sender.server, sender.stage, rows)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        if self.shared.has_failed() {
            return Err(self.failure());
        }
        for (server, stage, rows) in ended {
            match gathered.iter().find(|(known, _)| *known == server) {
                Some((_, into)) if rows > 0 => {
                    let tables = self.table.tables(&self.table.clients[server]);
                    tables.gather(&stage, into)?;
                }
                Some(_) => {}
                None => gathered.push((server, stage)),
            }
        }
        Ok(gathered)
    }

    /// The partitions that the table will hold of the archive.
    fn shares(&self, gathered: &[(usize, String)]) -> Result<(Vec<Share>, u64)> {
        let mut shares = Vec::new();
        let mut bytes = 0;
        for (server, stage) in gathered {
            let client = &self.table.clients[*server];
            for partition in self.table.tables(client).partitions(stage)? {
                bytes += partition.bytes;
                shares.push(Share {
                    server: client.server.clone(),
                    partition: partition.id,
                    rows: partition.rows,
                    stage: stage.clone(),
                });
            }
        }
        let rows = shares.iter().map(|share| share.rows).sum::<u64>();
        // This is the last check before the commit. Rows that were lost or doubled while the stages
        // were gathered show here.
        if rows != self.rows {
            return Err(Error::Torn {
                server: self.table.address.servers.join(","),
                stage: self.tag.clone(),
                found: rows,
                expected: self.rows,
            });
        }
        Ok((shares, bytes))
    }

    /// Fails if a partition to be swapped has rows other than the archive's own.
    fn check_owner(&self, ledger: &Ledger, share: &Share) -> Result<()> {
        let foreign = |rows, owner: &str| Error::Partition {
            table: self.table.address.full_name(""),
            partition: share.partition.clone(),
            rows,
            owner: owner.to_owned(),
        };
        if let Some(entry) = ServerTable::owner(ledger, share) {
            return if entry.archive == self.archive {
                Ok(())
            } else {
                let rows = entry.rows_in(&share.server, &share.partition);
                Err(foreign(rows, &format!("archive {}", entry.archive)))
            };
        }
        // The ledger knows no archive in this partition, so rows in it are from another writer.
        let mut clients = self.table.clients.iter();
        let Some(client) = clients.find(|client| client.server == share.server) else {
            return Ok(());
        };
        let found = self.table.tables(client).partitions(&self.table.local)?;
        match found.iter().find(|found| found.id == share.partition) {
            Some(found) => Err(foreign(found.rows, "a writer that is not in the ledger")),
            None => Ok(()),
        }
    }

    /// Does everything that may still fail, then writes the ledger, swaps, and writes the ledger
    /// again.
    fn put_into_table(&mut self, source: SourceIdentity) -> Result<Committed> {
        let gathered = self.gather()?;
        let quarantine_stage = self.quarantine.finish()?.map(|full_name| {
            let name = full_name.split_once('.');
            name.map_or(full_name, |(_, name)| name).to_owned()
        });
        let (mut shares, table_bytes) = self.shares(&gathered)?;
        let table = self.table;
        // The lock is held until `done` is written, so archives are swapped one after the other,
        // and the checks below stay true until the swap.
        let mut ledger = table.ledger.lock();
        for share in &shares {
            self.check_owner(&ledger, share)?;
        }
        let before = ledger.entries.get(&self.archive).cloned();
        for old in before.iter().flat_map(|entry| &entry.shares) {
            let again = |s: &Share| s.server == old.server && s.partition == old.partition;
            // The archive may have had rows in a partition that its new form does not reach. A
            // share of 0 rows makes the swap empty it; otherwise the old rows would stay.
            if !shares.iter().any(again) {
                shares.push(Share {
                    rows: 0,
                    stage: "-".to_owned(),
                    ..old.clone()
                });
            }
        }
        let entry = Entry {
            generation: 0,
            archive: self.archive.clone(),
            state: State::Swap,
            source,
            rows: self.rows,
            bad_rows: self.quarantine.rows(),
            table_bytes,
            shares,
            quarantine_stage: quarantine_stage.unwrap_or_default(),
            loaded_at_s: now_s(),
            writer: table.writer.clone(),
        };
        // This is the commit. Before it a kill leaves the table as it was, and the next load drops
        // the stages. After it the next load repeats the swap from the stages that the entry names,
        // so they must not be dropped before `done` is written.
        ledger.append(table.home(), &table.patience, entry.clone())?;
        table.carry_out(&entry)?;
        let done = Entry {
            state: State::Done,
            loaded_at_s: now_s(),
            ..entry
        };
        ledger.append(table.home(), &table.patience, done)?;
        drop(ledger);
        // The table has its own links to the parts, and the server would merge those of the stages
        // for nothing.
        for (server, stage) in &self.made {
            table.drop_stage(&table.clients[*server], stage)?;
        }
        Ok(Committed {
            rows: self.rows,
            table_bytes,
            before: match before {
                Some(_) => Before::Earlier,
                None => Before::Nothing,
            },
            server: Some(self.shared.report()),
        })
    }
}

impl<E: Encode> Stage<E::Rows> for ServerStage<'_, E> {
    fn append(&mut self, rows: &E::Rows, stages: &mut StageSeconds) -> dyno_ingest::Result<u64> {
        let begun = Instant::now();
        let quarantine = &mut self.quarantine;
        let columns = &self.table.columns;
        let order = self
            .encoder
            .sorted(rows, columns, &mut |row| quarantine.add(&row));
        let pieces = self.encoder.pieces(rows, &order);
        stages.encode += begun.elapsed().as_secs_f64();
        for piece in pieces {
            self.send(rows, &order[piece], stages)?;
        }
        Ok(order.len() as u64)
    }

    fn put_aside(&mut self, row: &BadRow<'_>) {
        self.quarantine.add(row);
    }

    fn bad_rows(&self) -> u64 {
        self.quarantine.rows()
    }

    fn reject(mut self: Box<Self>) -> dyno_ingest::Result<PathBuf> {
        let kept = self.table.address.full_name("_rejected");
        let stage = self.quarantine.finish()?.map(str::to_owned);
        if let Some(stage) = stage {
            let home = self.table.tables(self.table.home());
            home.run(
                "make the table of rejected rows",
                &quarantine::create(&kept),
            )?;
            let archive = crate::http::quoted(&self.archive);
            let sql = format!("ALTER TABLE {kept} REPLACE PARTITION {archive} FROM {stage}");
            home.run("keep rejected rows", &sql)?;
        }
        Ok(PathBuf::from(kept))
    }

    fn commit(
        mut self: Box<Self>,
        source: SourceIdentity,
        stages: &mut StageSeconds,
    ) -> dyno_ingest::Result<Committed> {
        let begun = Instant::now();
        let committed = self.put_into_table(source)?;
        stages.write += begun.elapsed().as_secs_f64();
        Ok(committed)
    }
}

impl<E> Drop for ServerStage<'_, E> {
    /// Stops the senders. Their stages are dropped when the load ends, or by the next one.
    fn drop(&mut self) {
        self.abandoned.store(true, Ordering::Relaxed);
        self.blocks = None;
        for sender in self.senders.drain(..) {
            // A sender that panicked has printed why, and holds no resources.
            let _ended = sender.thread.join();
        }
    }
}

fn quarantine_sender(table: &ServerTable, tag: &str, load: &str) -> Result<Sender> {
    let client = table.home();
    let name = format!("{tag}_bad");
    let full_name = format!("{}.{name}", table.address.database);
    table.make_stage(client, &name, &quarantine::create(&full_name))?;
    Ok(Sender {
        client: client.clone(),
        sql: format!(
            "INSERT INTO {full_name} ({}) FORMAT Native",
            quarantine::names()
        ),
        stage: full_name,
        load: load.to_owned(),
        pressure: table.pressure(0, &name),
        patience: table.patience.clone(),
        sent: 0,
        blocks: 0,
    })
}
