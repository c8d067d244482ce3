//! This program's own commands, as a user would call them.

use std::io::{BufRead, BufReader};
use std::process::{self, Child, Command, Stdio};

use serde_json::Value;

use super::PagesError;
use crate::strays::is_gone;

/// With what the names of stores of rigs begin. A process id follows.
const NAME: &str = "bench-";

/// A command that serves until it is interrupted. Dropping it interrupts it.
pub(super) struct Server(Child);

impl Server {
    /// Starts this program with `arguments`, and returns when it has said where it listens.
    pub fn start(arguments: &[&str]) -> Result<Server, PagesError> {
        let mut process = program()?
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| PagesError::system("this program", e))?;
        let out = process.stdout.take();
        let server = Server(process);
        // Until it has printed its address the process may not listen yet, or may have failed. Its
        // stdout closes when it ends, so a failure ends this wait.
        let first = out.and_then(|out| BufReader::new(out).lines().next()?.ok());
        match first {
            Some(line) if line.starts_with("listening at ") => Ok(server),
            other => {
                let command = arguments[..2].join(" ");
                Err(PagesError::Refused(format!(
                    "dyno {command} says {other:?}"
                )))
            }
        }
    }

    /// The process id, for `/proc`.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let ended = Command::new("kill")
            .args(["-INT", &self.0.id().to_string()])
            .status()
            .and_then(|_| self.0.wait());
        if let Err(error) = ended {
            eprintln!("process {} stays: {error}", self.0.id());
        }
    }
}

/// What this process calls its store.
pub(super) fn store_name() -> String {
    format!("{NAME}{}", process::id())
}

/// Detaches the devices of rigs that were killed before they could do it.
pub(super) fn detach_strays() {
    let listed = own(&["pages", "list", "--json"]).unwrap_or_default();
    let stores: Vec<Value> = serde_json::from_str(&listed).unwrap_or_default();
    for name in stores.iter().filter_map(|store| store["name"].as_str()) {
        let is_stray = name.strip_prefix(NAME).is_some_and(is_gone);
        if is_stray && let Err(error) = own(&["pages", "detach", "--name", name]) {
            eprintln!("{name}, whose owner was killed, stays: {error}");
        }
    }
}

fn program() -> Result<Command, PagesError> {
    let program = std::env::current_exe().map_err(|e| PagesError::system("this program", e))?;
    Ok(Command::new(program))
}

/// Runs this program with `arguments` and returns its stdout.
pub(super) fn own(arguments: &[&str]) -> Result<String, PagesError> {
    let output = program()?
        .args(arguments)
        .output()
        .map_err(|e| PagesError::system("this program", e))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(PagesError::Refused(stderr.trim().to_string()))
}
