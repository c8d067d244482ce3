//! Readers that we did not write: pyarrow and pyorc, both over the C++ library.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter of an installed peer; none, said on standard output, when there is none.
pub fn interpreter(peer: &str, what: &str) -> Option<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share")));
    let python = data.map(|data| data.join(format!("dynolab/peers/{peer}/venv/bin/python")));
    let python = python.filter(|python| python.exists());
    if python.is_none() {
        println!("skipped: {what}: {peer} is not installed");
    }
    python
}

/// Runs a script on a file and returns what it prints.
pub fn ask(python: &Path, script: &str, file: &Path) -> String {
    let output = Command::new(python)
        .arg("-c")
        .arg(script)
        .arg(file)
        .output()
        .expect("the interpreter starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout).expect("the script prints UTF-8")
}
