//! `dyno lint RUN|FILE`: holds figures against arithmetic and limits.

use std::path::Path;

use anyhow::Context;
use dyno_record::{Figures, read_figures};
use dyno_report::{
    Finding, Severity, build_stored, figures_of, lint, lint_markdown, lint_text, read_foreign,
};

use crate::args::LintArgs;
use crate::exit::Exit;
use crate::{runs, terminal};

pub fn run(args: &LintArgs) -> anyhow::Result<Exit> {
    let (figures, findings) = read(args)?;
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

fn read(args: &LintArgs) -> anyhow::Result<(Figures, Vec<Finding>)> {
    let figures = if args.what.extension().is_some_and(|x| x == "toml") {
        read_figures(&args.what)?
    } else if args.what.is_file() {
        foreign(&args.what)?
    } else {
        let stored = runs::open(&args.what)?;
        let report = build_stored(&stored);
        let figures = figures_of(&report, &stored.samples);
        // A system without any result has no figures, so that only the report can tell of it.
        return Ok((figures, report.findings));
    };
    let findings = lint(&figures);
    Ok((figures, findings))
}

/// A result file is kilobytes, one with every sample megabytes; more than this is something else.
const LARGEST: u64 = 256 << 20;

fn foreign(path: &Path) -> anyhow::Result<Figures> {
    let name = path.display().to_string();
    // The size is checked before the file is read, because it is read into memory whole.
    let size = std::fs::metadata(path).with_context(|| name.clone())?.len();
    anyhow::ensure!(
        size <= LARGEST,
        "{name}: {size} bytes are more than a file of results has"
    );
    let bytes = std::fs::read(path).with_context(|| name.clone())?;
    // A file in another encoding has the same numbers.
    let text = String::from_utf8_lossy(&bytes);
    read_foreign(&name, &text).with_context(|| name)
}
