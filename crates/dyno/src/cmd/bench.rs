//! What `bench` of any engine does: a suite of one case, through the same record and report as everything
//! else.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use dyno_suite::Stop;

use crate::args::{PeersFrom, RunArgs, SelectArgs, SizeArgs};
use crate::cmd;
use crate::exit::Exit;
use crate::places;

/// What was asked for.
pub struct Bench<'a> {
    /// The engine, after which the suite is named.
    pub engine: &'a str,
    /// The suite's TOML; the record keeps it, so the run can be repeated.
    pub suite: String,
    /// Whether peers run too, and where they are declared.
    pub peers: bool,
    pub peers_from: &'a PeersFrom,
    /// For scratch files; the cache when there is none.
    pub data_dir: Option<PathBuf>,
    /// Below it the run and its report are written.
    pub report: &'a Path,
    /// How often a line is printed when no progress bar is shown.
    pub report_every: Duration,
    pub json: bool,
}

/// Unless the command has a flag for it.
pub const REPORT_EVERY: Duration = Duration::from_secs(30);

pub fn run(bench: Bench<'_>, stop: &Stop) -> anyhow::Result<Exit> {
    let folder = places::cache(None)?.join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let file = folder.join(format!("{}-bench.toml", bench.engine));
    fs::write(&file, bench.suite).with_context(|| format!("cannot write {}", file.display()))?;
    let run = RunArgs {
        select: SelectArgs {
            suites: vec![file.display().to_string()],
            size: SizeArgs {
                quick: true,
                full: false,
                tiny: false,
            },
            set: Vec::new(),
            peers: bench.peers,
            suites_dir: None,
            peers_from: bench.peers_from.clone(),
            data_dir: bench.data_dir,
            max_disk: None,
        },
        beside: None,
        report_every: bench.report_every,
        budget: None,
        limits: false,
        out: bench.report.to_owned(),
        json: bench.json,
    };
    cmd::run::run(&run, stop)
}
