//! A home directory for a test, where it finds its own runs and caches and no others.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `dyno` with its runs and its caches in `home`.
pub fn dyno(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command
        .current_dir(home)
        .env("HOME", home)
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_DATA_HOME");
    command
}

/// Whether the other program, which queries need, was built as well.
pub fn has_sql() -> bool {
    Path::new(env!("CARGO_BIN_EXE_dyno"))
        .with_file_name("dyno-sql")
        .is_file()
}

/// The records of the runs in `home`, in any order.
pub fn runs(home: &Path) -> Vec<PathBuf> {
    entries(&home.join("runs"))
}

/// The record of the one run in `home`.
pub fn only_run(home: &Path) -> PathBuf {
    let mut runs = runs(home);
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

/// The scratch directories in `home`: each `dyno` that runs there has one, and removes it at its
/// end. The list is empty if no `dyno` has run yet.
pub fn scratch_directories(home: &Path) -> Vec<PathBuf> {
    let mut found = entries(&home.join(".cache/dynolab"));
    found.retain(|path| {
        let name = path.file_name().expect("it is in a directory");
        name.to_string_lossy().starts_with("scratch-")
    });
    found
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    entries
        .map(|entry| entry.expect("readable").path())
        .collect()
}
