//! Starts and stops the server of a cluster, and decides what to do with one that is running
//! already.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::processes::POLL;
use super::{Cluster, Role, postmaster};
use crate::error::PgError;
use crate::os::{last_lines, of_directory, one_of_directory, spawn_guarded};

/// How many lines of the server's log an error quotes.
const LOG_LINES: usize = 12;
/// How long an immediate shutdown may take.
const IMMEDIATE_TIMEOUT: Duration = Duration::from_secs(10);

/// How waiting for a server ended.
enum Wait {
    Ready,
    Gone(String),
}

impl Cluster {
    /// Whether the server takes connections.
    pub fn is_running(&self) -> bool {
        postmaster::read(&self.home.data()).is_some_and(|found| found.is_ready())
    }

    /// Stops the server if it runs, and starts it.
    ///
    /// # Errors
    /// As [`Cluster::stop`] and [`Cluster::open`].
    pub fn restart(&mut self) -> Result<(), PgError> {
        self.stop()?;
        self.bring_up()
    }

    /// Stops the server with a fast shutdown: sessions are ended and their transactions rolled
    /// back. If that takes too long an immediate shutdown follows, and the next start recovers.
    /// Does nothing if no server runs.
    ///
    /// # Errors
    /// When processes remain.
    pub fn stop(&mut self) -> Result<(), PgError> {
        if let Some(found) = postmaster::read(&self.home.data()) {
            self.signal(&found.process, libc::SIGINT)?;
            if self.wait_gone(self.options.stop_timeout)? {
                return Ok(());
            }
            self.signal(&found.process, libc::SIGQUIT)?;
            self.wait_gone(IMMEDIATE_TIMEOUT)?;
        }
        // A postmaster that died before its children leaves them behind, and a child inside a disk
        // wait can outlast both shutdowns. While one of them holds the shared memory no server can
        // start on this data.
        self.kill_all()
    }

    /// Starts the server, or adopts one that runs, whatever an earlier owner left behind.
    pub(crate) fn bring_up(&mut self) -> Result<(), PgError> {
        self.must_be_a_whole_copy()?;
        self.write_conf()?;
        if !self.adopt()? {
            self.clear_up()?;
            self.launch()?;
        }
        if self.identity.role == Role::Primary {
            // A promotion stores the role first. A crash after that left a server in recovery, and
            // its promotion is finished here.
            if self.home.data().join("standby.signal").exists() {
                self.leave_recovery()?;
            }
            if self.options.listen.is_some() {
                self.set_password()?;
            }
        }
        Ok(())
    }

    /// Refuses the data of a standby whose copy has not been put in place yet, because it would
    /// start as a primary.
    fn must_be_a_whole_copy(&self) -> Result<(), PgError> {
        let Role::Standby { name, .. } = &self.identity.role else {
            return Ok(());
        };
        if self.home.data().join("standby.signal").exists() {
            return Ok(());
        }
        Err(PgError::Standby {
            name: name.clone(),
            reason: "the copy of its primary was not finished; rebuild it".to_owned(),
        })
    }

    /// Writes the configuration and makes the server read it.
    pub(crate) fn reload(&self) -> Result<(), PgError> {
        self.write_conf()?;
        match postmaster::read(&self.home.data()) {
            Some(found) => self.signal(&found.process, libc::SIGHUP),
            None => Err(PgError::NotRunning {
                dir: self.home.dir.clone(),
            }),
        }
    }

    /// Adopts a running server of this directory. Returns `false` if there is none, or if it had to
    /// be stopped: because its socket is elsewhere, as after the directory was moved, or because
    /// the server must end with this process. Such a server may be shutting down with its last
    /// owner, and would not end with this one.
    fn adopt(&mut self) -> Result<bool, PgError> {
        let Some(found) = postmaster::read(&self.home.data()) else {
            return Ok(false);
        };
        let listens = found.listens_at(&self.identity.socket_dir, self.identity.port);
        let is_ours = self
            .server
            .as_ref()
            .is_some_and(|server| server.id() == found.process.pid);
        if !listens || !(self.options.leave_running || is_ours) {
            self.stop()?;
            return Ok(false);
        }
        if let Wait::Gone(_) = self.wait_ready(found.process.pid)? {
            return Ok(false);
        }
        self.signal(&found.process, libc::SIGHUP)?;
        Ok(true)
    }

