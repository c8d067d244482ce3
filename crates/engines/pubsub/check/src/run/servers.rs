//! What clients work with: servers behind a proxy, and brokers if there are any.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dyno_net::Address;
use dyno_postgres::postgres::Client;
use dyno_postgres::{Session, connect};
use dyno_pubsub::wire::Verb;
use dyno_pubsub::{Connection, TopicOptions};

use super::nodes::Nodes;
use super::{Mode, Options, RunError};
use crate::nemesis::{Fault, Tmpfs};
use crate::proxy::{Protocol, Proxy};

/// The topic, or the queue, of every run.
pub const NAME: &str = "check";
/// The size of the file system of a server that is to run out of space.
const TMPFS_BYTES: u64 = 1 << 30;
/// The port in the name of the proxy's socket, which may be any.
const PORT: u16 = 5432;

/// The servers of a run and the way to them.
#[derive(Debug)]
pub struct Servers {
    /// The first field, so that connections end before servers do.
    pub proxy: Proxy,
    /// One before each broker, so that clients lose connections and answers too.
    pub fronts: Vec<Proxy>,
    pub nodes: Nodes,
    /// The last field, because the servers' files are in it.
    pub tmpfs: Option<Tmpfs>,
    endpoint: String,
}

impl Servers {
    /// Makes servers in the run's folder, a log in them, and a proxy before them.
    pub fn open(options: &Options, left_out: &mut Vec<String>) -> Result<Self, RunError> {
        let servers_dir = options.dir.join("servers");
        let tmpfs = if options.kinds().contains(&Fault::DiskFull) {
            match Tmpfs::mount(&servers_dir, TMPFS_BYTES) {
                Ok(tmpfs) => Some(tmpfs),
                Err(error) => {
                    left_out.push(format!("a full disk: {error}"));
                    None
                }
            }
        } else {
            None
        };
        fs::create_dir_all(&servers_dir).map_err(|error| {
            RunError::Options(format!("cannot create {}: {error}", servers_dir.display()))
        })?;
        let nodes = Nodes::open(&servers_dir, options.nodes)?;
        make_log(options, &nodes)?;
        let listen = options.dir.join(format!(".s.PGSQL.{PORT}"));
        let protocol = Protocol::Postgres {
            committing: vec![
                "append_".to_owned(),
                "send_batch".to_owned(),
                "queue_".to_owned(),
                "pubsub.poll".to_owned(),
                "pubsub.commit".to_owned(),
                "group_commit".to_owned(),
                "lease_until =".to_owned(),
                "broker_address =".to_owned(),
            ],
        };
        let proxy = Proxy::start(&Address::Unix(listen), nodes.socket()?, protocol)?;
        let endpoint = through(&options.dir, &nodes)?;
        let brokers = if options.mode.has_brokers() {
            options.brokers
        } else {
            0
        };
        let fronts = (0..brokers).map(|at| front(&options.dir, at));
        Ok(Self {
            fronts: fronts.collect::<Result<_, _>>()?,
            proxy,
            nodes,
            tmpfs,
            endpoint,
        })
    }

    /// What clients and brokers connect to: the proxy.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The proxies whose connections can be cut: the one before the server, and those before
    /// brokers.
    pub fn proxies(&self) -> impl Iterator<Item = &Proxy> {
        std::iter::once(&self.proxy).chain(&self.fronts)
    }

    /// How often a partition got another broker, from the first on; 0 without brokers.
    pub fn lease_changes(&self) -> Result<u64, RunError> {
        let mut client = self.connect()?;
        let asked = client.query_one(
            "SELECT coalesce(sum(epoch), 0)::bigint FROM pubsub.partitions",
            &[],
        );
        let epochs =
            asked.map_err(|error| RunError::Options(format!("cannot read epochs: {error}")))?;
        Ok(u64::try_from(epochs.get::<_, i64>(0)).unwrap_or(0))
    }

