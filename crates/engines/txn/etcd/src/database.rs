//! An etcd cluster as a [`Database`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dyno_txn_api::{
    Code, Committed, Database, Description, Error, Options, Procedures, Request, Result, Table,
    TableDef, TableId, Transaction,
};

use crate::catalogue::Catalogue;
use crate::client::Client;
use crate::transaction::Optimistic;

/// Settings for the use of a cluster.
#[derive(Debug, Clone)]
pub struct EtcdOptions {
    /// How long connecting to one endpoint may take.
    pub connect_wait: Duration,
    /// The most reads in one request. etcd counts them like writes, so this must not be above the
    /// cluster's `--max-txn-ops`.
    pub reads_max: usize,
    /// The procedures that can be called. They run in this process.
    pub procedures: Procedures,
}

impl Default for EtcdOptions {
    fn default() -> EtcdOptions {
        EtcdOptions {
            connect_wait: Duration::from_secs(2),
            reads_max: 128,
            procedures: Procedures::new(),
        }
    }
}

/// An etcd cluster as a database.
pub struct Etcd {
    pub(crate) client: Client,
    pub(crate) catalogue: Catalogue,
    pub(crate) options: EtcdOptions,
    pub(crate) counts: Counts,
}

/// Counters since the database was opened.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub committed: AtomicU64,
    pub conflicts: AtomicU64,
    pub requests: AtomicU64,
}

impl Etcd {
    /// Uses the cluster at these addresses, each as `HOST:PORT`. It connects only when a call needs
    /// it.
    pub fn open(addresses: &[String], options: EtcdOptions) -> Result<Etcd> {
        Ok(Etcd {
            client: Client::new(addresses, options.connect_wait)?,
            catalogue: Catalogue::default(),
            options,
            counts: Counts::default(),
        })
    }
}

impl Database for Etcd {
    fn create_table(&self, def: &TableDef) -> Result<TableId> {
        self.catalogue.create(&self.client, def)
    }

    fn tables(&self) -> Result<Vec<Table>> {
        self.catalogue.all(&self.client)
    }

    fn table(&self, name: &str) -> Result<Table> {
        self.catalogue.named(&self.client, name)
    }

    fn begin(&self, options: &Options) -> Result<Box<dyn Transaction + '_>> {
        Ok(Box::new(Optimistic::begin(self, options)))
    }

    fn execute(&self, request: Request, options: &Options) -> Result<Committed> {
        let mut transaction = Optimistic::begin(self, options);
        let (answers, returned) = match request {
            Request::Operations(operations) => (transaction.batch(&operations)?, Vec::new()),
            Request::Call {
                procedure,
                arguments,
                ..
            } => {
                let procedure = self.options.procedures.get(&procedure)?;
                (Vec::new(), procedure.run(&mut transaction, &arguments)?)
            }
        };
        Ok(Committed {
            timestamp: transaction.finish()?,
            answers,
            returned,
        })
    }

    fn describe(&self) -> Result<Description> {
        Ok(Description {
            engine: "etcd".to_owned(),
            isolation: "strict serializable".to_owned(),
            durability: "fsync on a majority of the members".to_owned(),
            partitions: 1,
            procedures: true,
        })
    }

    fn stats(&self) -> Result<Vec<(String, u64)>> {
        let Counts {
            committed,
            conflicts,
            requests,
        } = &self.counts;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Ok(vec![
            ("committed".to_owned(), read(committed)),
            ("conflicts".to_owned(), read(conflicts)),
            ("requests".to_owned(), read(requests)),
        ])
    }

    fn as_database(&self) -> &dyn Database {
        self
    }
}

/// Returns an error if the transaction's deadline has passed.
pub(crate) fn in_time(until: Instant) -> Result<()> {
    if Instant::now() < until {
        Ok(())
    } else {
        Err(Error::new(
            Code::Deadline,
            "the transaction's deadline has passed",
        ))
    }
}
