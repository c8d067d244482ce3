//! The server of one run: ours or Nisshi in front of a private PostgreSQL server, or one of Apache
//! Kafka.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dyno_pubsub::{Connection, Dsn};

use super::{AS_INSTALLED, FLUSH, NISSHI, NISSHI_VERSION, VERSION, clients, installed};
use crate::RigError;
use crate::peers::unknown;
use crate::process::{Ending, Process, ProcessError, free_port, this_program};
use crate::pubsub::{FlowError, Server, process_cpu_s};
use crate::used;

/// The system under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Dyno,
    /// Nisshi on PostgreSQL.
    Nisshi,
    /// Apache Kafka that syncs its log before it acknowledges.
    Flush,
    /// Apache Kafka with its own settings.
    AsInstalled,
}

impl Kind {
    pub fn from_peer(peer: Option<&str>) -> Result<Kind, RigError> {
        match peer {
            None => Ok(Kind::Dyno),
            Some(NISSHI) => Ok(Kind::Nisshi),
            Some(FLUSH) => Ok(Kind::Flush),
            Some(AS_INSTALLED) => Ok(Kind::AsInstalled),
            Some(other) => Err(unknown(other)),
        }
    }
}

/// A server, gone with the value.
pub(super) struct Served {
    port: u16,
    /// Declared before the database, so that it is stopped first.
    process: Process,
    below: Below,
}

/// What is below the process that clients connect to.
enum Below {
    /// A private server, and the broker in front of it.
    Postgres(Box<Server>, String),
    /// Files of its own. `true` if each batch is synced before it is acknowledged.
    Files(bool),
}

/// Processor seconds used so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used {
    pub server_s: f64,
    /// Of clients that have ended.
    pub clients_s: f64,
}

impl Used {
    pub fn since(self, before: &Used) -> Used {
        Used {
            server_s: self.server_s - before.server_s,
            clients_s: self.clients_s - before.clients_s,
        }
    }
}

/// Connections of a broker and of the server for Kafka's clients in it.
const CONNECTIONS: usize = 16;
/// Any 16 bytes in Base64 for addresses name a cluster.
const CLUSTER: &str = "ZHlub2xhYi1rYWZrYS0xMQ";
/// Options of `kafka-server-start.sh`, which is not a part of the jars.
const SERVER_OPTIONS: [&str; 8] = [
    "-Xms1G",
    "-Xmx1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
];

impl Served {
    /// Starts one with its data below `scratch`; it listens when this returns.
    pub fn start(kind: Kind, scratch: &Path) -> Result<Served, RigError> {
        match kind {
            Kind::Dyno => ours(scratch),
            Kind::Nisshi => nisshi(scratch),
            Kind::Flush => Ok(apache(scratch, true)?),
            Kind::AsInstalled => Ok(apache(scratch, false)?),
        }
    }

    fn on_postgres(port: u16, process: Process, server: Server, broker: String) -> Served {
        Served {
            port,
            process,
            below: Below::Postgres(Box::new(server), broker),
        }
    }

    /// `HOST:PORT`, where clients begin.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The processor time until now.
    pub fn used(&self) -> Used {
        let database_s = match &self.below {
            Below::Postgres(server, _) => server.cpu_s().unwrap_or(0.0),
            Below::Files(_) => 0.0,
        };
        Used {
            server_s: process_cpu_s(self.process.pid()) + database_s,
            clients_s: used::children_cpu_s(),
        }
    }

    /// The version, and what it waits for before it acknowledges.
    pub fn describe(&self) -> Result<String, RigError> {
        Ok(match &self.below {
            Below::Postgres(server, broker) => {
                format!("{broker} on PostgreSQL {}", server.describe()?)
            }
            Below::Files(true) => format!("Apache Kafka {VERSION}, synced before each answer"),
            Below::Files(false) => {
                format!("Apache Kafka {VERSION}, which does not wait for the disk")
            }
        })
    }
}

/// A broker of ours with a server for Kafka's clients, by its public command, on a private server
/// with the settings of the suite `pubsub`.
fn ours(scratch: &Path) -> Result<Served, RigError> {
    let server = Server::start(scratch, CONNECTIONS, 1)?;
    let installed = Connection::open(&server.dsn()).and_then(|mut it| it.install());
    installed.map_err(FlowError::from)?;
    let port = free_port()?;
    let mut command = Command::new(this_program()?);
    command
        .args(["pubsub", "serve", "--dsn", &server.dsn().text(), "--listen"])
        .arg(format!("127.0.0.1:{}", free_port()?))
        .arg("--kafka")
        .arg(format!("127.0.0.1:{port}"));
    let log = scratch.join("broker.log");
    let process = Process::start("the broker", command, log, port, Ending::Asked)?;
    Ok(Served::on_postgres(
        port,
        process,
        server,
        "dyno".to_owned(),
    ))
}

