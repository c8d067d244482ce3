//! A llama.cpp server that we did not write, with a model made on the spot (`server.py`), in a
//! process of its own. scripts/test installs it. Tests of other crates take this file by its path.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A server of our own; stopped when dropped.
pub struct Llama {
    child: Child,
    /// With `/v1` at its end.
    pub address: String,
}

impl Llama {
    /// Starts it; `None`, with the line that counts `what`, where it is not installed. Its model is
    /// in `folder`.
    pub fn start(folder: &Path, what: &str) -> Option<Llama> {
        let python = interpreter()?;
        if !python.exists() {
            println!("skipped: {what}: no xllamacpp at {}", python.display());
            return None;
        }
        let port = dyno_ports::free().expect("a port");
        let mut command = Command::new(python);
        command.args(["-c", include_str!("server.py")]);
        // A server names its model by the file, and a report of this one must not look like one of a
        // model that answers questions.
        let model = folder.join("a random model of one layer.gguf");
        command.arg(model).arg(port.to_string());
        let log = std::fs::File::create(folder.join("llama.log")).expect("a log");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        let mut child = command.spawn().expect("python starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut said = lines.map_while(Result::ok);
        let found = said.find_map(|line| Some(line.strip_prefix("Running on ")?.trim().to_owned()));
        let found = found.unwrap_or_else(|| {
            let log = std::fs::read_to_string(folder.join("llama.log"));
            panic!(
                "llama.cpp's server did not start: {}",
                log.unwrap_or_default()
            )
        });
        // It must not find the pipe full.
        std::thread::spawn(move || said.for_each(drop));
        let address = format!("{}/v1", found.trim_end_matches('/'));
        Some(Llama { child, address })
    }
}

fn interpreter() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    let data = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or(home)?;
    Some(data.join("dynolab/peers/llama/venv/bin/python"))
}

impl Drop for Llama {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
