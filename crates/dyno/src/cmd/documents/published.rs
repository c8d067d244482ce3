//! RESULTS.md and the page of results in the book, from the records that are committed.
//!
//! A figure stands unless its record is withdrawn (WITHDRAWN.md beside it).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::Context;
use dyno_record::{RunDir, find_runs};
use dyno_report::{Headline, Report, Standing, build_stored, headline};

use super::Document;
use super::markdown::{paragraph, table};

/// A committed record, and how much of it may still be quoted.
pub struct Record {
    /// The path below `results`, such as `epyc-2-cores/2026-11-21-wspr`.
    path: String,
    report: Report,
    standing: Standing,
}

impl Record {
    fn open(results: &Path, folder: &Path) -> anyhow::Result<Record> {
        let stored = RunDir::open(folder)?;
        // A withdrawal that cannot be understood is an error: taking it for none would publish
        // figures that were taken back.
        let standing = Standing::from_withdrawal(stored.withdrawn.as_ref()).with_context(|| {
            let folder = folder.display();
            format!("the heading of WITHDRAWN.md in {folder} does not say how much is withdrawn")
        })?;
        let below = folder.strip_prefix(results)?;
        Ok(Record {
            path: below.display().to_string(),
            report: build_stored(&stored),
            standing,
        })
    }

    fn suite(&self) -> &str {
        &self.report.run.plan.suite
    }

    fn size(&self) -> String {
        self.report.run.plan.size_text()
    }

    fn started_at(&self) -> &str {
        &self.report.run.started_at
    }

    /// Whether newer ones of `records` have measured each case of this one again.
    fn is_earlier(&self, records: &[Record]) -> bool {
        // A record that was withdrawn, also in part, takes nothing from an older one.
        let newer = records.iter().filter(|other| {
            other.started_at() > self.started_at() && other.standing == Standing::Whole
        });
        let plan = &self.report.run.plan;
        plan.is_replaced_by(newer.map(|other| &other.report.run.plan))
    }
}

/// All records below `results`, by machine and date.
pub fn read(results: &Path) -> anyhow::Result<Vec<Record>> {
    let folders = find_runs(results)?;
    let open = |folder: &PathBuf| Record::open(results, folder);
    folders.iter().map(open).collect()
}

