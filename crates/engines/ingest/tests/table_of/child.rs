//! A load in a process of its own: this very test program, started again for one of its tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dyno_ingest::load::Options;

const TABLE: &str = "DYNO_TEST_CHILD_TABLE";
const FILES: &str = "DYNO_TEST_CHILD_FILES";
const WORKERS: &str = "DYNO_TEST_CHILD_WORKERS";
const MEMORY: &str = "DYNO_TEST_CHILD_MEMORY";

/// A command that runs the test `name`, which calls [`load_if_child`], as the load of `files`.
pub fn command(name: &str, files: &[PathBuf], table: &Path, options: &Options) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", name, "--nocapture"])
        .env(TABLE, table)
        .env(FILES, std::env::join_paths(files).unwrap())
        .env(WORKERS, options.workers.to_string())
        .env(MEMORY, options.memory.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// Loads what [`command`] asked for and gives this process's peak memory in bytes; `None` in a
/// process that is nobody's child.
pub fn load_if_child() -> Option<u64> {
    let table = PathBuf::from(std::env::var_os(TABLE)?);
    let files: Vec<PathBuf> = std::env::split_paths(&std::env::var_os(FILES)?).collect();
    let number = |name| std::env::var(name).unwrap().parse::<usize>().unwrap();
    let options = Options {
        workers: number(WORKERS),
        memory: number(MEMORY),
        ..super::lenient()
    };
    for report in super::load_files(&files, &table, &options) {
        if let dyno_ingest::load::Outcome::Failed(error) = report.outcome {
            panic!("{error}");
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib: u64 = line
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    Some(kib * 1024)
}