/// Nisshi on a private server with the same settings, which makes its own tables there.
fn nisshi(scratch: &Path) -> Result<Served, RigError> {
    let server = Server::start(scratch, CONNECTIONS, 1)?;
    let port = free_port()?;
    let address = format!("tcp://127.0.0.1:{port}");
    let mut command = Command::new(installed::nisshi()?);
    command
        .args(["broker", "--silent", "--listener-url", &address])
        .args(["--advertised-listener-url", &address])
        .args(["--storage-engine", &url(&server.dsn())])
        .current_dir(scratch);
    let log = scratch.join("nisshi.log");
    let process = Process::start(NISSHI, command, log, port, Ending::Killed)?;
    let broker = format!("Nisshi {NISSHI_VERSION}");
    Ok(Served::on_postgres(port, process, server, broker))
}

/// The address of a private server as a URL, in which a path must not look like one.
fn url(dsn: &Dsn) -> String {
    let config = dsn.config();
    let port = config.get_ports().first().copied().unwrap_or(5432);
    format!(
        "postgres://{}@{}:{port}/{}",
        config.get_user().unwrap_or_default(),
        dsn.host().replace('/', "%2F"),
        config.get_dbname().unwrap_or_default()
    )
}

/// A node of Apache Kafka that is broker and controller in one.
fn apache(scratch: &Path, flush: bool) -> Result<Served, ProcessError> {
    let (port, controller) = (free_port()?, free_port()?);
    let folder = scratch.join("kafka");
    fs::create_dir_all(&folder).map_err(ProcessError::io(folder.display().to_string()))?;
    let settings = folder.join("server.properties");
    let text = properties(&folder.join("data"), port, controller, flush);
    fs::write(&settings, text).map_err(ProcessError::io(settings.display().to_string()))?;
    format_storage(&settings)?;
    let mut command = installed::java()?;
    command
        .args(SERVER_OPTIONS)
        .arg("kafka.Kafka")
        .arg(&settings);
    // It writes other logs into its working directory if it is told to write any.
    command.current_dir(&folder);
    let log = folder.join("log");
    let process = Process::start("Apache Kafka", command, log, port, Ending::Killed)?;
    Ok(Served {
        port,
        process,
        below: Below::Files(flush),
    })
}

/// The settings: those that a single node needs, and otherwise Kafka's own. `num.partitions` does
/// not matter, because the topic is created with its own number.
fn properties(data: &Path, port: u16, controller: u16, flush: bool) -> String {
    let mut text = format!(
        "process.roles=broker,controller\n\
         node.id=1\n\
         controller.quorum.voters=1@127.0.0.1:{controller}\n\
         listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
         advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n\
         controller.listener.names=CONTROLLER\n\
         inter.broker.listener.name=PLAINTEXT\n\
         log.dirs={}\n\
         offsets.topic.replication.factor=1\n\
         transaction.state.log.replication.factor=1\n\
         transaction.state.log.min.isr=1\n\
         share.coordinator.state.topic.replication.factor=1\n\
         share.coordinator.state.topic.min.isr=1\n",
        data.display()
    );
    if flush {
        // Each append is synced before it is answered, as a commit of PostgreSQL is.
        text += "log.flush.interval.messages=1\n";
    }
    text
}

/// Writes the identity of the cluster into the data directory, without which no node starts.
fn format_storage(settings: &PathBuf) -> Result<(), ProcessError> {
    let mut command = installed::java()?;
    command
        .args(["kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c"])
        .arg(settings);
    clients::ran("StorageTool", command).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_peer_that_says_so_waits_for_the_disk() {
        let of = |flush| properties(Path::new("data"), 10_001, 10_002, flush);
        assert!(of(true).ends_with("log.flush.interval.messages=1\n"));
        assert!(!of(false).contains("flush"));
        assert!(of(false).contains("voters=1@127.0.0.1:10002"));
        assert_eq!(Kind::from_peer(Some(FLUSH)).expect("known"), Kind::Flush);
        assert!(Kind::from_peer(Some("etcd")).is_err());
    }
}