/// The report of each record as the program prints it today, beside the record.
pub fn reports(records: &[Record]) -> anyhow::Result<Vec<Document>> {
    let document = |record: &Record| {
        Ok(Document {
            path: Path::new("results").join(&record.path).join("report.md"),
            text: record.report.to_markdown()?,
        })
    };
    records.iter().map(document).collect()
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

/// All figures that stand, record by record: the newest first, and those that were measured again
/// under a heading of their own.
pub fn results(records: &[Record], files: Files) -> String {
    let mut text = String::from(
        "# Results\n\n<!-- Made by `dyno documents` from the records below results/. -->\n\n",
    );
    text.push_str(&paragraph("", INTRODUCTION));
    // The times are UTC in one form, so they sort as text.
    let mut newest: Vec<&Record> = records.iter().collect();
    newest.sort_by(|a, b| {
        let newer = b.started_at().cmp(a.started_at());
        newer.then_with(|| a.path.cmp(&b.path))
    });
    text.push_str(&targets(&newest, files));
    let (earlier, latest): (Vec<&Record>, Vec<&Record>) = newest
        .into_iter()
        .partition(|record| record.is_earlier(records));
    for record in latest {
        text.push_str(&section(record, "##", files));
    }
    if !earlier.is_empty() {
        text.push_str("\n## Earlier records\n\n");
        text.push_str(&paragraph("", EARLIER));
    }
    for record in earlier {
        text.push_str(&section(record, "###", files));
    }
    text
}

const INTRODUCTION: &str = "Every table below is printed from a committed record. A ratio above 1 \
    means that `dyno` is better than the best peer of the same run. The spread is the 95% interval \
    of the median from five samples on, and the range of the samples below that. A share of the \
    limit says how much of what the machine can do was reached. METHODOLOGY.md says how the figures \
    are made and BIAS.md how they could flatter us. Figures that were withdrawn are not shown; \
    the record of each says why. The newest records come first.";

const EARLIER: &str = "Newer records of the same suite and size have measured each case of \
    these again.";

const TARGETS: &str = "What the suites set out to reach: each target from the newest record that \
    had it, for each size of the suite and each set of changed parameters. A target is met or \
    missed when the whole interval is on one side of it; otherwise it is not judged, and the report \
    says why.";

/// What became of each target, suite by suite, from the first of `newest` that had it; nothing when
/// no record has targets.
fn targets(newest: &[&Record], files: Files) -> String {
    let mut seen = HashSet::new();
    let mut rows = Vec::new();
    for record in newest {
        let size = record.size();
        for case in &record.report.cases {
            let Some(outcome) = &case.target else {
                continue;
            };
            let name = &case.plan.name;
            if !record.report.stands(name) || !seen.insert((record.suite(), size.clone(), name)) {
                continue;
            }
            let report = format!("results/{}/report.md", record.path);
            rows.push(vec![
                record.suite().to_owned(),
                size.clone(),
                name.clone(),
                outcome.wanted(),
                outcome.reached().unwrap_or_else(|| "–".to_owned()),
                outcome.state.to_owned(),
                match files {
                    Files::Linked => format!("[{}]({report})", record.path),
                    Files::Named => record.path.clone(),
                },
            ]);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    // By suite, and within one by the order of its cases: the sort is stable.
    rows.sort_by(|a, b| a[0].cmp(&b[0]));
    let columns = [
        "suite", "size", "case", "target", "reached", "state", "record",
    ];
    format!(
        "\n## Targets\n\n{}\n{}",
        paragraph("", TARGETS),
        table(&columns, &rows)
    )
}

/// One record, under a heading of the level that `marks` gives, such as `##`.
fn section(record: &Record, marks: &str, files: Files) -> String {
    let run = &record.report.run;
    let mut text = format!("\n{marks} {}\n\n", record.path);
    let folder = format!("results/{}", record.path);
    text.push_str(&paragraph(
        "",
        &format!(
            "{}: suite `{}`, size {}. Made by `dyno` {}, revision {}. {}.",
            run.plan.title,
            record.suite(),
            record.size(),
            run.program.version,
            run.program.git_revision,
            files.name("The whole report", &format!("{folder}/report.md"))
        ),
    ));
    if let Some(why) = run.program.untraceable() {
        let line = format!("The program cannot be built again: {why}.");
        text.push_str(&format!("\n{}", paragraph("", &line)));
    }
    if record.standing != Standing::Whole {
        let what = match record.standing {
            Standing::Nothing => "All figures of this record are withdrawn",
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
    let Headline { rows, columns, .. } = headline(&record.report);
    let standing: Vec<Vec<String>> = rows
        .into_iter()
        .filter(|row| record.report.stands(&row.cells[0]))
        .map(|row| row.cells.to_vec())
        .collect();
    if !standing.is_empty() {
        text.push('\n');
        text.push_str(&table(&columns, &standing));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &str) -> Record {
        let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results");
        Record::open(&tree, &tree.join(path)).expect("a record")
    }

    #[test]
    fn the_newest_record_comes_first_and_what_was_measured_again_comes_last() {
        let records = [
            open("epyc-2-cores/2026-11-21-wspr-full"),
            open("xeon-2-cores/2026-11-26-pubsub-quick"),
            open("xeon-2-cores/2026-11-26-pubsub-rate"),
            open("epyc-zen3-2-cores/2026-11-28-pubsub-quick"),
            open("xeon-2-cores/2026-11-29-wspr-top-ten"),
        ];
        let text = results(&records, Files::Named);
        let headings: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
        // The newest record of `pubsub` has the cases of both older ones. That of `wspr` has two
        // cases of thirteen, so the older one has the newest figures of the others.
        assert_eq!(
            headings,
            [
                "# Results",
                "## Targets",
                "## xeon-2-cores/2026-11-29-wspr-top-ten",
                "## epyc-zen3-2-cores/2026-11-28-pubsub-quick",
                "## epyc-2-cores/2026-11-21-wspr-full",
                "## Earlier records",
                "### xeon-2-cores/2026-11-26-pubsub-rate",
                "### xeon-2-cores/2026-11-26-pubsub-quick",
            ]
        );
        let target = "| wspr | full | top-ten-2 | at least 3× duckdb | 4.81× (4.70 .. 5.60) | met | \
            xeon-2-cores/2026-11-29-wspr-top-ten |\n";
        assert!(text.contains(target), "{text}");
        // The older record has the case too, and only the newest says whether the target is met.
        assert_eq!(text.matches("| wspr | full | top-ten-2 |").count(), 1);
    }

    #[test]
    fn the_same_cases_with_other_parameters_are_other_work() {
        let records = [
            open("xeon-2-cores/2026-11-27-tpch-quick"),
            open("epyc-zen4-2-cores/2026-11-29-tpch-sf1"),
        ];
        let text = results(&records, Files::Named);
        assert!(
            text.contains("\n## xeon-2-cores/2026-11-27-tpch-quick\n"),
            "{text}"
        );
        for size in ["quick", "quick with sf=1"] {
            let target = format!("| tpch | {size} | parquet-snappy-2 | at least 6× tpchgen-cli |");
            assert!(text.contains(&target), "{text}");
        }
        // How often something is measured does not make it another thing.
        let often = open("xeon-2-cores/2026-11-27-pages-device-in-order");
        assert_eq!(
            (often.size(), often.report.run.plan.set.len()),
            ("quick".to_owned(), 1)
        );
    }
}
