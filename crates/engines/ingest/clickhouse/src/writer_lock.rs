//! Allows one load at a time, by a table of the database that exists during the load.
//!
//! Creating a table is atomic on the server. The default of its only column says which table it
//! locks and which process created it. A killed process leaves it behind; one that finds it on the
//! same machine can see that the process has ended, and takes over. From another machine that
//! cannot be known. Machines may share a host name, so after a restart one is known by the ID that
//! systemd gives it, too.

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
    pub fn acquire(
        client: &Arc<Client>,
        address: &Address,
        patience: &Patience,
    ) -> Result<WriterLock> {
        let taking = Taking {
            client,
            address,
            patience,
            me: Process::this()?,
        };
        let lock = format!("{}_dyno_writer", address.table);
        taking.acquire(&lock)?;
        Ok(WriterLock {
            client: client.clone(),
            table: taking.full_name(&lock),
            released: false,
        })
    }

    /// Drops the lock's table, so that another load may begin.
    pub fn release(&mut self) -> Result<()> {
        // This is set even if the drop fails. It is not tried again, because a drop whose answer
        // was lost may have worked, and the next one would then drop the lock of another process.
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

const ACTION: &str = "take the writer's lock";

/// One process that takes a lock.
struct Taking<'a> {
    client: &'a Client,
    address: &'a Address,
    patience: &'a Patience,
    me: Process,
}

impl Taking<'_> {
    fn full_name(&self, lock: &str) -> String {
        format!("{}.{lock}", self.address.database)
    }

    /// Creates the table `lock`, after it has removed one that a dead process left behind.
    fn acquire(&self, lock: &str) -> Result<()> {
        let table = self.full_name(lock);
        let make = format!(
            "CREATE TABLE {table} (writer String DEFAULT {}) ENGINE = Memory",
            quoted(&self.me.text())
        );
        loop {
            match self
                .patience
                .with(|| self.client.query(ACTION, &make).map(drop))
            {
                Ok(()) => return Ok(()),
                Err(Error::Refused { code: EXISTS, .. }) => {}
                Err(other) => return Err(other),
            }
            // The owner may have released the lock since, and then it is free.
            let Some(owner) = self.patience.with(|| self.owner(lock))? else {
                continue;
            };
            // The lock is our own; the answer to its creation was lost.
            if owner == self.me.text() {
                return Ok(());
            }
            if !Process::parse(&owner).is_some_and(|process| process.is_gone(&self.me)) {
                return Err(Error::Locked {
                    table: self.address.full_name(""),
                    owner,
                    lock: table,
                });
            }
            self.remove_dead(lock, &owner)?;
        }
    }

    /// The process that a lock names; `None` if there is no such lock.
    fn owner(&self, lock: &str) -> Result<Option<String>> {
        let sql = format!(
            "SELECT default_expression FROM system.columns WHERE database = {} AND table = {}",
            quoted(&self.address.database),
            quoted(lock)
        );
        let rows = self.client.rows(ACTION, &sql)?;
        let owner = rows
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next());
        Ok(owner.map(|owner| owner.trim_matches('\'').to_owned()))
    }

    /// Drops the lock of the dead process `owner`.
    ///
    /// Several processes may find the same dead owner. The slow one must not drop the lock that the
    /// fast one has created since it looked, because then both would hold it. So a lock of `owner`
    /// is dropped only under a second lock, whose name follows from `owner`, by a process that has
    /// looked again while it held that.
    fn remove_dead(&self, lock: &str, owner: &str) -> Result<()> {
        let hash = twox_hash::XxHash3_128::oneshot(owner.as_bytes()) as u64;
        // The next writer drops it with the stages if we are killed before we do.
        let guard = format!("{}_dyno_stage_dead_{hash:016x}", self.address.table);
        self.acquire(&guard)?;
        let removed = self.remove_if_of(lock, owner);
        self.remove_if_of(&guard, &self.me.text())?;
        removed
    }

    /// Drops a lock if it is the one of `owner`. Each attempt looks anew, because if the answer to
    /// the first one was lost, another process may have created its own lock since.
    fn remove_if_of(&self, lock: &str, owner: &str) -> Result<()> {
        let sql = format!("DROP TABLE IF EXISTS {}", self.full_name(lock));
        self.patience.with(|| match self.owner(lock)? {
            Some(found) if found == owner => self.client.query(ACTION, &sql).map(drop),
            _ => Ok(()),
        })
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
    /// The ID of its machine. It is empty if the machine has none, or if an earlier version of this
    /// program created the lock.
    machine: String,
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
            machine: fs::read_to_string("/etc/machine-id")
                .map(|id| machine_of(&id))
                .unwrap_or_default(),
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
            machine,
        } = self;
        let words = format!("{boot} {namespace} {started} {number} {machine}");
        format!("{pid} on {host} ({})", words.trim_end())
    }

    fn parse(text: &str) -> Option<Process> {
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
            machine: words.next().unwrap_or_default().to_owned(),
        })
    }

    /// Whether the process has certainly ended, as far as `me` can see.
    fn is_gone(&self, me: &Process) -> bool {
        if self.host != me.host {
            return false;
        }
        // Every process of an earlier boot has ended, if it was a boot of this machine and not of
        // another one with the same host name. Within one boot a number tells a process only
        // together with its namespace and its start, because numbers are reused.
        if self.boot != me.boot {
            return !me.machine.is_empty() && self.machine == me.machine;
        }
        self.namespace == me.namespace && start_of(self.pid) != Some(self.started)
    }
}

/// The ID in the text of `/etc/machine-id`; empty if it has none. In images, and until the first
/// boot of a machine is complete, the file is empty or says `uninitialized`.
fn machine_of(text: &str) -> String {
    let id = text.trim();
    let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id { id.to_owned() } else { String::new() }
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
mod tests;
