//! Runs side by side: did it become slower?

mod change;
mod drift;
mod marks;
mod print;

use std::collections::BTreeSet;

use dyno_record::StoredRun;
use serde::Serialize;

pub use change::Change;

/// What counts as a regression, and what may be compared.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CompareRules {
    /// The slowdown that is still accepted: 0.03 is 3%. With it, a figure whose interval reaches
    /// beyond is "not enough evidence" until more samples narrow it. Without it, only a slowdown
    /// that is shown counts, of whatever size.
    pub max_slowdown: Option<f64>,
    /// Judge also when machine, build profile, size or load beside differ; they are marked all
    /// the same.
    pub across: bool,
}

/// The answer to "is it slower?", with its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// None of our figures is shown to be worse.
    NoRegression,
    /// The samples are too few or too uneven, a slowdown was seen in one run alone, a newer run has
    /// no figure of ours in a case of which the older one has it, or the runs are not comparable.
    NotEnoughEvidence,
    /// At least one of our figures became worse, and did so in each of two or more newer runs.
    Regression,
}

impl Answer {
    /// 0, 3 and 1 in the order above; 2 is left to failures.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::NoRegression => 0,
            Self::NotEnoughEvidence => 3,
            Self::Regression => 1,
        }
    }
}

/// Runs compared, figure by figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The suite of the newer runs.
    pub suite: String,
    /// Start of the older run.
    pub base_started_at: String,
    /// Starts of the newer runs.
    pub new_started_at: Vec<String>,
    /// The hash of the program when all runs are of one program. Whatever differs is then noise.
    pub same_program: Option<String>,
    /// What differs between the runs beside the program; empty when they are comparable.
    pub marks: Vec<String>,
    /// What was left out, and why.
    pub left_out: Vec<NotCompared>,
    /// The left-out cases of which the older run has a figure of ours and a newer one has none.
    pub lost: Vec<String>,
    /// Ranking metrics of the cases that both have; of several newer runs the one that speaks least
    /// for a regression.
    pub changes: Vec<Change>,
    /// The gravest answer of our figures, or "not enough evidence" where the runs differ in more
    /// than the program.
    pub answer: Answer,
}

/// What a comparison has no figure of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NotCompared {
    /// The case.
    pub case: String,
    /// The system, where it is not the whole case.
    pub system: Option<String>,
    /// Why.
    pub reason: String,
}

impl NotCompared {
    /// The case, and the system where it is not the whole case.
    pub(crate) fn subject(&self) -> String {
        match &self.system {
            Some(system) => format!("{} on {system}", self.case),
            None => self.case.clone(),
        }
    }
}

/// Why two runs have nothing in common that could be compared, if they do not: they are of
/// different suites and share no case.
pub fn nothing_to_compare(base: &StoredRun, new: &StoredRun) -> Option<String> {
    let (older, newer) = (&base.run.plan, &new.run.plan);
    let shared = newer
        .cases
        .iter()
        .any(|case| older.cases.iter().any(|other| other.name == case.name));
    (older.suite != newer.suite && !shared).then(|| {
        format!(
            "nothing to compare: suite {} against {}",
            older.suite, newer.suite
        )
    })
}

/// Compares the ranking metric of every case that the runs have. `new` are one or more runs of one
/// newer program; a regression must show in each of them, and in two at least, because one run has
/// one mood of the machine. Peers did not change, so they show what the machine alone did, and only
/// our figures decide the answer.
pub fn compare(base: &StoredRun, new: &[StoredRun], rules: &CompareRules) -> Comparison {
    let new = distinct(new);
    let mut marks: Vec<String> = new
        .iter()
        .flat_map(|new| marks::marks(&base.run, &new.run))
        .collect();
    let hashes = || new.iter().map(|new| &new.run.program.hash);
    if hashes().any(|hash| Some(hash) != hashes().next()) {
        marks.push("the newer runs are not of one program".to_owned());
    }
    // Each newer run is marked against the older one, so the same mark comes once for each.
    let mut seen = BTreeSet::new();
    marks.retain(|mark| seen.insert(mark.clone()));
    let same = hashes().all(|hash| *hash == base.run.program.hash);
    let same_program = same.then(|| base.run.program.hash.clone());
    let (changes, left_out) = change::changes(base, &new, rules);
    let lost = change::lost(base, &new);
    let refused = !marks.is_empty() && !rules.across;
    let ours = changes.iter().filter(|c| c.system == crate::model::OURS);
    let answer = match ours.map(|change| change.answer).max() {
        // Nothing in common shows nothing.
        None => Answer::NotEnoughEvidence,
        // The figures are printed all the same. Only the answer, which a script acts on, is
        // withheld.
        Some(_) if refused => Answer::NotEnoughEvidence,
        Some(_) if same => Answer::NoRegression,
        // What failed in a newer run has no figure there, and must not pass for what did well.
        Some(Answer::NoRegression) if !lost.is_empty() => Answer::NotEnoughEvidence,
        Some(worst) => worst,
    };
    Comparison {
        suite: base.run.plan.suite.clone(),
        base_started_at: base.run.started_at.clone(),
        new_started_at: new.iter().map(|new| new.run.started_at.clone()).collect(),
        same_program,
        marks,
        left_out,
        lost,
        changes,
        answer,
    }
}

/// The runs, each once: a run that is given twice does not show that anything recurs.
fn distinct(new: &[StoredRun]) -> Vec<&StoredRun> {
    let mut distinct: Vec<&StoredRun> = Vec::new();
    for run in new {
        if !distinct.contains(&run) {
            distinct.push(run);
        }
    }
    distinct
}
