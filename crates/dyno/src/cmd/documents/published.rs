//! RESULTS.md and the table of the README, from the records that are committed.
//!
//! A figure stands unless its record is withdrawn (WITHDRAWN.md beside it), and a figure of a
//! program that cannot be built again is never in the README. The table of the README fails to be
//! made, instead of leaving a row out, when one of its figures no longer stands.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use dyno_record::{Load, RunDir, Size, find_runs};
use dyno_report::{Headline, Report, build_stored, headline as rows_of};

use super::markdown::{paragraph, table};

/// A row of the README: the record's directory below `results`, the case, and what it measures.
const PICKS: [(&str, &str, &str); 5] = [
    (
        "epyc-2-cores/2026-11-21-wspr-full",
        "load-gz-2",
        "load `.csv.gz` archives into a table",
    ),
    (
        "epyc-zen3-2-cores/2026-11-22-wspr-clickhouse-quick",
        "clickhouse-gz-2",
        "load `.csv.gz` archives into ClickHouse",
    ),
    (
        "epyc-2-cores/2026-11-21-wspr-full",
        "top-ten-2",
        "top ten senders of 60 M rows",
    ),
    (
        "epyc-zen3-2-cores/2026-11-22-wspr-queries-quick",
        "band-hour-2",
        "spots for each band and hour",
    ),
    (
        "epyc-2-cores/2026-11-21-tpch-all-cases",
        "parquet-snappy-2",
        "TPC-H as Parquet with snappy",
    ),
];

/// How much of a record is withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Withdrawn {
    Nothing,
    /// Rates and latencies of services; jobs of a stated size stand.
    Services,
    Everything,
}

/// A committed record.
pub struct Record {
    /// Below `results`, with slashes.
    path: String,
    report: Report,
    withdrawn: Withdrawn,
}

impl Record {
    fn open(results: &Path, folder: &Path) -> anyhow::Result<Record> {
        let stored = RunDir::open(folder)?;
        let withdrawn = match &stored.withdrawn {
            None => Withdrawn::Nothing,
            Some(withdrawal) => withdrawn(&withdrawal.what)
                .with_context(|| format!("the heading of WITHDRAWN.md in {}", folder.display()))?,
        };
        let below = folder.strip_prefix(results)?;
        Ok(Record {
            path: below.display().to_string(),
            report: build_stored(&stored),
            withdrawn,
        })
    }

    fn suite(&self) -> &str {
        &self.report.run.plan.suite
    }

    /// Whether the figure of a case may be quoted.
    fn stands(&self, case: &str) -> bool {
        let of_job = |case: &str| {
            let found = self.report.cases.iter().find(|c| c.plan.name == case);
            found.is_some_and(|c| c.plan.load == Load::Job)
        };
        match self.withdrawn {
            Withdrawn::Nothing => true,
            Withdrawn::Services => of_job(case),
            Withdrawn::Everything => false,
        }
    }
}

/// How much a record's withdrawal takes back, by its heading.
fn withdrawn(what: &str) -> anyhow::Result<Withdrawn> {
    let what = what.strip_prefix("Withdrawn: ").unwrap_or(what);
    match what {
        _ if what.starts_with("all rates and latencies") => Ok(Withdrawn::Everything),
        _ if what.starts_with("the rates and latencies of") => Ok(Withdrawn::Services),
        _ => bail!("{what:?} does not say how much is withdrawn"),
    }
}

/// All records below `results`, by machine and date.
pub fn read(results: &Path) -> anyhow::Result<Vec<Record>> {
    let folders = find_runs(results)?;
    let open = |folder: &PathBuf| Record::open(results, folder);
    folders.iter().map(open).collect()
}

