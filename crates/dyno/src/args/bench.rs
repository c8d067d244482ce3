//! The flags that `bench` of every engine shares.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::PeersFrom;
use crate::units::duration;

/// How often each system is measured, beside which peers, and where the run goes.
#[derive(Debug, Clone, ClapArgs)]
pub struct BenchArgs {
    /// Time each system N times
    #[arg(long, value_name = "N", default_value_t = 8,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,
    /// Measure the peers too, and name those that are not installed
    #[arg(long)]
    pub peers: bool,
    #[command(flatten)]
    pub peers_from: PeersFrom,
    /// Keep prepared data and scratch files in DIR [default: ~/.cache/dynolab]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Print a line every TIME when no progress bar is shown
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub report_every: Duration,
    /// Write each run below DIR
    #[arg(short, long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Print each report as JSON instead of the headline
    #[arg(long)]
    pub json: bool,
}
