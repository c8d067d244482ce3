//! Flags of the commands that set runs beside each other: `compare`, `gate` and `reproduce`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::PeersFrom;
use crate::units::{share, time_above_zero};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno compare before after --max-slowdown 3%
  dyno compare before after after-again
  dyno compare laptop/runs server/runs --across --json

A slowdown must recur in a second newer run before it counts as a regression. Exits 0 when no \
regression is shown, 1 when one is, 3 when the samples cannot tell.")]
pub struct CompareArgs {
    /// Older run
    #[arg(value_name = "BASE")]
    pub base: PathBuf,
    /// Newer run, and further runs of the same newer program
    #[arg(value_name = "NEW", required = true)]
    pub new: Vec<PathBuf>,
    /// Accept a slowdown of up to SHARE, such as 3%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub max_slowdown: Option<f64>,
    /// Judge also when machine, size or build differ
    #[arg(long)]
    pub across: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno gate before after after-again
  dyno gate before after after-again --max-slowdown 5% --json

Exits 0 when nothing became slower than accepted, 1 when something did in each newer run, \
2 when the runs cannot be read or share no case, 3 when the samples cannot tell: run again. \
packaging/gate.yml is a workflow that uses it.")]
pub struct GateArgs {
    /// Run of the older program
    #[arg(value_name = "BASE")]
    pub base: PathBuf,
    /// Two or more runs of the newer program; with one, no slowdown is certain
    #[arg(value_name = "NEW", required = true)]
    pub new: Vec<PathBuf>,
    /// Accept a slowdown of up to SHARE
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "3%")]
    pub max_slowdown: f64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno reproduce results/epyc-2-cores/2026-11-22-wspr#load-gz-2
  dyno reproduce runs/k2-20261120T101500Z#rated --json

Runs the case with the parameters, the size and the peers of the record. Exits 0 when it agrees, 1 \
when it disagrees, 2 when it could not be run, 3 when the samples cannot tell. On another machine \
only ratios are compared.")]
pub struct ReproduceArgs {
    /// Run, and one of its cases
    #[arg(value_name = "RUN#CASE")]
    pub record: RecordedCase,
    /// Read suites from DIR [default: those built in]
    #[arg(long, value_name = "DIR")]
    pub suites_dir: Option<PathBuf>,
    #[command(flatten)]
    pub peers_from: PeersFrom,
    /// Keep prepared data and scratch files in DIR [default: ~/.cache/dynolab]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Start no further block after TIME [default: the suite's budget]
    #[arg(long, value_name = "TIME", value_parser = time_above_zero)]
    pub budget: Option<Duration>,
    /// Write the new run below DIR
    #[arg(short, long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A run and one of its cases, written as `RUN#CASE`.
#[derive(Debug, Clone)]
pub struct RecordedCase {
    pub run: PathBuf,
    pub case: String,
}

impl FromStr for RecordedCase {
    type Err = String;

    /// The last `#` separates them: a directory may have one in its name, a case may not.
    fn from_str(text: &str) -> Result<RecordedCase, String> {
        match text.rsplit_once('#') {
            Some((run, case)) if !run.is_empty() && !case.is_empty() => Ok(RecordedCase {
                run: PathBuf::from(run),
                case: case.to_owned(),
            }),
            _ => Err("write RUN#CASE, such as runs/wspr-20261120T101500Z#load-gz-2".to_owned()),
        }
    }
}