/// The table of the README.
///
/// # Errors
/// Names the row whose figure is not there or may not be quoted.
pub fn headline(records: &[Record]) -> anyhow::Result<String> {
    let mut rows = Vec::new();
    for (path, case, what) in PICKS {
        let record = records
            .iter()
            .find(|record| record.path == path)
            .with_context(|| format!("results/{path} is not there"))?;
        if !record.stands(case) {
            bail!("{case} of results/{path} is withdrawn, and the README quotes it");
        }
        if let Some(why) = record.report.run.program.untraceable() {
            bail!("results/{path} is quoted in the README: {why}");
        }
        let all = rows_of(&record.report).rows;
        let row = all
            .into_iter()
            .find(|row| row.cells[0] == case)
            .with_context(|| format!("results/{path} has no case {case}"))?;
        let [_, figure, peer, ratio, share, verdict, _] = row.cells;
        if verdict.starts_with("not judged") || verdict.starts_with("not steady") {
            bail!("{case} of results/{path} is {verdict}, and the README quotes it");
        }
        let link = format!("[{}](results/{path}/report.md)", record.suite());
        rows.push(vec![
            what.to_owned(),
            figure,
            peer,
            ratio,
            share,
            verdict,
            link,
        ]);
    }
    let columns = [
        "job",
        "dyno",
        "best peer",
        "ratio",
        "of the limit",
        "verdict",
        "record",
    ];
    Ok(table(&columns, &rows))
}

/// How a page names a file of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// By a link, at the root of the tree.
    Linked,
    /// By its path, in the book, which does not hold the records.
    Named,
}

impl Files {
    fn name(self, text: &str, path: &str) -> String {
        match self {
            Files::Linked => format!("[{text}]({path})"),
            Files::Named => format!("{text}: `{path}`"),
        }
    }
}

/// All figures that stand, record by record.
pub fn results(records: &[Record], files: Files) -> String {
    let mut text = String::from(
        "# Results\n\n<!-- Made by `dyno documents` from the records below results/. -->\n\n",
    );
    text.push_str(&paragraph("", INTRODUCTION));
    for record in records {
        text.push_str(&section(record, files));
    }
    text
}

const INTRODUCTION: &str = "Every table below is printed from a committed record. A ratio above 1 \
    means that `dyno` is better than the best peer of the same run. The spread is the 95% interval \
    of the median from five samples on, and the range of the samples below that. A share of the \
    limit says how much of what the machine can do was reached. METHODOLOGY.md says how the figures \
    are made and BIAS.md how they could flatter us. Figures that were withdrawn are not shown; \
    the record of each says why.";

fn section(record: &Record, files: Files) -> String {
    let run = &record.report.run;
    let mut text = format!("\n## {}\n\n", record.path);
    let folder = format!("results/{}", record.path);
    text.push_str(&paragraph(
        "",
        &format!(
            "{}: suite `{}`, size {}. Made by `dyno` {}, revision {}. {}.",
            run.plan.title,
            record.suite(),
            size_name(run.plan.size),
            run.program.version,
            run.program.git_revision,
            files.name("The whole report", &format!("{folder}/report.md"))
        ),
    ));
    if let Some(why) = run.program.untraceable() {
        let line = format!("The program cannot be built again: {why}.");
        text.push_str(&format!("\n{}", paragraph("", &line)));
    }
    if record.withdrawn != Withdrawn::Nothing {
        let what = match record.withdrawn {
            Withdrawn::Everything => "All figures of this record are withdrawn",
            _ => "The rates and latencies of services in this record are withdrawn",
        };
        text.push('\n');
        text.push_str(&paragraph(
            "",
            &format!(
                "{what}; {}.",
                files.name("why", &format!("{folder}/WITHDRAWN.md"))
            ),
        ));
    }
    let Headline { rows, columns, .. } = rows_of(&record.report);
    let standing: Vec<Vec<String>> = rows
        .into_iter()
        .filter(|row| record.stands(&row.cells[0]))
        .map(|row| row.cells.to_vec())
        .collect();
    if !standing.is_empty() {
        text.push('\n');
        text.push_str(&table(&columns, &standing));
    }
    text
}

fn size_name(size: Size) -> &'static str {
    match size {
        Size::Tiny => "tiny",
        Size::Quick => "quick",
        Size::Full => "full",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heading_says_how_much_is_withdrawn() {
        let all = "Withdrawn: all rates and latencies of this record";
        assert_eq!(withdrawn(all).unwrap(), Withdrawn::Everything);
        let some = "Withdrawn: the rates and latencies of stores and faults in this record";
        assert_eq!(withdrawn(some).unwrap(), Withdrawn::Services);
        assert!(withdrawn("something").is_err());
    }
}
