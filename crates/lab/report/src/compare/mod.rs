//! Two runs side by side: is the newer one slower?

mod change;
mod marks;
mod print;

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
    /// No regression is shown.
    NoRegression,
    /// The samples are too few or too uneven, or the runs are not comparable.
    NotEnoughEvidence,
    /// At least one of our figures became worse.
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

/// Two runs, figure by figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The suite of the newer run.
    pub suite: String,
    /// Start of the older run.
    pub base_started_at: String,
    /// Start of the newer run.
    pub new_started_at: String,
    /// What differs between the runs beside the program; empty when they are comparable.
    pub marks: Vec<String>,
    /// Cases that were left out, and why.
    pub left_out: Vec<String>,
    /// Ranking metrics of the cases that both have.
    pub changes: Vec<Change>,
    /// The answer.
    pub answer: Answer,
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

/// Compares the ranking metric of every case that both runs have. Peers are compared too: they did
/// not change, so they show what the machine alone did; only our figures decide the answer.
pub fn compare(base: &StoredRun, new: &StoredRun, rules: &CompareRules) -> Comparison {
    let marks = marks::marks(&base.run, &new.run);
    let (changes, left_out) = change::changes(base, new, rules);
    let refused = !marks.is_empty() && !rules.across;
    let ours = changes.iter().filter(|c| c.system == crate::model::OURS);
    let worst = ours.map(|change| change.answer).max();
    let answer = match worst {
        _ if refused => Answer::NotEnoughEvidence,
        // Nothing in common shows nothing.
        None => Answer::NotEnoughEvidence,
        Some(worst) => worst,
    };
    Comparison {
        suite: new.run.plan.suite.clone(),
        base_started_at: base.run.started_at.clone(),
        new_started_at: new.run.started_at.clone(),
        marks,
        left_out,
        changes,
        answer,
    }
}
