//! The server of one invocation, and the resources that it and its clients used.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dyno_postgres::{Cluster, Options, Session, Synchronous, standby};
use dyno_pubsub::Dsn;
use postgres::Client;

use super::FlowError;
use super::disk_watch::Watched;
use super::way::Way;
use crate::used;

/// The server of one invocation.
pub(crate) struct Server {
    dsn: Dsn,
    instance: Instance,
}

enum Instance {
    /// Servers in the scratch directory, with standbys if there are several. Dropping this stops
    /// all of them.
    Private {
        /// Declared before the primary and the folder, so that they are stopped first and the
        /// folder is removed last.
        standbys: Vec<Cluster>,
        cluster: Box<Cluster>,
        /// The primary's directory.
        files: PathBuf,
        _folder: Option<Folder>,
    },
    /// A server that is running already. This invocation creates a database there and drops it at
    /// the end.
    Existing { _database: Box<OwnDatabase> },
}

impl Drop for Server {
    fn drop(&mut self) {
        // The data is removed too, so nothing has to be flushed before the processes end.
        if let Instance::Private {
            standbys, cluster, ..
        } = &mut self.instance
        {
            for cluster in standbys.iter_mut().chain([&mut **cluster]) {
                // An error is ignored here, because dropping the cluster stops what is left.
                let _ = cluster.kill_all();
            }
        }
    }
}

/// A directory that is removed when this is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // If it cannot be removed, the system's cleaning of /var/tmp removes it later.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A database that is dropped with this value.
struct OwnDatabase {
    /// Another database of the same server, from which this one is dropped.
    admin: Dsn,
    name: String,
}

impl Drop for OwnDatabase {
    fn drop(&mut self) {
        // FORCE, because connections of threads that failed may still be open, and a database with
        // connections cannot be dropped.
        let statement = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        let dropped =
            connect(&self.admin).and_then(|mut client| Ok(client.batch_execute(&statement)?));
        if let Err(error) = dropped {
            eprintln!("database {} stays on the server: {error}", self.name);
        }
    }
}

/// The processor time used so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used {
    /// `None` if the server is not ours to inspect.
    pub server_cpu_s: Option<f64>,
    /// Processor seconds of this process and of a broker beside it.
    pub client_cpu_s: f64,
    pub wal_bytes: f64,
}

impl Used {
    pub fn since(self, before: &Used) -> Used {
        Used {
            server_cpu_s: self
                .server_cpu_s
                .zip(before.server_cpu_s)
                .map(|(now, before)| now - before),
            client_cpu_s: self.client_cpu_s - before.client_cpu_s,
            wal_bytes: self.wal_bytes - before.wal_bytes,
        }
    }

    /// Processor seconds of both sides; `None` if the server's are unknown.
    pub fn cpu_s(self) -> Option<f64> {
        Some(self.server_cpu_s? + self.client_cpu_s)
    }
}

/// Connections for code that inspects the server during the flow.
const SPARE_CONNECTIONS: usize = 32;
/// How long a standby may take to start streaming.
const STREAMING_MAX: Duration = Duration::from_secs(60);
/// Ticks of the kernel's clock a second, as `/proc` reports them (`USER_HZ`).
const TICKS_PER_S: f64 = 100.0;

impl Server {
    /// Starts `nodes` servers, the first with room for `connections`. With several, every commit on
    /// the first waits for any one of the others.
    pub fn start(scratch: &Path, connections: usize, nodes: usize) -> Result<Server, FlowError> {
        let connections = connections + SPARE_CONNECTIONS;
        let options = Options {
            settings: vec![(
                "max_connections".to_string(),
                connections.max(100).to_string(),
            )],
            short_lived: true,
            ..Options::default()
        };
        // PostgreSQL refuses to run as root, and its user usually cannot enter root's directories.
        let own = runs_as_root().then(|| format!("/var/tmp/dynolab-{}", std::process::id()));
        let folder = own.as_ref().map(|own| Folder(PathBuf::from(own)));
        let place = folder
            .as_ref()
            .map_or(scratch, |folder| &folder.0)
            .to_path_buf();
        fs::create_dir_all(&place).map_err(|e| FlowError::Way(e.to_string()))?;
        let cluster = Cluster::open(&place.join("server"), options.clone())?;
        let dsn = cluster.dsn();
        let mut standbys = Vec::new();
        for at in 1..nodes {
            let name = format!("standby_{at}");
            let dir = place.join(&name);
            standbys.push(Cluster::open_standby(&dir, options.clone(), &dsn, &name)?);
        }
        let mut server = Server {
            dsn,
            instance: Instance::Private {
                standbys,
                cluster: Box::new(cluster),
                files: place.join("server"),
                _folder: folder,
            },
        };
        server.wait_for_standbys()?;
        Ok(server)
    }

