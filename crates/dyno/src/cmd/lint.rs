//! `dyno lint RUN|FIGURES.toml`: holds figures against arithmetic and limits.

use dyno_record::{Figures, RunDir, latest_run, read_figures};
use dyno_report::{Severity, build_stored, figures_of, lint, lint_markdown};

use crate::args::LintArgs;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &LintArgs) -> anyhow::Result<Exit> {
    let figures = read(args)?;
    let findings = lint(&figures);
    if args.json {
        terminal::print(&serde_json::to_string_pretty(&findings)?)?;
    } else {
        terminal::print(&lint_markdown(&figures, &findings))?;
    }
    let wrong = findings
        .iter()
        .any(|finding| finding.severity == Severity::Error);
    Ok(if wrong { Exit::No } else { Exit::Done })
}

fn read(args: &LintArgs) -> anyhow::Result<Figures> {
    if args.what.extension().is_some_and(|x| x == "toml") {
        return Ok(read_figures(&args.what)?);
    }
    let stored = RunDir::open(&latest_run(&args.what, None)?)?;
    Ok(figures_of(&build_stored(&stored), &stored.samples))
}
