//! `dyno lint RUN|FIGURES.toml`: holds figures against arithmetic and limits.

use dyno_record::{Figures, read_figures};
use dyno_report::{Severity, build_stored, figures_of, lint, lint_markdown, lint_text};

use crate::args::LintArgs;
use crate::exit::Exit;
use crate::{runs, terminal};

pub fn run(args: &LintArgs) -> anyhow::Result<Exit> {
    let figures = read(args)?;
    let findings = lint(&figures);
    if args.json {
        terminal::print(&serde_json::to_string_pretty(&findings)?)?;
    } else if terminal::is_stdout() {
        terminal::print(&terminal::wrapped(&lint_text(&figures, &findings)))?;
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
    anyhow::ensure!(
        !args.what.is_file(),
        "{} is neither a run nor figures: lint reads runs, which are directories with run.json, and figures in \
         *.toml; reports of other programs are not read",
        args.what.display()
    );
    let stored = runs::open(&args.what)?;
    Ok(figures_of(&build_stored(&stored), &stored.samples))
}
