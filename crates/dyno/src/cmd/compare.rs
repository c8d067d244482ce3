//! `dyno compare BASE NEW`: did it become slower?

use anyhow::bail;
use dyno_record::RunDir;
use dyno_report::{Answer, CompareRules, compare, nothing_to_compare};

use crate::args::CompareArgs;
use crate::exit::Exit;
use crate::{runs, terminal};

pub fn run(args: &CompareArgs) -> anyhow::Result<Exit> {
    let base = RunDir::open(&runs::at(&args.base)?)?;
    let new = RunDir::open(&runs::at(&args.new)?)?;
    for warning in base.warnings.iter().chain(&new.warnings) {
        eprintln!("{warning}");
    }
    if let Some(reason) = nothing_to_compare(&base, &new) {
        bail!(reason);
    }
    let rules = CompareRules {
        max_slowdown: args.max_slowdown,
        across: args.across,
    };
    let comparison = compare(&base, &new, &rules);
    if args.json {
        terminal::print(&serde_json::to_string_pretty(&comparison)?)?;
    } else {
        terminal::print(&comparison.to_markdown())?;
    }
    Ok(match comparison.answer {
        Answer::NoRegression => Exit::Done,
        Answer::Regression => Exit::No,
        Answer::NotEnoughEvidence => Exit::NotEnoughEvidence,
    })
}
