//! The server of one run: ours by its public command, or Redis.

use std::path::Path;
use std::process::Command;

use super::{ALWAYS, EVERY_SECOND, NONE};
use crate::RigError;
use crate::peers::unknown;
use crate::process::{Ending, Process, ProcessError, free_port, this_program};
use crate::pubsub::process_cpu_s;
use crate::used;

/// The system under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Our engine, whose answers wait for the disk.
    Dyno,
    /// Redis with this value of `appendfsync`; or without a log.
    Redis(Option<&'static str>),
}

impl Kind {
    pub fn from_peer(peer: Option<&str>) -> Result<Kind, RigError> {
        match peer {
            None => Ok(Kind::Dyno),
            Some(ALWAYS) => Ok(Kind::Redis(Some("always"))),
            Some(EVERY_SECOND) => Ok(Kind::Redis(Some("everysec"))),
            Some(NONE) => Ok(Kind::Redis(None)),
            Some(other) => Err(unknown(other)),
        }
    }
}

/// A server, gone with the value.
pub(super) struct Served {
    kind: Kind,
    port: u16,
    process: Process,
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

impl Served {
    /// Starts one with its data below `scratch`; it listens when this returns.
    pub fn start(kind: Kind, scratch: &Path) -> Result<Served, ProcessError> {
        let port = free_port()?;
        let command = match kind {
            Kind::Dyno => ours(scratch, port)?,
            Kind::Redis(sync) => redis(scratch, port, sync),
        };
        let log = scratch.join("server.log");
        let process = Process::start("the server", command, log, port, Ending::Killed)?;
        Ok(Served {
            kind,
            port,
            process,
        })
    }

    /// Where it listens on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The processor time until now.
    pub fn used(&self) -> Used {
        Used {
            server_s: process_cpu_s(self.process.pid()),
            clients_s: used::children_cpu_s(),
        }
    }

    /// The version, and what it waits for before it answers.
    pub fn describe(&self) -> String {
        match self.kind {
            Kind::Dyno => "dyno txn serve --durability fsync".to_owned(),
            Kind::Redis(Some(sync)) => {
                format!("{}, appendfsync {sync}", version("redis-server"))
            }
            Kind::Redis(None) => format!("{}, without a log", version("redis-server")),
        }
    }
}

fn ours(scratch: &Path, port: u16) -> Result<Command, ProcessError> {
    let mut command = Command::new(this_program()?);
    command
        .args(["txn", "serve", "--durability", "fsync", "--data"])
        .arg(scratch.join("data"))
        .arg("--listen")
        .arg(format!("127.0.0.1:{}", free_port()?))
        .arg("--resp")
        .arg(format!("127.0.0.1:{port}"));
    Ok(command)
}

/// Redis with its own settings, but for the log. Snapshots are off: they would be taken or not by
/// the time that a load takes.
fn redis(scratch: &Path, port: u16, sync: Option<&str>) -> Command {
    let mut command = Command::new("redis-server");
    command
        .args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
        ])
        .arg(scratch);
    match sync {
        Some(sync) => command.args(["--appendonly", "yes", "--appendfsync", sync]),
        None => command.args(["--appendonly", "no"]),
    };
    command
}

/// The first line that a program prints about its version.
pub(super) fn version(program: &str) -> String {
    let output = Command::new(program).arg("--version").output();
    let stdout = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let stdout = stdout.unwrap_or_default();
    stdout.lines().next().unwrap_or(program).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_peer_that_says_so_waits_for_the_disk() {
        let words = |peer| match Kind::from_peer(Some(peer)) {
            Ok(Kind::Redis(sync)) => {
                let command = redis(Path::new("data"), 1, sync);
                let words = command.get_args().map(|word| word.to_string_lossy());
                words.collect::<Vec<_>>().join(" ")
            }
            _ => String::new(),
        };
        assert!(words(ALWAYS).ends_with("--appendonly yes --appendfsync always"));
        assert!(words(EVERY_SECOND).ends_with("--appendfsync everysec"));
        assert!(words(NONE).ends_with("--appendonly no"));
        assert!(Kind::from_peer(Some("etcd")).is_err());
    }
}
