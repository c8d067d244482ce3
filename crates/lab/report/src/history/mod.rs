//! Runs of one suite over time: series of figures, the changes in them, and notes on dates.
//!
//! A series is of one machine, suite, size, case with its parameters, system and metric. Whatever
//! else differs begins another series, so that a change is one of the program or of the world
//! around it, and never one of what was asked.

mod export;
mod page;
mod print;

use std::collections::BTreeMap;

use dyno_record::{
    Better, HISTORY_VERSION, HistoryFigure, HistoryLine, Note, Size, matches_pattern,
};
use dyno_stats::change_points;
use serde::Serialize;

use crate::model::{Figure, OURS, Report};

pub use export::OtavaTable;

/// Below this many runs not even a perfect step is called: random orders have one too often.
pub(crate) const RUNS_MIN: usize = 8;
/// Metrics that a line keeps beside the one that ranks the case.
const KEPT: [&str; 3] = ["time", "cpu", "peak-rss"];
/// Seeds the random orders behind the changes, so that the same runs give the same changes.
const SEED: u64 = 2026;

/// Which series are wanted; an empty list stands for all.
#[derive(Debug, Clone, Default)]
pub struct HistoryFilter {
    /// Patterns of cases, as of [`dyno_record::matches_pattern`].
    pub cases: Vec<String>,
    /// Names of metrics; without one, those that rank their case.
    pub metrics: Vec<String>,
    /// Names of systems; without one, our own program.
    pub systems: Vec<String>,
    /// The beginning of a machine's fingerprint.
    pub machine: Option<String>,
}

impl HistoryFilter {
    fn wants(&self, line: &HistoryLine, figure: &HistoryFigure) -> bool {
        let listed = |names: &[String], name: &str| names.iter().any(|known| known == name);
        let machine = self.machine.as_deref().unwrap_or_default();
        let is_case = |pattern: &String| matches_pattern(pattern, &figure.case);
        (self.cases.is_empty() || self.cases.iter().any(is_case))
            && line.fingerprint.starts_with(machine)
            && if self.metrics.is_empty() {
                figure.ranks
            } else {
                listed(&self.metrics, &figure.metric)
            }
            && if self.systems.is_empty() {
                figure.system == OURS
            } else {
                listed(&self.systems, &figure.system)
            }
    }
}

/// Series of runs, with what happened meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    /// One for each case, system and metric on each machine, the newest suite's first.
    pub series: Vec<HistorySeries>,
    /// Notes about the shown series, the oldest first.
    pub notes: Vec<Note>,
}

/// One figure over the runs of one machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistorySeries {
    /// Name of the suite whose runs these are.
    pub suite: String,
    /// Which of the suite's sizes ran.
    pub size: Size,
    /// Name of the case, which has the same parameters in all of these runs.
    pub case: String,
    /// `dyno`, a variant of it, or a peer.
    pub system: String,
    /// Name of the metric that is followed.
    pub metric: String,
    /// Unit of the medians and their intervals.
    pub unit: String,
    /// The direction that [`SeriesChange::is_better`] is told by.
    pub better: Better,
    /// The processor in words, for a reader.
    pub machine: String,
    /// Hash of the machine's facts, by which machines are told apart.
    pub fingerprint: String,
    /// What was set for these runs; empty for plain runs.
    pub setting: String,
    /// Build profile of our program: `release` or `debug`.
    pub profile: String,
    /// The runs, the oldest first.
    pub points: Vec<HistoryPoint>,
    /// The changes between them, the oldest first.
    pub changes: Vec<SeriesChange>,
}

/// One run in a series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryPoint {
    /// UTC start of the run, RFC 3339.
    pub started_at: String,
    /// Name of the record's folder.
    pub run: String,
    /// Git revision of our program, or the version of another system.
    pub revision: String,
    /// Invocations that ended well, which `median` is over.
    pub n: usize,
    /// Median over the invocations of the run.
    pub median: f64,
    /// Lower end of its interval; absent with one sample.
    pub low: Option<f64>,
    /// Upper end of its interval; absent with one sample.
    pub high: Option<f64>,
}

