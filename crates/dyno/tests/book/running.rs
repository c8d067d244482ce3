//! A command that goes on while others run.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::line::shell;

/// A server of a page. It gets a Ctrl-C when the page ends.
pub struct Running(Child);

impl Running {
    /// Starts it and waits until it says that it listens.
    pub fn start(command: &str, folder: &Path) -> Running {
        // The command itself, not a shell around it, gets the Ctrl-C.
        let mut child = shell(&format!("exec {command}"), folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().expect(command).unwrap();
        assert!(first.starts_with("listening at "), "{command}: {first}");
        Running(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let pid = self.0.id().to_string();
        // Whatever came of the test, nothing is left running.
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        let _ = self.0.wait();
    }
}
