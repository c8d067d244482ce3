//! `dyno tpch gen` seen from outside: what it refuses, what a kill and a full disk leave, and what
//! it holds in memory.

#![cfg(target_os = "linux")]

mod baseline;
mod full_disk;
mod killed;
mod memory;
mod refused;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program with a job, words separated by spaces.
fn generate(words: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("dyno"));
    command.args(["tpch", "gen"]).args(words.split_whitespace());
    command
}

/// Where the program that writes the mode baseline would lie.
fn sql_engine() -> PathBuf {
    assert_cmd::cargo::cargo_bin!("dyno").with_file_name("dyno-sql")
}

/// The bytes of every file below a folder, hidden ones too, by path.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder that can be listed") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("it lies below");
                found.insert(name.to_path_buf(), fs::read(&path).expect("a file"));
            }
        }
    }
    found
}

/// Whether a file stands under a final name: neither a receipt nor written aside.
fn is_final(name: &Path) -> bool {
    !name
        .components()
        .any(|part| part.as_os_str().to_string_lossy().starts_with('.'))
}