/// A change in a series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SeriesChange {
    /// Index of the first run after the change.
    pub at: usize,
    /// Median of the runs since the previous change.
    pub before: f64,
    /// Median of the runs up to the next change.
    pub after: f64,
    /// `after` over `before` less 1; not finite, and null in JSON, where `before` is 0.
    pub change: f64,
    /// Whether that is the better direction.
    pub is_better: bool,
    /// How often random orders of the same runs have a step as large.
    pub p_value: f64,
}

/// What a history keeps of a run: its ranking figures, what they took, and the named `metrics`.
/// Withdrawn figures are left out.
pub fn history_line(report: &Report, run: &str, metrics: &[String]) -> HistoryLine {
    let stored = &report.run;
    let kept = |figure: &&Figure| {
        let metric = figure.metric.as_str();
        report.stands(&figure.case)
            && (is_ranking(report, figure)
                || KEPT.contains(&metric)
                || metrics.iter().any(|name| name == metric))
    };
    let set = stored.plan.set.iter();
    let mut setting: Vec<String> = set.map(|(name, value)| format!("{name}={value}")).collect();
    let beside = stored
        .beside
        .iter()
        .map(|command| format!("beside {command:?}"));
    setting.extend(beside);
    let cpu = stored.machine.facts.iter().find(|(name, _)| name == "cpu");
    HistoryLine {
        magic: "dyno-history".to_owned(),
        version: HISTORY_VERSION,
        run: run.to_owned(),
        suite: stored.plan.suite.clone(),
        size: stored.plan.size,
        started_at: stored.started_at.clone(),
        revision: stored.program.git_revision.clone(),
        program_hash: stored.program.hash.clone(),
        profile: stored.program.profile.clone(),
        fingerprint: stored.machine.fingerprint.clone(),
        machine: cpu.map_or(String::new(), |(_, cpu)| cpu.clone()),
        setting: setting.join(" "),
        figures: report
            .figures
            .iter()
            .filter(kept)
            .map(|figure| kept_figure(report, figure))
            .collect(),
    }
}

fn is_ranking(report: &Report, figure: &Figure) -> bool {
    let case = report.cases.iter().find(|c| c.plan.name == figure.case);
    case.is_some_and(|case| case.plan.metric == figure.metric)
}

fn kept_figure(report: &Report, figure: &Figure) -> HistoryFigure {
    let case = report.cases.iter().find(|c| c.plan.name == figure.case);
    // The parameters are kept as a hash: only whether they are the same is ever asked, and a line
    // stays short.
    let params = case.map(|case| {
        let plan = &case.plan;
        let shared = format!("{} {:?}", plan.workload, plan.params);
        // A variant has parameters of its own beside those of its case.
        match plan.variants.get(&figure.system) {
            Some(own) => format!("{shared} {own:?}"),
            None => shared,
        }
    });
    let system = report.run.systems.iter().find(|s| s.name == figure.system);
    HistoryFigure {
        case: figure.case.clone(),
        params: format!("{:016x}", hash(params.unwrap_or_default().as_bytes())),
        system: figure.system.clone(),
        system_version: system.map_or(String::new(), |known| known.version.clone()),
        metric: figure.metric.clone(),
        ranks: is_ranking(report, figure),
        unit: figure.unit.clone(),
        better: figure.better,
        n: figure.n,
        median: figure.median,
        low: figure.low,
        high: figure.high,
    }
}

/// FNV-1a, whose value is the same in every version of this program and on every machine.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The lines, each run once: a run that lies in two of the places they come from would otherwise
/// agree with itself, and two runs that agree are what a change takes. `lines` are in the order of
/// their starts. Of two lines of a run the one with more figures stays.
fn each_once(lines: Vec<HistoryLine>) -> Vec<HistoryLine> {
    let mut kept: Vec<HistoryLine> = Vec::new();
    for line in lines {
        let at_once = kept.iter_mut().rev();
        let mut at_once = at_once.take_while(|known| known.started_at == line.started_at);
        match at_once.find(|known| known.is_same_run(&line)) {
            Some(known) if known.figures.len() < line.figures.len() => *known = line,
            Some(_) => {}
            None => kept.push(line),
        }
    }
    kept
}

