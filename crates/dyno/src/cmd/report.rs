//! `dyno report RUN`: prints what a record says. It runs nothing.

use dyno_report::{JSON_SCHEMA, Report, build_stored};

use crate::args::{Format, ReportArgs};
use crate::exit::Exit;
use crate::{headline, runs, terminal};

pub fn run(args: &ReportArgs) -> anyhow::Result<Exit> {
    if args.schema {
        terminal::print(JSON_SCHEMA)?;
        return Ok(Exit::Done);
    }
    let report = build_stored(&runs::open(&args.run)?);
    let format = if args.json {
        Some(Format::Json)
    } else {
        args.format
    };
    let text = match format {
        // A whole report is thousands of lines, too many for a screen.
        None if terminal::is_stdout() => first_page(&report, args),
        None | Some(Format::Md) => report.to_markdown()?,
        Some(Format::Html) => report.to_html()?,
        Some(Format::Csv) => report.to_csv(),
        Some(Format::Json) => report.to_json()?,
        Some(Format::Xlsx) => {
            terminal::write_binary(&report.to_xlsx()?)?;
            return Ok(Exit::Done);
        }
    };
    terminal::print(&text)?;
    Ok(Exit::Done)
}

/// The headline, and the command that prints the whole report.
fn first_page(report: &Report, args: &ReportArgs) -> String {
    format!(
        "{}\n\n{}\n\nThe whole report: dyno report {} --format md, html, xlsx, json or csv\n",
        report.run.plan.title,
        headline::text(report),
        args.run.display()
    )
}
