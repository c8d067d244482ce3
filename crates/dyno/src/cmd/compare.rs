//! `dyno compare BASE NEW...` and `dyno gate BASE NEW...`: did it become slower?

use std::path::{Path, PathBuf};

use anyhow::bail;
use dyno_report::{Answer, CompareRules, Comparison, compare, nothing_to_compare};

use crate::args::{CompareArgs, GateArgs};
use crate::exit::Exit;
use crate::{runs, terminal};

pub fn run(args: &CompareArgs) -> anyhow::Result<Exit> {
    let rules = CompareRules {
        max_slowdown: args.max_slowdown,
        across: args.across,
    };
    let comparison = compared(&args.base, &args.new, &rules)?;
    print(&comparison, args.json, |c| {
        terminal::markdown(c.to_markdown())
    })
}

/// The form for scripts: the answer first, and of the figures only those that stand in its way.
pub fn gate(args: &GateArgs) -> anyhow::Result<Exit> {
    let rules = CompareRules {
        max_slowdown: Some(args.max_slowdown),
        across: false,
    };
    let comparison = compared(&args.base, &args.new, &rules)?;
    print(&comparison, args.json, |c| c.to_lines().join("\n"))
}

fn compared(base: &Path, new: &[PathBuf], rules: &CompareRules) -> anyhow::Result<Comparison> {
    let base = runs::open(base)?;
    // Refused before anything is compared, because runs without a common case would otherwise give
    // an empty table, which reads like a good result.
    let mut newer = Vec::new();
    for path in new {
        let run = runs::open(path)?;
        if let Some(reason) = nothing_to_compare(&base, &run) {
            bail!(reason);
        }
        newer.push(run);
    }
    Ok(compare(&base, &newer, rules))
}

fn print(
    comparison: &Comparison,
    json: bool,
    text: impl FnOnce(&Comparison) -> String,
) -> anyhow::Result<Exit> {
    terminal::print(&if json {
        serde_json::to_string_pretty(comparison)?
    } else {
        text(comparison)
    })?;
    Ok(match comparison.answer {
        Answer::NoRegression => Exit::Done,
        Answer::Regression => Exit::No,
        Answer::NotEnoughEvidence => Exit::NotEnoughEvidence,
    })
}
