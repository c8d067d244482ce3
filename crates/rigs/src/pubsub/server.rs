//! The server of one invocation, and what it and its clients used.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use dyno_measure::write_interval_log;
use dyno_postgres::{Cluster, Options, Session, Synchronous, standby};
use dyno_pubsub::Dsn;
use postgres::Client;

use super::FlowError;
use super::flow::Flowed;
use super::way::Way;
use crate::used;

/// The server of one invocation.
pub(crate) struct Server {
    dsn: Dsn,
    place: Place,
}

enum Place {
    /// In the scratch directory, with standbys where they were asked for. All are stopped when
    /// dropped.
    Private {
        /// Before their primary, and all before the folder: stopped in this order, then removed.
        standbys: Vec<Cluster>,
        cluster: Box<Cluster>,
        /// Of the primary.
        files: PathBuf,
        _folder: Option<Folder>,
    },
    /// A server that runs already: this invocation makes a database there and drops it at the end.
    Given { _database: Box<OwnDatabase> },
}

impl Drop for Server {
    fn drop(&mut self) {
        // The data goes too, so nothing need be written before the end.
        if let Place::Private {
            standbys, cluster, ..
        } = &mut self.place
        {
            for cluster in standbys.iter_mut().chain([&mut **cluster]) {
                // What is left is stopped, or found out about, when the cluster itself is dropped.
                let _ = cluster.kill_all();
            }
        }
    }
}

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed lies where the system removes it in time.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A database that is dropped when this is.
struct OwnDatabase {
    /// Another database of the same server.
    admin: Dsn,
    name: String,
}

impl Drop for OwnDatabase {
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        let dropped =
            connect(&self.admin).and_then(|mut client| Ok(client.batch_execute(&statement)?));
        if let Err(error) = dropped {
            eprintln!("database {} stays on the server: {error}", self.name);
        }
    }
}

/// What has been used so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used {
    /// Nothing where the server is not ours to look at.
    pub server_cpu_s: Option<f64>,
    /// This process, and a broker beside it.
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

    /// Of both sides, where both are known.
    pub fn cpu_s(self) -> Option<f64> {
        Some(self.server_cpu_s? + self.client_cpu_s)
    }
}

/// For code that watches the server beside the flow.
const SPARE_CONNECTIONS: usize = 32;
/// How long a standby may take to begin.
const STREAMING_MAX: Duration = Duration::from_secs(60);
/// Ticks of the kernel's clock a second, as processes are told (`USER_HZ`).
const TICKS_PER_S: f64 = 100.0;

impl Server {
    /// Starts `nodes` servers, the first of which has room for so many connections: every commit on
    /// it waits for any one of the others, if there are some.
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
        // PostgreSQL never runs as root, and its user may seldom enter root's folders.
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
            place: Place::Private {
                standbys,
                cluster: Box::new(cluster),
                files: place.join("server"),
                _folder: folder,
            },
        };
        server.wait_for_standbys()?;
        Ok(server)
    }

    /// Has commits wait for any one standby, once all follow.
    fn wait_for_standbys(&mut self) -> Result<(), FlowError> {
        let Place::Private {
            standbys, cluster, ..
        } = &mut self.place
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
        for name in &names {
            standby::wait_streaming(&mut client, name, STREAMING_MAX)?;
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Ok(cluster.set_synchronous(&Synchronous::any(1, &names), STREAMING_MAX)?)
    }

    /// Makes a database of its own on a server that runs already.
    pub fn on(dsn: &str) -> Result<Server, FlowError> {
        let admin = Dsn::parse(dsn)?;
        let name = format!("dyno_bench_{}", std::process::id());
        connect(&admin)?.batch_execute(&format!("CREATE DATABASE {name}"))?;
        Ok(Server {
            dsn: admin.with_database(&name),
            place: Place::Given {
                _database: Box::new(OwnDatabase { admin, name }),
            },
        })
    }

    /// Kills every process of a private server with signal 9 and starts it again.
    ///
    /// # Errors
    /// When it does not come back, or was not started by us.
    pub fn crash(&mut self) -> Result<(), FlowError> {
        let Place::Private { cluster, .. } = &mut self.place else {
            let reason = "a server that was not started by the rig is not killed";
            return Err(FlowError::Way(reason.to_string()));
        };
        cluster.kill_all()?;
        Ok(cluster.restart()?)
    }

    /// Where the files of a private one are.
    pub fn files(&self) -> Option<&Path> {
        match &self.place {
            Place::Private { files, .. } => Some(files),
            Place::Given { .. } => None,
        }
    }

    /// How to reach it.
    pub fn dsn(&self) -> Dsn {
        self.dsn.clone()
    }

    /// Where a broker may listen. In a folder of its own name, since paths of sockets must be
    /// short.
    pub fn broker_socket(&self) -> PathBuf {
        std::env::temp_dir().join(format!("dyno-broker-{}.sock", std::process::id()))
    }

    /// What was used until now.
    pub(super) fn used(&self, way: &dyn Way) -> Result<Used, FlowError> {
        let mut client = connect(&self.dsn)?;
        let wal = "SELECT (pg_current_wal_lsn() - '0/0')::float8";
        Ok(Used {
            wal_bytes: client.query_one(wal, &[])?.get(0),
            server_cpu_s: self.cpu_s(),
            client_cpu_s: used::cpu_s() + way.helpers_cpu_s(),
        })
    }

    /// The server's version, where its files are, and how many hold them.
    pub fn describe(&self) -> Result<String, FlowError> {
        let Place::Private {
            standbys, cluster, ..
        } = &self.place
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

    /// Of all processes of a server of ours and of its standbys, those that ended included.
    pub(crate) fn cpu_s(&self) -> Option<f64> {
        let Place::Private {
            standbys, cluster, ..
        } = &self.place
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

/// A connection of the load's.
pub(crate) fn connect(dsn: &Dsn) -> Result<Client, FlowError> {
    Ok(dyno_postgres::connect(dsn, &Session::named("dyno bench"))?)
}

/// Whether the effective user is root, as the kernel says.
fn runs_as_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    line.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

/// Processor seconds of a process, and of its children that ended.
pub(crate) fn process_cpu_s(pid: u32) -> f64 {
    ticks(pid, &[11, 12, 13, 14]).unwrap_or(0.0) / TICKS_PER_S
}

/// The sum of fields of `/proc/PID/stat`, numbered from the one after the program's name, from 0.
fn ticks(pid: u32, fields: &[usize]) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let words: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let values = fields
        .iter()
        .map(|&field| words.get(field)?.parse::<f64>().ok());
    values.sum()
}

/// Leaves the histogram log of the writes in the scratch directory.
pub(super) fn write_log(scratch: &Path, flowed: &Flowed) -> Result<PathBuf, FlowError> {
    let path = scratch.join("writes.hdr");
    let mut file = File::create(&path).map_err(|e| FlowError::Way(e.to_string()))?;
    let ran = Duration::from_nanos(flowed.writes.ended_ns - flowed.writes.started_ns);
    write_interval_log(&mut file, &flowed.writes, SystemTime::now() - ran)?;
    Ok(path)
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
