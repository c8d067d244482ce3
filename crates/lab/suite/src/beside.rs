//! A load beside the run: a command of the user's that keeps running while samples are taken.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

use crate::child::kill_group;
use crate::Error;

/// A command that runs until this is dropped.
#[derive(Debug)]
pub struct Beside {
    command: String,
    child: Child,
}

impl Beside {
    /// Starts `sh -c COMMAND` in a process group of its own, with its output thrown away.
    ///
    /// # Errors
    /// [`Error::Beside`] when there is no shell to start.
    pub fn start(command: &str) -> Result<Beside, Error> {
        let child = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|e| Error::Beside {
                command: command.to_string(),
                reason: e.to_string(),
            })?;
        Ok(Beside {
            command: command.to_string(),
            child,
        })
    }

    /// Starts the command again if it has ended. The figure of a load that was only there for a
    /// part of the sample means little, so the end is told, to be kept with the sample.
    ///
    /// # Errors
    /// [`Error::Beside`] when it cannot be started again.
    pub fn keep_alive(&mut self) -> Result<Option<String>, Error> {
        let status = self.child.try_wait().map_err(|e| Error::Beside {
            command: self.command.clone(),
            reason: e.to_string(),
        })?;
        let Some(status) = status else {
            return Ok(None);
        };
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with code {code} and was started again"),
            (None, signal) => format!("ended by signal {signal:?} and was started again"),
        };
        *self = Beside::start(&self.command.clone())?;
        Ok(Some(how))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        kill_group(self.child.id());
        // The shell is gone by now; waiting only takes its entry off the process table.
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_kept_alive_and_ends_with_its_owner() {
        let mut beside = Beside::start("exit 3").expect("a shell");
        let told = loop {
            match beside.keep_alive().expect("restarts") {
                Some(told) => break told,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(told, "ended with code 3 and was started again");
        let beside = Beside::start("cat /dev/zero | cat").expect("a shell");
        let id = beside.child.id();
        drop(beside);
        assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
    }
}
