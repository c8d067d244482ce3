//! `dyno selfcheck`: how good the linter and the verdicts are, on input whose truth is known.

use dyno_report::selfcheck;

use crate::args::SelfcheckArgs;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &SelfcheckArgs) -> anyhow::Result<Exit> {
    let checked = selfcheck(args.full);
    terminal::print(&match args.json {
        true => serde_json::to_string_pretty(&checked)?,
        false => checked.to_lines().join("\n"),
    })?;
    Ok(match checked.below.is_empty() {
        true => Exit::Done,
        false => Exit::No,
    })
}