    /// Waits until all standbys follow, then makes commits wait for any one of them.
    fn wait_for_standbys(&mut self) -> Result<(), FlowError> {
        let Instance::Private {
            standbys, cluster, ..
        } = &mut self.instance
        else {
            return Ok(());
        };
        let names: Vec<String> = (1..=standbys.len())
            .map(|at| format!("standby_{at}"))
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        let mut client = connect(&self.dsn)?;
        // Standbys must be streaming before commits wait for them, because every commit on a server
        // that waits for a standby which never came would hang.
        for name in &names {
            standby::wait_streaming(&mut client, name, STREAMING_MAX)?;
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Ok(cluster.set_synchronous(&Synchronous::any(1, &names), STREAMING_MAX)?)
    }

    /// Creates a database on a server that is running already.
    pub fn on(dsn: &str) -> Result<Server, FlowError> {
        let admin = Dsn::parse(dsn)?;
        let name = format!("dyno_bench_{}", std::process::id());
        connect(&admin)?.batch_execute(&format!("CREATE DATABASE {name}"))?;
        Ok(Server {
            dsn: admin.with_database(&name),
            instance: Instance::Existing {
                _database: Box::new(OwnDatabase { admin, name }),
            },
        })
    }

    /// Kills every process of a private server with signal 9 and starts it again.
    ///
    /// # Errors
    /// When it does not come back, or was not started by us.
    pub fn crash(&mut self) -> Result<(), FlowError> {
        let Instance::Private { cluster, .. } = &mut self.instance else {
            let reason = "a server that was not started by the rig is not killed";
            return Err(FlowError::Way(reason.to_string()));
        };
        cluster.kill_all()?;
        Ok(cluster.restart()?)
    }

    /// The directory of a private server; `None` for one that was running already.
    pub fn files(&self) -> Option<&Path> {
        match &self.instance {
            Instance::Private { files, .. } => Some(files),
            Instance::Existing { .. } => None,
        }
    }

    /// What to watch of a private server; `None` for one that was running already.
    pub(super) fn watched(&self) -> Option<Watched> {
        let Instance::Private { cluster, files, .. } = &self.instance else {
            return None;
        };
        let mut children = cluster.pids().children.into_iter();
        Some(Watched {
            files: files.clone(),
            checkpointer: children.find(|pid| is_checkpointer(*pid)),
        })
    }

    /// The connection string of the primary or the given server.
    pub fn dsn(&self) -> Dsn {
        self.dsn.clone()
    }

    /// Where a broker may listen. The directory is separate because the path of a socket must be
    /// short.
    pub fn broker_socket(&self) -> PathBuf {
        std::env::temp_dir().join(format!("dyno-broker-{}.sock", std::process::id()))
    }

    /// The processor time used until now.
    pub(super) fn used(&self, way: &dyn Way) -> Result<Used, FlowError> {
        let mut client = connect(&self.dsn)?;
        let wal = "SELECT (pg_current_wal_lsn() - '0/0')::float8";
        Ok(Used {
            wal_bytes: client.query_one(wal, &[])?.get(0),
            server_cpu_s: self.cpu_s(),
            client_cpu_s: used::cpu_s() + way.helpers_cpu_s(),
        })
    }

    /// The server's version, where its files are, and how many servers hold them.
    pub fn describe(&self) -> Result<String, FlowError> {
        let Instance::Private {
            standbys, cluster, ..
        } = &self.instance
        else {
            let row = connect(&self.dsn)?.query_one("SHOW server_version", &[])?;
            return Ok(format!(
                "{} at {}",
                row.get::<_, String>(0),
                self.dsn.host()
            ));
        };
        let version = cluster.installation().version();
        let place = cluster.dir().display();
        Ok(match standbys.len() {
            0 => format!("{version} in {place}"),
            n => format!("{version} in {place}, commits wait for one of {n} standbys"),
        })
    }

    /// Processor seconds of all processes of a private server and its standbys, ended ones
    /// included.
    pub(crate) fn cpu_s(&self) -> Option<f64> {
        let Instance::Private {
            standbys, cluster, ..
        } = &self.instance
        else {
            return None;
        };
        let clusters = std::iter::once(&**cluster).chain(standbys);
        let pids = clusters.flat_map(|cluster| {
            let pids = cluster.pids();
            pids.postmaster.into_iter().chain(pids.children)
        });
        Some(pids.map(process_cpu_s).sum())
    }
}

/// Opens a connection of the load.
pub(crate) fn connect(dsn: &Dsn) -> Result<Client, FlowError> {
    Ok(dyno_postgres::connect(dsn, &Session::named("dyno bench"))?)
}

/// Whether a process of a server is the one that writes checkpoints, by the name that it shows.
fn is_checkpointer(pid: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    name.contains(": checkpointer")
}

/// Whether the effective user is root.
fn runs_as_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    line.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

/// Processor seconds of a process and of its children that have ended.
pub(crate) fn process_cpu_s(pid: u32) -> f64 {
    ticks(pid, &[11, 12, 13, 14]).unwrap_or(0.0) / TICKS_PER_S
}

/// Sums fields of `/proc/PID/stat`, numbered from 0 at the one after the program's name.
fn ticks(pid: u32, fields: &[usize]) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let words: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let values = fields
        .iter()
        .map(|&field| words.get(field)?.parse::<f64>().ok());
    values.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_those_of_the_kernel() {
        let own = ticks(std::process::id(), &[11, 12]).expect("this process");
        assert!((own / TICKS_PER_S - used::cpu_s()).abs() < 1.0);
        assert_eq!(ticks(u32::MAX, &[11]), None);
    }
}
