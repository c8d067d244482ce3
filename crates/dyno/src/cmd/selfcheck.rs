//! `dyno selfcheck`: how good the linter and the verdicts are, on input whose truth is known.

use dyno_report::selfcheck;

use crate::args::SelfcheckArgs;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &SelfcheckArgs) -> anyhow::Result<Exit> {
    let checked = selfcheck(args.full);
    terminal::print(&if args.json {
        serde_json::to_string_pretty(&checked)?
    } else {
        checked.to_lines().join("\n")
    })?;
    Ok(if checked.below.is_empty() {
        Exit::Done
    } else {
        Exit::No
    })
}
