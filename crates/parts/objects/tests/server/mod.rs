//! moto, an object store that we did not write (PyPI `moto[server]`, which scripts/test installs),
//! in a process of its own. Tests of other crates take this file by its path.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A server of our own; stopped when dropped.
pub struct Server {
    pub child: Child,
    /// `http://` and a port that was free.
    pub address: String,
}

/// The interpreter that has moto; `None`, with the line that counts `what`, where it is not
/// installed.
pub fn interpreter(what: &str) -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    let data = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or(home)?;
    let python = data.join("dynolab/peers/moto/venv/bin/python");
    if !python.exists() {
        println!("skipped: {what}: no moto at {}", python.display());
        return None;
    }
    Some(python)
}

impl Server {
    pub fn start(python: &Path) -> Server {
        let mut child = Command::new(python)
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", "0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().unwrap().unwrap();
            if let Some((_, address)) = line.split_once("Running on ") {
                break address.trim().to_owned();
            }
        };
        // The server writes a line for each request, and must not find the pipe full.
        std::thread::spawn(move || lines.for_each(drop));
        Server { child, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been killed by its test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
