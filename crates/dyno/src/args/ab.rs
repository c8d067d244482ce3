//! The flags of `dyno ab`.

use std::time::Duration;

use clap::{ArgGroup, Args as ClapArgs};

use crate::units::{share, time_above_zero};

#[derive(Debug, ClapArgs)]
#[command(group(ArgGroup::new("form").args(["json", "markdown"])))]
#[command(group(ArgGroup::new("length").args(["runs", "precision"])))]
#[command(after_help = "Examples:
  dyno ab 'gzip -6 < data > /dev/null' 'gzip -9 < data > /dev/null'
  dyno ab 'sort words' 'sort --parallel=2 words' --verify 'sort --check' --precision 2%
  dyno ab --git main..HEAD 'make' './bench' --max-slowdown 3% --markdown

Each block runs OLD, NEW and OLD again in a balanced order. The difference of OLD from itself is \
the noise, and a difference of NEW that lies within it is not reported as one. The time that the \
shell needs to start counts. With --git, OLD builds a revision and NEW is measured, each revision in \
a worktree of its own.

Exits 0 when no slowdown is shown, 1 when NEW is slower, 3 when the runs cannot tell.")]
pub struct AbArgs {
    /// Command to compare with; with --git, the command that builds
    #[arg(value_name = "OLD")]
    pub old: String,
    /// Command to judge; with --git, the command that is measured
    #[arg(value_name = "NEW")]
    pub new: String,
    /// Measure N blocks of three runs
    #[arg(long, value_name = "N", default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(5..=10_000))]
    pub runs: u32,
    /// Measure until the ratio is known to within SHARE, such as 2%, for at most 200 blocks
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub precision: Option<f64>,
    /// Compare two revisions of the repository here, such as main..HEAD
    #[arg(long, value_name = "BASE..HEAD", value_parser = range)]
    pub git: Option<(String, String)>,
    /// Run CMD before each run, untimed
    #[arg(long, value_name = "CMD")]
    pub prepare: Option<String>,
    /// Run CMD after each run with its output as input, untimed, and stop if CMD fails
    #[arg(long, value_name = "CMD")]
    pub verify: Option<String>,
    /// Accept a slowdown of up to SHARE, such as 3%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub max_slowdown: Option<f64>,
    /// Kill a run that takes longer than TIME, and stop
    #[arg(long, value_name = "TIME", value_parser = time_above_zero, default_value = "10m")]
    pub time_limit: Duration,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print a paragraph of Markdown, for a pull request
    #[arg(long)]
    pub markdown: bool,
}

/// Parses `BASE..HEAD`; an empty side is `HEAD`, as git has it.
fn range(text: &str) -> Result<(String, String), String> {
    let (base, head) = text
        .split_once("..")
        .filter(|(base, head)| (*base, *head) != ("", "") && !head.starts_with('.'))
        .ok_or_else(|| format!("`{text}` is not a range of revisions, such as main..HEAD"))?;
    let named = |side: &str| match side {
        "" => "HEAD".to_owned(),
        side => side.to_owned(),
    };
    Ok((named(base), named(head)))
}
