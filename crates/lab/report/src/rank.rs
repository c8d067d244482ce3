//! Systems in their order, case by case, over several records of one suite.
//!
//! A place is within a record: the figures of two machines are not a race. It is a range, because
//! only a verdict says that one system is better than another; systems whose difference is not
//! shown share their places.

use std::collections::BTreeSet;

use dyno_record::{Better, CasePlan, Size};
use serde::Serialize;

use crate::model::{Figure, Ratio, Report, ratio_between, spread_text};
use crate::render::markdown_cell;
use crate::units::{quantity, ratio_range, ratio_text, share_text};

/// One table over several records.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranking {
    /// The suite of all records.
    pub suite: String,
    /// The system that the others are compared with, each within its own record.
    pub baseline: String,
    /// The records with their marks.
    pub records: Vec<RankedRecord>,
    /// Cases in the order of the suite.
    pub cases: Vec<RankedCase>,
    /// What a reader must know: withdrawn figures, cases that differ between records.
    pub notes: Vec<String>,
}

/// A record of the ranking.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankedRecord {
    /// A letter for the machine and a number for the record: `A1`.
    pub mark: String,
    /// Path of the record, as the caller named it.
    pub run: String,
    /// UTC start of the run, RFC 3339.
    pub started_at: String,
    /// Which of the suite's sizes ran.
    pub size: Size,
    /// The processor in words; empty when the record does not say.
    pub machine: String,
    /// Hash of the machine's facts, which decides the letter of the mark.
    pub fingerprint: String,
    /// Git revision of our program.
    pub revision: String,
    /// Why its program cannot be built again, when it cannot.
    pub untraceable: Option<String>,
}

/// A case with its systems in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankedCase {
    /// Name of the case, by which records are brought together.
    pub case: String,
    /// What it is, in a line.
    pub title: String,
    /// The metric that ranks it.
    pub metric: String,
    /// The direction in which the metric is better.
    pub better: Better,
    /// Record by record, the best system first.
    pub rows: Vec<RankedRow>,
}

/// A system in a case of a record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankedRow {
    /// Mark of the record, as [`RankedRecord::mark`] has it.
    pub mark: String,
    /// The best place that verdicts leave it.
    pub place_from: usize,
    /// The worst place that verdicts leave it.
    pub place_to: usize,
    /// The figure, with spread, count, limit and share of it.
    pub figure: Figure,
    /// Against the baseline of the same record; above 1, this system is better.
    pub to_baseline: Option<Ratio>,
}

/// Ranks the systems of every case. `records` come with their paths.
///
/// # Errors
/// When the records are of several suites, or no record has the baseline.
pub fn rank(records: &[(String, Report)], baseline: &str) -> Result<Ranking, String> {
    let suites: BTreeSet<&str> = records
        .iter()
        .map(|(_, r)| r.run.plan.suite.as_str())
        .collect();
    if suites.len() > 1 {
        let names: Vec<&str> = suites.into_iter().collect();
        let names = names.join(", ");
        return Err(format!(
            "the records are of several suites ({names}), and a ranking is of one"
        ));
    }
    let systems = records.iter().flat_map(|(_, report)| &report.figures);
    let systems: BTreeSet<&str> = systems.map(|figure| figure.system.as_str()).collect();
    if !systems.contains(baseline) {
        let names: Vec<&str> = systems.into_iter().collect();
        return Err(format!(
            "no record has a figure of {baseline}; there are: {}",
            names.join(", ")
        ));
    }
    let marked = marked(records);
    let mut ranking = Ranking {
        suite: suites.first().map_or(String::new(), ToString::to_string),
        baseline: baseline.to_owned(),
        records: marked,
        cases: Vec::new(),
        notes: Vec::new(),
    };
    for (index, (_, report)) in records.iter().enumerate() {
        let mark = ranking.records[index].mark.clone();
        for case in &report.cases {
            ranking.add(report, &case.plan, &mark);
        }
    }
    // A withdrawn case has no row, so what it asked for matters to no other record.
    let plans = |name: &str| -> Vec<&CasePlan> {
        let standing = records.iter().filter(|(_, report)| report.stands(name));
        let all = standing.flat_map(|(_, report)| &report.cases);
        all.map(|case| &case.plan)
            .filter(|plan| plan.name == name)
            .collect()
    };
    let differ = |case: &RankedCase| {
        let plans = plans(&case.case);
        plans.windows(2).any(|two| two[0].params != two[1].params)
    };
    // One table of figures of different work would read like one of machines.
    let cases = std::mem::take(&mut ranking.cases).into_iter();
    let (left_out, kept): (Vec<_>, Vec<_>) = cases.partition(differ);
    ranking.cases = kept;
    let notes = left_out.iter().map(|case| {
        let name = &case.case;
        format!("{name} is left out: its parameters differ between the records")
    });
    ranking.notes.extend(notes);
    Ok(ranking)
}

/// Marks each record by its machine and its place among all.
fn marked(records: &[(String, Report)]) -> Vec<RankedRecord> {
    let mut machines: Vec<&str> = Vec::new();
    let marked = records.iter().enumerate().map(|(index, (path, report))| {
        let run = &report.run;
        let fingerprint = run.machine.fingerprint.as_str();
        let known = machines.iter().position(|machine| *machine == fingerprint);
        let machine = known.unwrap_or_else(|| {
            machines.push(fingerprint);
            machines.len() - 1
        });
        let cpu = run.machine.facts.iter().find(|(name, _)| name == "cpu");
        RankedRecord {
            mark: format!("{}{}", letters(machine), index + 1),
            run: path.clone(),
            started_at: run.started_at.clone(),
            size: run.plan.size,
            machine: cpu.map_or(String::new(), |(_, cpu)| cpu.clone()),
            fingerprint: fingerprint.to_owned(),
            revision: run.program.git_revision.clone(),
            untraceable: run.program.untraceable(),
        }
    });
    marked.collect()
}

