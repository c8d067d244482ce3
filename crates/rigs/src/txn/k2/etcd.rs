//! An etcd server of one node, on loopback, with its log on the disk of the scratch directory.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dyno_txn_etcd::{Etcd, EtcdOptions};

use super::K2Error;
use super::system::{Started, spawn};

/// How long it may take to have a leader.
const START_MAX: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// Why it cannot be run here; nothing where it can.
pub(crate) fn missing() -> Option<String> {
    match Command::new("etcd").arg("--version").output() {
        Ok(_) => None,
        Err(error) => Some(format!("etcd does not run: {error}")),
    }
}

pub(super) fn start(scratch: &Path) -> Result<Started, K2Error> {
    let wrong = |reason: String| K2Error::Process {
        what: "etcd".to_owned(),
        reason,
    };
    let port = || free_port().map_err(|error| wrong(error.to_string()));
    let (client, peer) = (port()?, port()?);
    let url = |port: u16| format!("http://127.0.0.1:{port}");
    let mut command = Command::new("etcd");
    command
        .args(["--name", "k2", "--data-dir"])
        .arg(scratch.join("etcd"))
        .args(["--listen-client-urls", &url(client)])
        .args(["--advertise-client-urls", &url(client)])
        .args(["--listen-peer-urls", &url(peer)])
        .args(["--initial-advertise-peer-urls", &url(peer)])
        .args(["--initial-cluster", &format!("k2={}", url(peer))])
        .args([
            "--max-txn-ops",
            "1024",
            "--quota-backend-bytes",
            "8589934592",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut process = spawn(&mut command).map_err(&wrong)?;
    let until = Instant::now() + START_MAX;
    while TcpStream::connect(("127.0.0.1", client)).is_err() {
        if let Ok(Some(status)) = process.0.try_wait() {
            return Err(wrong(format!("it ended with {status}")));
        }
        if Instant::now() > until {
            return Err(wrong(format!("it did not listen within {START_MAX:?}")));
        }
        thread::sleep(PAUSE);
    }
    let options = EtcdOptions {
        connect_wait: START_MAX,
        ..EtcdOptions::default()
    };
    let db = Etcd::open(&[format!("127.0.0.1:{client}")], options)?;
    let what = "etcd, one node, over TCP, acknowledged: fsync".to_owned();
    Ok((vec![process], Box::new(db), what))
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
