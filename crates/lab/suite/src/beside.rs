//! A load beside a sample: a process group that is there from before the sample until after it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dyno_machine::{ChildLimits, ChildRun, MachineError, run_child};

use crate::Error;

/// No sample lasts this long; the load ends with it.
const TIME_LIMIT: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long a load runs before the sample starts: time to start a shell and to touch the memory
/// that it streams through. A load that cannot even start has ended by then.
const HEAD_START: Duration = Duration::from_millis(300);

/// Of what a load complained about, so many bytes are shown.
const SAID_BYTES: usize = 400;

/// A load, and how it is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadCommand {
    /// The load as the user wrote it, for the record and for messages.
    pub text: String,
    /// The executable that is started; it must run until it is killed.
    pub program: PathBuf,
    /// The arguments of the executable, without its name.
    pub args: Vec<OsString>,
}

/// A load that was started; dropping it kills it as well, without a word on how it went.
pub trait RunningLoad {
    /// Ends the load with all its processes.
    ///
    /// # Errors
    /// [`Error::Beside`] when it had ended by itself: then a part of the sample ran beside nothing.
    fn end(self: Box<Self>) -> Result<(), Error>;
}

/// A load in a process group of its own, which is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Beside {
    text: String,
    stop: Arc<AtomicBool>,
    /// Tells how the load ended, once.
    ended: Receiver<Result<ChildRun, MachineError>>,
    watcher: Option<JoinHandle<()>>,
}

impl Beside {
    /// Starts the load in `dir`, with its output thrown away, and returns when it has had a head
    /// start.
    ///
    /// # Errors
    /// [`Error::Beside`] when it could not be started or has ended already.
    pub(crate) fn start(load: &LoadCommand, dir: &Path) -> Result<Beside, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, ended) = channel();
        let mut command = Command::new(&load.program);
        command.args(&load.args).current_dir(dir);
        let flag = Arc::clone(&stop);
        let watcher = thread::spawn(move || {
            let limits = ChildLimits {
                stop: Some(&flag),
                stdout_bytes_max: SAID_BYTES,
                stderr_bytes_max: SAID_BYTES,
                ..ChildLimits::time(TIME_LIMIT)
            };
            // The receiver is gone when the load was dropped; then its end is of no interest.
            let _ = tell.send(run_child(command, &[], limits));
        });
        let mut beside = Beside {
            text: load.text.clone(),
            stop,
            ended,
            watcher: Some(watcher),
        };
        match beside.ended.recv_timeout(HEAD_START) {
            Err(RecvTimeoutError::Timeout) => Ok(beside),
            Ok(ended) => Err(beside.ended_early(ended)),
            Err(RecvTimeoutError::Disconnected) => {
                beside.join();
                Err(beside.error("its watcher failed".to_owned()))
            }
        }
    }

    fn ended_early(&self, ended: Result<ChildRun, MachineError>) -> Error {
        self.error(match ended {
            Err(error) => error.to_string(),
            Ok(child) => {
                let stderr = child.stderr.text();
                let message = match stderr.trim() {
                    "" => String::new(),
                    message => format!(": {message}"),
                };
                format!(
                    "it ended with {} after {:.1} s, before the sample beside it did{message}",
                    child.exit, child.wall_s
                )
            }
        })
    }

    fn error(&self, reason: String) -> Error {
        Error::Beside {
            load: self.text.clone(),
            reason,
        }
    }

    fn join(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(watcher) = self.watcher.take() {
            // The watcher only passes on what it saw; if it panicked, the channel is closed.
            let _ = watcher.join();
        }
    }
}

impl RunningLoad for Beside {
    fn end(mut self: Box<Self>) -> Result<(), Error> {
        // The watcher returns after the whole group was killed, so that nothing of the load runs
        // beside the next sample.
        self.join();
        match self.ended.try_recv() {
            // A load that ended just before the stop reached it is not marked as stopped either.
            Ok(Ok(child)) if child.stopped => Ok(()),
            Ok(ended) => Err(self.ended_early(ended)),
            Err(_) => Err(self.error("its watcher failed".to_owned())),
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.join();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn start(script: &str, dir: &Path) -> Result<Beside, Error> {
        let load = LoadCommand {
            text: script.to_owned(),
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
        };
        Beside::start(&load, dir)
    }

    #[test]
    fn a_load_is_killed_with_all_its_processes() {
        let dir = tempfile::tempdir().expect("a directory");
        // Two processes that would never end: one beside the shell, and one that it waits for.
        let script = "cat /dev/zero >/dev/null & echo $! > child; exec cat /dev/zero >/dev/null";
        let load = start(script, dir.path()).expect("it runs");
        let child = fs::read_to_string(dir.path().join("child")).expect("a process id");
        let alive = || Path::new("/proc").join(child.trim()).join("fd/1").exists();
        assert!(alive());
        Box::new(load).end().expect("it ran until it was ended");
        // The kill has been sent to the child of the shell as well; it ends as soon as it is run.
        while alive() {
            thread::yield_now();
        }
    }

    #[test]
    fn a_load_that_ends_early_is_an_error_with_its_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let said = start("echo no disk >&2; exit 3", dir.path())
            .expect_err("ended")
            .to_string();
        assert!(said.contains("`echo no disk >&2; exit 3`"), "{said}");
        assert!(said.contains("it ended with exit code 3"), "{said}");
        assert!(said.ends_with(": no disk"), "{said}");
        // One that ends later, by itself, while the sample runs.
        let load = start("cat go", dir.path());
        assert!(load.is_err(), "there is no file to read");
        let made = Command::new("mkfifo").arg(dir.path().join("go")).status();
        assert!(made.expect("mkfifo runs").success());
        let load = start("cat go", dir.path()).expect("it waits for a writer");
        fs::write(dir.path().join("go"), "now").expect("it reads");
        while !load.watcher.as_ref().is_some_and(JoinHandle::is_finished) {
            thread::yield_now();
        }
        let said = Box::new(load).end().expect_err("ended").to_string();
        assert!(said.contains("it ended with exit code 0"), "{said}");
    }

    #[test]
    fn a_load_that_cannot_be_started_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let load = LoadCommand {
            text: "cpu".to_owned(),
            program: "/nowhere/dyno".into(),
            args: Vec::new(),
        };
        let said = Beside::start(&load, dir.path())
            .expect_err("no such program")
            .to_string();
        assert!(said.contains("`cpu`"), "{said}");
        assert!(said.contains("cannot start /nowhere/dyno"), "{said}");
    }
}