/// A, B, ... Z, AA, AB.
fn letters(index: usize) -> String {
    let letter = char::from(b'A' + (index % 26) as u8).to_string();
    match index / 26 {
        0 => letter,
        above => letters(above - 1) + &letter,
    }
}

impl Ranking {
    fn add(&mut self, report: &Report, plan: &CasePlan, mark: &str) {
        if !report.stands(&plan.name) {
            self.notes
                .push(format!("{mark}: {} is withdrawn", plan.name));
            return;
        }
        let rows = rows(report, plan, mark, &self.baseline);
        if rows.is_empty() {
            return;
        }
        match self.cases.iter_mut().find(|case| case.case == plan.name) {
            Some(case) => case.rows.extend(rows),
            None => self.cases.push(RankedCase {
                case: plan.name.clone(),
                title: plan.title.clone(),
                metric: plan.metric.clone(),
                better: plan.better,
                rows,
            }),
        }
    }

    /// The records, then a table for each case, as Markdown that reads well on a terminal.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("# {}: ranking\n\n", markdown_cell(&self.suite));
        for record in &self.records {
            let RankedRecord {
                mark,
                started_at,
                fingerprint,
                ..
            } = record;
            let size = format!("{:?}", record.size).to_lowercase();
            let [machine, run, revision] =
                [&record.machine, &record.run, &record.revision].map(|text| markdown_cell(text));
            text.push_str(&format!(
                "- **{mark}**: {machine} ({fingerprint}), {size}, {started_at}, revision \
                 {revision}, {run}\n"
            ));
            if let Some(why) = &record.untraceable {
                text.push_str(&format!("  Not to be published: {}\n", markdown_cell(why)));
            }
        }
        for case in &self.cases {
            text.push_str(&self.table(case));
        }
        for note in &self.notes {
            text.push_str(&format!("\n{}\n", markdown_cell(note)));
        }
        text
    }

    fn table(&self, case: &RankedCase) -> String {
        let [name, title, metric, baseline] =
            [&case.case, &case.title, &case.metric, &self.baseline].map(|text| markdown_cell(text));
        let mut text = format!(
            "\n## {name}\n\n{title}\n\n\
             | record | place | system | {metric} | spread | vs {baseline} | verdict | of limit |\n\
             |---|--:|---|--:|--:|--:|---|--:|\n"
        );
        for row in &case.rows {
            text.push_str(&line(row));
        }
        text
    }
}

/// The systems of a case in one record, the best first.
fn rows(report: &Report, plan: &CasePlan, mark: &str, baseline: &str) -> Vec<RankedRow> {
    let figure = |system: &String| report.figure(&plan.name, system, &plan.metric);
    let mut figures: Vec<&Figure> = plan.compared().filter_map(figure).collect();
    // Rows are sorted by median, for reading. The places come from verdicts alone, so a better
    // median may share the place below it.
    figures.sort_by(|a, b| match plan.better {
        Better::Higher => b.median.total_cmp(&a.median),
        Better::Lower => a.median.total_cmp(&b.median),
    });
    let ratio = |a: &str, b: &str| ratio_between(report, plan, &plan.metric, (a, b));
    let row = |figure: &&Figure| {
        // A system moves down one place for each other that is shown to be faster, and up one for
        // each that is shown to be slower. Pairs without a verdict widen the range and decide
        // nothing.
        let verdicts = figures.iter().filter(|other| other.system != figure.system);
        let verdicts =
            verdicts.filter_map(|other| Some(ratio(&other.system, &figure.system)?.verdict));
        let verdicts: Vec<&str> = verdicts.collect();
        let shown = |word: &str| verdicts.iter().filter(|verdict| **verdict == word).count();
        RankedRow {
            mark: mark.to_owned(),
            place_from: 1 + shown("faster"),
            place_to: figures.len() - shown("slower"),
            figure: (*figure).clone(),
            to_baseline: ratio(&figure.system, baseline).filter(|_| figure.system != baseline),
        }
    };
    figures.iter().map(row).collect()
}

fn line(row: &RankedRow) -> String {
    let figure = &row.figure;
    let place = if row.place_from == row.place_to {
        row.place_from.to_string()
    } else {
        format!("{}–{}", row.place_from, row.place_to)
    };
    let none = || "–".to_owned();
    let ratio = row.to_baseline.as_ref();
    let unsteady = figure.unsteady();
    let cells = [
        row.mark.clone(),
        place,
        markdown_cell(&figure.system),
        quantity(figure.median, &figure.unit),
        spread_text(figure),
        ratio.map_or_else(none, |r| {
            format!("{} ({})", ratio_text(r.ratio), ratio_range(r.low, r.high))
        }),
        match (ratio, unsteady) {
            (Some(ratio), _) => ratio.verdict.to_owned(),
            (None, Some(steady)) => steady.verdict.to_owned(),
            (None, None) => none(),
        },
        figure.share_of_limit.map_or_else(none, share_text),
    ];
    format!("| {} |\n", cells.join(" | "))
}
