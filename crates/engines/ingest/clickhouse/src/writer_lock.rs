//! Allows one load at a time, by a table of the database that exists during the load.
//!
//! Creating a table is atomic on the server. The default of its only column says which table it
//! locks and which process created it. A killed process leaves it behind; one that finds it on the
//! same machine can see that the process has ended, and takes over. From another machine that
//! cannot be known.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::address::Address;
use crate::error::{Error, Result};
use crate::http::{Client, quoted};
use crate::patience::Patience;

/// ClickHouse's code `TABLE_ALREADY_EXISTS`.
const EXISTS: i32 = 57;

static LOCKS: AtomicU64 = AtomicU64::new(0);

/// The lock is held as long as this value lives.
pub(crate) struct WriterLock {
    client: Arc<Client>,
    table: String,
    released: bool,
}

impl WriterLock {
    /// Takes the lock of the table of `address`. If another process holds it, the error names that
    /// process.
    pub fn take(
        client: &Arc<Client>,
        address: &Address,
        patience: &Patience,
    ) -> Result<WriterLock> {
        let lock = format!("{}_dyno_writer", address.table);
        let table = format!("{}.{lock}", address.database);
        let me = Process::this()?;
        let make = format!(
            "CREATE TABLE {table} (writer String DEFAULT {}) ENGINE = Memory",
            quoted(&me.text())
        );
        let action = "take the writer's lock";
        loop {
            match patience.with(|| client.query(action, &make).map(drop)) {
                Ok(()) => break,
                Err(Error::Refused { code: EXISTS, .. }) => {}
                Err(other) => return Err(other),
            }
            let sql = format!(
                "SELECT default_expression FROM system.columns WHERE database = {} AND table = {}",
                quoted(&address.database),
                quoted(&lock)
            );
            let owner = patience.with(|| client.rows(action, &sql))?;
            let Some(owner) = owner.first().and_then(|row| row.first()) else {
                continue;
            };
            let owner = owner.trim_matches('\'');
            // The lock is our own; the answer to its creation was lost.
            if owner == me.text() {
                break;
            }
            if !Process::of(owner).is_some_and(|process| process.is_gone(&me)) {
                return Err(Error::Locked {
                    table: address.full_name(""),
                    owner: owner.to_owned(),
                    lock: table,
                });
            }
            let sql = format!("DROP TABLE IF EXISTS {table}");
            patience.with(|| client.query(action, &sql).map(drop))?;
        }
        Ok(WriterLock {
            client: client.clone(),
            table,
            released: false,
        })
    }

    /// Drops the lock's table, so that another load may begin.
    pub fn release(&mut self) -> Result<()> {
        self.released = true;
        let sql = format!("DROP TABLE IF EXISTS {}", self.table);
        self.client
            .query("release the writer's lock", &sql)
            .map(drop)
    }

    /// The name of this process for the ledger.
    pub fn writer() -> Result<String> {
        Process::this().map(|process| process.text())
    }
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        if !self.released {
            // If this fails, the next load on this machine sees that this process has ended.
            let _left_behind = self.release();
        }
    }
}

/// The identity of a process, unique across machines, containers and reuse of process ids.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    host: String,
    boot: String,
    /// The PID namespace in which its number is valid.
    namespace: String,
    pid: u32,
    /// Start time in clock ticks since boot.
    started: u64,
    /// Distinguishes the locks of one process.
    number: u64,
}

impl Process {
    fn this() -> Result<Process> {
        let read = |path: &str| {
            fs::read_to_string(path)
                .map(|text| text.trim().to_owned())
                .map_err(|e| Error::Here {
                    action: "say which process this is",
                    reason: format!("{path}: {e}"),
                })
        };
        let pid = std::process::id();
        Ok(Process {
            host: read("/proc/sys/kernel/hostname")?.replace(' ', "_"),
            boot: read("/proc/sys/kernel/random/boot_id")?,
            namespace: fs::read_link("/proc/self/ns/pid")
                .map(|link| link.display().to_string())
                .unwrap_or_default(),
            pid,
            started: start_of(pid).unwrap_or(0),
            number: LOCKS.fetch_add(1, Ordering::Relaxed),
        })
    }

    fn text(&self) -> String {
        let Process {
            host,
            boot,
            namespace,
            pid,
            started,
            number,
        } = self;
        format!("{pid} on {host} ({boot} {namespace} {started} {number})")
    }

    fn of(text: &str) -> Option<Process> {
        let (pid, rest) = text.split_once(" on ")?;
        let (host, rest) = rest.split_once(" (")?;
        let mut words = rest.strip_suffix(')')?.split(' ');
        Some(Process {
            pid: pid.parse().ok()?,
            host: host.to_owned(),
            boot: words.next()?.to_owned(),
            namespace: words.next()?.to_owned(),
            started: words.next()?.parse().ok()?,
            number: words.next()?.parse().ok()?,
        })
    }

    /// Whether the process has certainly ended, as far as `me` can see.
    fn is_gone(&self, me: &Process) -> bool {
        if self.host != me.host {
            return false;
        }
        if self.boot != me.boot {
            return true;
        }
        self.namespace == me.namespace && start_of(self.pid) != Some(self.started)
    }
}

/// When a process started, in ticks since boot; `None` if there is none.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in brackets and may contain anything; the start time is the 20th field after it.
    let (_, behind) = stat.rsplit_once(')')?;
    let state = behind.split_whitespace().next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    behind.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_gone_only_when_that_is_certain() {
        let me = Process::this().expect("a process");
        assert_eq!(Process::of(&me.text()), Some(me.clone()));
        assert!(!me.is_gone(&me));
        let later = Process {
            started: me.started + 1,
            ..me.clone()
        };
        assert!(later.is_gone(&me), "another process had the number");
        let elsewhere = Process {
            host: "elsewhere".to_owned(),
            pid: 0,
            ..me.clone()
        };
        assert!(!elsewhere.is_gone(&me));
        let before = Process {
            boot: "another".to_owned(),
            ..me.clone()
        };
        assert!(before.is_gone(&me), "the machine was started again");
    }
}
