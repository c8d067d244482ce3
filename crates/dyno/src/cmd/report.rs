//! `dyno report RUN`: prints what a record says. It runs nothing.

use dyno_record::RunDir;
use dyno_report::build_stored;

use crate::args::{Format, ReportArgs};
use crate::exit::Exit;
use crate::{runs, terminal};

pub fn run(args: &ReportArgs) -> anyhow::Result<Exit> {
    let dir = runs::at(&args.run)?;
    let stored = RunDir::open(&dir)?;
    for warning in &stored.warnings {
        eprintln!("{warning}");
    }
    let report = build_stored(&stored);
    let text = match args.format {
        Format::Md => report.to_markdown()?,
        Format::Html => report.to_html()?,
        Format::Json => report.to_json()?,
        Format::Xlsx => {
            terminal::write_binary(&report.to_xlsx()?)?;
            return Ok(Exit::Done);
        }
    };
    terminal::print(&text)?;
    Ok(Exit::Done)
}