    /// A connection of the checker's own, past the proxy.
    pub fn connect(&self) -> Result<Client, RunError> {
        Ok(connect(&self.nodes.dsn()?, &Session::named("dyno check"))?)
    }

    /// What the server is doing, and which broker holds each partition, for a run that got stuck.
    pub fn describe(&self) -> Vec<String> {
        let asked = self.connect().map_err(|error| error.to_string());
        let asked = asked.and_then(|mut client| {
            let rows = client.query(
                "SELECT format('%s %s %s/%s %s: %s', pid, application_name, wait_event_type, wait_event, \
                               now() - query_start, left(query, 100)) \
                 FROM pg_stat_activity WHERE state <> 'idle' AND pid <> pg_backend_pid() UNION ALL \
                 SELECT format('partition %s: epoch %s, next %s, broker %s until %s', partition, epoch, \
                               next_offset, broker, lease_until) \
                 FROM pubsub.partitions LEFT JOIN pubsub.brokers USING (broker)",
                &[],
            );
            rows.map_err(|error| error.to_string())
        });
        match asked {
            Ok(rows) => rows.iter().map(|row| row.get(0)).collect(),
            Err(error) => vec![error],
        }
    }

    /// Brings the primary up if it does not answer within `patience`.
    pub fn revive(&mut self, patience: Duration) -> Result<(), RunError> {
        let deadline = std::time::Instant::now() + patience;
        while !self.nodes.answers() {
            if std::time::Instant::now() > deadline {
                return Ok(self.nodes.start()?);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

/// The connection string of the proxy.
fn through(dir: &Path, nodes: &Nodes) -> Result<String, RunError> {
    let config = nodes.dsn()?.config();
    let user = config.get_user().unwrap_or("dyno").to_owned();
    let database = config.get_dbname().unwrap_or("dyno").to_owned();
    Ok(format!(
        "host={} port={PORT} user={user} dbname={database} sslmode=disable",
        dir.display()
    ))
}

fn make_log(options: &Options, nodes: &Nodes) -> Result<(), RunError> {
    let mut connection =
        Connection::open(&nodes.dsn()?).map_err(RunError::log("connect to the server"))?;
    connection
        .install()
        .map_err(RunError::log("install the schema"))?;
    if options.mode == Mode::Queue {
        let visibility_ms = options.lease_ms as i64;
        connection
            .client()
            .execute(
                // A worker may die often in a run, and what it held is not poison.
                "SELECT pubsub.create_queue($1, $2, 1000)",
                &[&NAME, &visibility_ms],
            )
            .map_err(|error| RunError::Options(format!("cannot make the queue: {error}")))?;
        return Ok(());
    }
    let mut topic = TopicOptions {
        partitions: options.partitions,
        // Small ranges, so that a run makes many of them.
        range_records: 2000,
        ..TopicOptions::default()
    };
    if options.soak.is_some() {
        topic.retention_bytes = Some(8 << 20);
    }
    connection
        .create_topic(NAME, &topic)
        .map_err(RunError::log("make the topic"))?;
    Ok(())
}

/// The proxy in front of broker `at`. It can drop the answers to requests with verbs that commit.
fn front(dir: &Path, at: usize) -> Result<Proxy, RunError> {
    let committing = [
        Verb::Produce,
        Verb::Commit,
        Verb::JoinGroup,
        Verb::Heartbeat,
    ];
    let protocol = Protocol::Frames {
        committing: committing.map(|verb| verb as u8).to_vec(),
    };
    let listen = Address::Unix(broker_socket(dir, at));
    let target = Address::Unix(behind_front(dir, at));
    Ok(Proxy::start(&listen, target, protocol)?)
}

/// Where clients reach broker `at`: its proxy.
pub fn broker_socket(dir: &Path, at: usize) -> PathBuf {
    dir.join(format!("broker{at}.sock"))
}

/// Where broker `at` itself listens.
pub fn behind_front(dir: &Path, at: usize) -> PathBuf {
    dir.join(format!("behind{at}.sock"))
}