impl History {
    /// The wanted series of all lines, in any order. Notes of other machines and cases are left
    /// out.
    pub fn from_lines(
        mut lines: Vec<HistoryLine>,
        filter: &HistoryFilter,
        notes: Vec<Note>,
    ) -> History {
        // RFC 3339 in UTC sorts as text.
        lines.sort_by(|a, b| (&a.started_at, &a.run).cmp(&(&b.started_at, &b.run)));
        let mut series: BTreeMap<Key, HistorySeries> = BTreeMap::new();
        for line in &each_once(lines) {
            for figure in line
                .figures
                .iter()
                .filter(|figure| filter.wants(line, figure))
            {
                let key = Key::from_figure(line, figure);
                let found = series.entry(key).or_insert_with(|| empty(line, figure));
                found.points.push(point(line, figure));
            }
        }
        let mut series: Vec<HistorySeries> = series.into_values().collect();
        series.iter_mut().for_each(|one| one.changes = changes(one));
        let of_shown = |note: &Note| series.iter().any(|one| one.is_noted_by(note));
        let notes = notes.into_iter().filter(of_shown).collect();
        History { series, notes }
    }
}

impl HistorySeries {
    /// The notes that are about this series.
    fn notes<'a>(&'a self, all: &'a [Note]) -> impl Iterator<Item = &'a Note> {
        all.iter().filter(|note| self.is_noted_by(note))
    }

    fn is_noted_by(&self, note: &Note) -> bool {
        let is_case = |pattern: &String| matches_pattern(pattern, &self.case);
        let is_machine = |beginning: &String| self.fingerprint.starts_with(beginning);
        note.case.as_ref().is_none_or(is_case) && note.machine.as_ref().is_none_or(is_machine)
    }
}

/// What must agree for two figures to be of one series.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(Vec<String>);

impl Key {
    fn from_figure(line: &HistoryLine, figure: &HistoryFigure) -> Key {
        // The parts stay apart in a list, because two different lists joined into one text could be
        // equal.
        let of_run = [&line.suite, &line.fingerprint, &line.setting, &line.profile];
        let of_figure = [&figure.case, &figure.params, &figure.system, &figure.metric];
        let mut parts = vec![format!("{:?} {}", line.size, figure.unit)];
        parts.extend(of_run.into_iter().chain(of_figure).cloned());
        Key(parts)
    }
}

fn empty(line: &HistoryLine, figure: &HistoryFigure) -> HistorySeries {
    HistorySeries {
        suite: line.suite.clone(),
        size: line.size,
        case: figure.case.clone(),
        system: figure.system.clone(),
        metric: figure.metric.clone(),
        unit: figure.unit.clone(),
        better: figure.better,
        machine: line.machine.clone(),
        fingerprint: line.fingerprint.clone(),
        setting: line.setting.clone(),
        profile: line.profile.clone(),
        points: Vec::new(),
        changes: Vec::new(),
    }
}

fn point(line: &HistoryLine, figure: &HistoryFigure) -> HistoryPoint {
    HistoryPoint {
        started_at: line.started_at.clone(),
        run: line.run.clone(),
        revision: if figure.system == OURS {
            line.revision.clone()
        } else {
            figure.system_version.clone()
        },
        n: figure.n,
        median: figure.median,
        low: figure.low,
        high: figure.high,
    }
}

fn changes(series: &HistorySeries) -> Vec<SeriesChange> {
    let medians: Vec<f64> = series.points.iter().map(|point| point.median).collect();
    // A figure of a record is finite, because JSON holds no other.
    let found = change_points(&medians, SEED).unwrap_or_default();
    let changes = found.into_iter().map(|point| SeriesChange {
        at: point.at,
        before: point.before,
        after: point.after,
        change: point.change(),
        is_better: (point.after > point.before) == (series.better == Better::Higher),
        p_value: point.p_value,
    });
    changes.collect()
}
