//! A load beside the run: a command of the user's that keeps running while samples are taken.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dyno_machine::{ChildLimits, MachineError, run_child};

use crate::Error;

/// No run lasts this long; the command ends with its owner.
const TIME_LIMIT: Duration = Duration::from_secs(7 * 24 * 3600);

/// A command that runs until this is dropped.
#[derive(Debug)]
pub struct Beside {
    command: String,
    stop: Arc<AtomicBool>,
    /// Tells how the command ended.
    watcher: Option<JoinHandle<Result<String, MachineError>>>,
}

impl Beside {
    /// Starts `sh -c COMMAND` in a process group of its own, with its output thrown away.
    pub fn start(command: &str) -> Beside {
        let stop = Arc::new(AtomicBool::new(false));
        let (text, flag) = (command.to_string(), Arc::clone(&stop));
        let watcher = thread::spawn(move || {
            let mut shell = Command::new("sh");
            shell.args(["-c", &text]);
            let limits = ChildLimits {
                stop: Some(&flag),
                stdout_bytes_max: 4096,
                stderr_bytes_max: 4096,
                ..ChildLimits::time(TIME_LIMIT)
            };
            run_child(shell, &[], limits).map(|child| child.exit.to_string())
        });
        Beside {
            command: command.to_string(),
            stop,
            watcher: Some(watcher),
        }
    }

    /// Starts the command again if it has ended. The figure of a load that was only there for a
    /// part of the sample means little, so the end is told, to be kept with the sample.
    ///
    /// # Errors
    /// [`Error::Beside`] when it could not be started.
    pub fn keep_alive(&mut self) -> Result<Option<String>, Error> {
        if !self.watcher.as_ref().is_some_and(JoinHandle::is_finished) {
            return Ok(None);
        }
        let fail = |reason: String| Error::Beside {
            command: self.command.clone(),
            reason,
        };
        let how = match self.watcher.take().map(JoinHandle::join) {
            Some(Ok(Ok(how))) => how,
            Some(Ok(Err(e))) => return Err(fail(e.to_string())),
            Some(Err(_)) | None => return Err(fail("its watcher failed".to_string())),
        };
        *self = Beside::start(&self.command.clone());
        Ok(Some(format!("ended with {how} and was started again")))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(watcher) = self.watcher.take() {
            // How it ended is of no interest once nothing is timed beside it.
            let _ = watcher.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_kept_alive_and_ends_with_its_owner() {
        let mut beside = Beside::start("exit 3");
        let told = loop {
            match beside.keep_alive().expect("restarts") {
                Some(told) => break told,
                None => thread::yield_now(),
            }
        };
        assert_eq!(told, "ended with exit code 3 and was started again");
        // This would never end by itself; dropping returns, so it was killed.
        drop(Beside::start("cat /dev/zero | cat"));
    }
}
