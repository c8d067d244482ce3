//! `dyno compare BASE NEW`: did it become slower?

use anyhow::bail;
use dyno_report::{Answer, CompareRules, compare, nothing_to_compare};

use crate::args::CompareArgs;
use crate::exit::Exit;
use crate::{runs, terminal};

pub fn run(args: &CompareArgs) -> anyhow::Result<Exit> {
    let base = runs::open(&args.base)?;
    let new = runs::open(&args.new)?;
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
        let text = comparison.to_markdown();
        terminal::print(&match terminal::is_stdout() {
            // Emphasis is for Markdown; the table reads well as it is.
            true => text.replace("**", ""),
            false => text,
        })?;
    }
    Ok(match comparison.answer {
        Answer::NoRegression => Exit::Done,
        Answer::Regression => Exit::No,
        Answer::NotEnoughEvidence => Exit::NotEnoughEvidence,
    })
}