    /// Kills orphans of a killed postmaster, which hold its shared memory, and removes its lock
    /// files. No process of this directory is alive by then, so a process with the id in a lock
    /// file is an unrelated one.
    fn clear_up(&mut self) -> Result<(), PgError> {
        self.kill_all()?;
        let socket = format!(".s.PGSQL.{}", self.identity.port);
        let locks = [
            self.home.data().join("postmaster.pid"),
            self.identity.socket_dir.join(format!("{socket}.lock")),
            self.identity.socket_dir.join(socket),
        ];
        for lock in locks {
            match fs::remove_file(&lock) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(PgError::io("remove", &lock)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn launch(&mut self) -> Result<(), PgError> {
        let program = self.installation.program("postgres");
        let log = self.home.open_log()?;
        // Lines of earlier starts must not appear in the error of this one.
        self.logged = log.metadata().map_or(0, |metadata| metadata.len());
        let again = log
            .try_clone()
            .map_err(PgError::io("open", &self.home.log()))?;
        let mut command = self.owner.command(&program, &self.home.dir);
        command
            .arg("-D")
            .arg(self.home.data())
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(again)
            // Ctrl-C at the terminal must reach only us, because we then stop the server in order.
            .process_group(0);
        // If we are killed and cannot stop the server, the kernel sends it the signal for a fast
        // shutdown, as stop() would.
        let child = if self.options.leave_running {
            command.spawn()
        } else {
            spawn_guarded(command, libc::SIGINT)
        };
        let child = child.map_err(PgError::io("run", &program))?;
        let pid = child.id();
        self.server = Some(child);
        match self.wait_ready(pid)? {
            Wait::Ready => Ok(()),
            // Another process may have started a server that was not visible yet.
            Wait::Gone(how) => {
                if self.adopt()? {
                    Ok(())
                } else {
                    Err(self.start_error(how))
                }
            }
        }
    }

    /// Waits until the server `pid` accepts connections or has ended.
    fn wait_ready(&mut self, pid: u32) -> Result<Wait, PgError> {
        let deadline = Instant::now() + self.options.start_timeout;
        loop {
            let found = postmaster::read(&self.home.data());
            // The file may still be that of an earlier server, which was ready, so the process
            // decides.
            if found.is_some_and(|found| found.process.pid == pid && found.is_ready()) {
                return Ok(Wait::Ready);
            }
            if let Some(child) = self.server.as_mut().filter(|child| child.id() == pid) {
                let ended = child
                    .try_wait()
                    .map_err(PgError::io("wait for the server of", &self.home.dir))?;
                if let Some(status) = ended {
                    self.server = None;
                    return Ok(Wait::Gone(format!("it ended with {status}")));
                }
            } else if one_of_directory(&self.home.data(), pid).is_none() {
                return Ok(Wait::Gone("it is gone".to_owned()));
            }
            if Instant::now() > deadline {
                let waited = self.options.start_timeout;
                return Err(self.start_error(format!("it was not ready after {waited:?}")));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Waits until no process of the cluster is left; returns `false` if some remain after
    /// `timeout`.
    fn wait_gone(&mut self, timeout: Duration) -> Result<bool, PgError> {
        let deadline = Instant::now() + timeout;
        let data = self.home.data();
        // The postmaster ends last. Listing all processes is expensive, so it comes second.
        while postmaster::read(&data).is_some() || !of_directory(&data).is_empty() {
            if Instant::now() > deadline {
                return Ok(false);
            }
            std::thread::sleep(POLL);
        }
        self.reap()?;
        Ok(true)
    }

    /// Collects the exit status of a server that was our child, so that no zombie stays. One that
    /// never became the server of this directory, as when it lost a race, is ended first.
    pub(super) fn reap(&mut self) -> Result<(), PgError> {
        let waiting = "wait for the server of";
        let Some(mut child) = self.server.take() else {
            return Ok(());
        };
        let ended = child
            .try_wait()
            .map_err(PgError::io(waiting, &self.home.dir))?;
        if ended.is_none() {
            child
                .kill()
                .map_err(PgError::io("end the server of", &self.home.dir))?;
            child.wait().map_err(PgError::io(waiting, &self.home.dir))?;
        }
        Ok(())
    }

    fn start_error(&self, reason: String) -> PgError {
        let log = self.home.log();
        PgError::Start {
            dir: self.home.dir.clone(),
            reason,
            tail: last_lines(&log, self.logged, LOG_LINES),
            log,
        }
    }
}
