//! The server of one invocation, and what it and its clients used.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use dyno_measure::write_interval_log;
use dyno_pubsub::Dsn;
use dyno_pubsub::server::{Cluster, Options};
use postgres::{Config, NoTls};

use super::FlowError;
use super::flow::{Flow, Flowed};
use super::way::Way;
use crate::used;

/// A private server in the scratch directory. It is stopped when dropped.
pub(super) struct Server {
    /// Before its folder, so that it is stopped before that is removed.
    cluster: Cluster,
    _folder: Option<Folder>,
}

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed lies where the system removes it in time.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What has been used so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used {
    pub server_cpu_s: f64,
    /// This process, and a broker beside it.
    pub client_cpu_s: f64,
    pub wal_bytes: f64,
}

impl Used {
    pub fn since(self, before: &Used) -> Used {
        Used {
            server_cpu_s: self.server_cpu_s - before.server_cpu_s,
            client_cpu_s: self.client_cpu_s - before.client_cpu_s,
            wal_bytes: self.wal_bytes - before.wal_bytes,
        }
    }

    pub fn cpu_s(self) -> f64 {
        self.server_cpu_s + self.client_cpu_s
    }
}

/// Ticks of the kernel's clock a second, as processes are told (`USER_HZ`).
const TICKS_PER_S: f64 = 100.0;

impl Server {
    /// Starts one that has room for all writers and readers.
    pub fn start(scratch: &Path, flow: &Flow, partitions: usize) -> Result<Server, FlowError> {
        let connections = flow.writers + flow.groups * flow.readers + partitions + 32;
        let options = Options {
            settings: vec![(
                "max_connections".to_string(),
                connections.max(100).to_string(),
            )],
            ..Options::default()
        };
        // PostgreSQL never runs as root, and its user may seldom enter root's folders.
        let own = runs_as_root().then(|| format!("/var/tmp/dynolab-{}", std::process::id()));
        let folder = own.as_ref().map(|own| Folder(PathBuf::from(own)));
        let place = folder.as_ref().map_or(scratch, |folder| &folder.0);
        fs::create_dir_all(place).map_err(|e| FlowError::Way(e.to_string()))?;
        let cluster = Cluster::open(&place.join("server"), options)
            .map_err(|error| FlowError::Way(error.to_string()))?;
        Ok(Server {
            cluster,
            _folder: folder,
        })
    }

    /// How to reach it.
    pub fn config(&self) -> Config {
        self.cluster.dsn().config()
    }

    /// The same for our own library.
    pub fn dsn(&self) -> Dsn {
        self.cluster.dsn()
    }

    /// Where a broker may listen. In a folder of its own name, since paths of sockets must be short.
    pub fn broker_socket(&self) -> PathBuf {
        std::env::temp_dir().join(format!("dyno-broker-{}.sock", std::process::id()))
    }

    /// What was used until now.
    pub fn used(&self, way: &dyn Way) -> Result<Used, FlowError> {
        let mut client = self.config().connect(NoTls)?;
        let wal = "SELECT (pg_current_wal_lsn() - '0/0')::float8";
        Ok(Used {
            wal_bytes: client.query_one(wal, &[])?.get(0),
            server_cpu_s: self.cpu_s(),
            client_cpu_s: used::cpu_s() + way.helpers_cpu_s(),
        })
    }

    /// The server's version, and where its files are.
    pub fn version(&self) -> String {
        let version = self.cluster.installation().version();
        format!("{version} in {}", self.cluster.dir().display())
    }

    /// Of all its processes, those that ended included.
    fn cpu_s(&self) -> f64 {
        let pids = self.cluster.pids();
        let all = pids.postmaster.into_iter().chain(pids.children);
        all.map(process_cpu_s).sum()
    }
}

/// Whether the effective user is root, as the kernel says.
fn runs_as_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    line.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

/// Processor seconds of a process, and of its children that ended.
pub(super) fn process_cpu_s(pid: u32) -> f64 {
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
