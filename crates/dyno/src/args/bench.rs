//! The flags that `bench` of every engine shares.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::PeersFrom;
use crate::units::{duration, setting};

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
    /// Print no progress: failures and the result alone
    #[arg(short, long, conflicts_with = "report_every")]
    pub quiet: bool,
    /// Write each run below DIR
    #[arg(short, long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Print each report as JSON instead of the headline
    #[arg(long)]
    pub json: bool,
}

/// A quantile and what it may be at most.
#[derive(Debug, Clone)]
pub struct Bound {
    pub quantile: String,
    pub at_most: Duration,
}

fn bound(text: &str) -> Result<Bound, String> {
    let (quantile, at_most) = setting(text)
        .map_err(|_| format!("`{text}` is not of the form QUANTILE=TIME, such as p99=50ms"))?;
    if !["p50", "p90", "p95", "p99", "p999"].contains(&quantile.as_str()) {
        return Err(format!(
            "`{quantile}` is not one of p50, p90, p95, p99, p999"
        ));
    }
    Ok(Bound {
        quantile,
        at_most: duration(&at_most)?,
    })
}

/// The search for the highest rate that is answered in time.
#[derive(Debug, Clone, ClapArgs)]
pub struct CapacityArgs {
    /// Find the highest rate that keeps a bound on latency, such as p99=50ms
    #[arg(long, value_name = "QUANTILE=TIME", value_parser = bound)]
    pub capacity: Option<Bound>,
    /// With --capacity, try each rate for TIME
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5s",
        requires = "capacity")]
    pub probe: Duration,
}
