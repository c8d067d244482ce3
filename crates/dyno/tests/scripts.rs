//! `--help` of the tree's scripts prints what a script does, and does nothing of it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs that help may use. Whatever else a script would start is not found.
const ENOUGH: [&str; 3] = ["bash", "sed", "dirname"];

#[test]
fn help_of_a_script_is_its_description_and_nothing_else() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts");
    let path = tempfile::tempdir().unwrap();
    for program in ENOUGH {
        symlink(found(program), path.path().join(program)).unwrap();
    }
    let mut seen = 0;
    for script in executables(&scripts) {
        let output = Command::new(&script)
            .arg("--help")
            .env("PATH", path.path())
            .current_dir(path.path())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let text = fs::read_to_string(&script).unwrap();
        let name = script.display();
        assert!(output.status.success(), "{name}: {said}");
        assert!(output.stderr.is_empty(), "{name}");
        let expected: Vec<&str> = text
            .lines()
            .skip(1)
            .map_while(|line| line.strip_prefix('#'))
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect();
        assert_eq!(said.lines().collect::<Vec<_>>(), expected, "{name}");
        seen += 1;
    }
    assert!(seen >= 10, "{seen} scripts");
}

/// Scripts that a person starts; what they source, or put into a machine, has no `set` of its own.
fn executables(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mode = path.metadata().unwrap().permissions().mode();
        if path.is_dir() {
            files.extend(executables(&path));
        } else if mode & 0o111 != 0 && !path.ends_with("slow/ublk-init") {
            files.push(path);
        }
    }
    files
}

fn found(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
        .unwrap()
}
