//! The whole of a report.

use dyno_record::{CasePlan, Limit, Run, Sample, Withdrawal};
use dyno_stats::NoiseBand;
use serde::Serialize;

use super::cell::FilledTable;
use super::chart::Series;
use super::figure::Figure;
use super::flame::Flame;
use super::latencies::KeptLatencies;
use super::roofline::Roofline;
use super::target::TargetOutcome;
use super::why::Cause;
use crate::lint::Finding;

/// Everything that a report prints, in every form.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The run it was made from.
    pub run: Run,
    /// One entry per case, system and metric.
    pub figures: Vec<Figure>,
    /// What the linter says of them.
    pub findings: Vec<Finding>,
    /// The tables of the plan in its order, then one of variants where any ran.
    pub tables: Vec<FilledTable>,
    /// One entry per case, in the order of the plan.
    pub cases: Vec<CaseReport>,
    /// Invocations that did not end well, in the order of the run.
    pub troubles: Vec<Trouble>,
    /// Every sample of the run.
    pub samples: Vec<Sample>,
    /// What was wrong with the record itself.
    pub warnings: Vec<String>,
    /// Why the figures must not be used any more, when they were withdrawn.
    pub withdrawn: Option<Withdrawal>,
}

/// One case with every sample.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseReport {
    /// What was planned for the case.
    pub plan: CasePlan,
    /// The machine's limit for it.
    pub limit: Option<Limit>,
    /// The noise band of the ranking metric, from the control arm if one ran.
    pub band: Option<NoiseBand>,
    /// Samples of the ranking metric by system, the control arm as a series of its own.
    pub series: Vec<Series>,
    /// Latencies by percentile and by time, of the systems whose logs were kept.
    pub latencies: Vec<KeptLatencies>,
    /// Where systems spend their processor time, of those that were profiled.
    pub flames: Vec<Flame>,
    /// The systems below the roofs of the machine, where the case ranks by a rate and a system
    /// tells the processor time of its work.
    pub roofline: Option<Roofline>,
    /// What bounds the figure, where experiments were made to find out.
    pub cause: Option<Cause>,
    /// Whether the figure reaches its target, where the suite states one.
    pub target: Option<TargetOutcome>,
}

/// An invocation that failed or hung.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// Name of the case that was run.
    pub case: String,
    /// The system that did not end well.
    pub system: String,
    /// The block it belonged to.
    pub block: u32,
    /// `failed` or, when it was killed at its time limit, `hung`.
    pub kind: &'static str,
    /// What the runner saw, for example the end of standard error.
    pub reason: String,
}

impl Report {
    /// The figure of a case, system and metric.
    pub fn figure(&self, case: &str, system: &str, metric: &str) -> Option<&Figure> {
        let same = |f: &&Figure| f.case == case && f.system == system && f.metric == metric;
        self.figures.iter().find(same)
    }

    /// How many invocations of a case on a system failed or hung.
    pub fn trouble_count(&self, case: &str, system: &str) -> usize {
        let same = |t: &&Trouble| t.case == case && t.system == system;
        self.troubles.iter().filter(same).count()
    }

    /// The command that repeats the run.
    pub fn command(&self) -> String {
        let plan = &self.run.plan;
        let chosen = [("case", &plan.only), ("skip", &plan.skip)]
            .into_iter()
            .flat_map(|(flag, patterns)| patterns.iter().map(move |one| (flag, one)))
            .map(|(flag, pattern)| format!(" --{flag} {}", quoted(pattern)));
        let chosen: String = chosen.collect();
        // Peers are run only when asked for. Without the flag the printed command would repeat a
        // comparison without the other side.
        let with_peers = plan.cases.iter().any(|case| case.peers().next().is_some());
        self.run_command(&chosen, with_peers)
    }

    /// The command that repeats one case.
    pub fn case_command(&self, case: &CasePlan) -> String {
        let chosen = format!(" --case {}", quoted(&case.name));
        self.run_command(&chosen, case.peers().next().is_some())
    }

    /// A run of a command of the reader's own has one case, which its flags do not choose.
    fn run_command(&self, chosen: &str, with_peers: bool) -> String {
        if let Some(command) = &self.run.command {
            return command.clone();
        }
        let plan = &self.run.plan;
        let size = match plan.size {
            dyno_record::Size::Tiny => " --tiny",
            dyno_record::Size::Quick => " --quick",
            dyno_record::Size::Full => " --full",
        };
        let peers = if with_peers { " --peers" } else { "" };
        let set: Vec<String> = plan
            .set
            .iter()
            .map(|(name, value)| format!(" --set {}", quoted(&format!("{name}={value}"))))
            .collect();
        let set = set.concat();
        let beside = match &self.run.beside {
            Some(command) => format!(" --beside {}", quoted(command)),
            None => String::new(),
        };
        let asked = plan.cases.iter().any(|case| !case.experiments.is_empty());
        let why = if asked { " --why" } else { "" };
        let suite = quoted(&plan.suite);
        format!("dyno run {suite}{size}{chosen}{set}{peers}{beside}{why}")
    }
}

/// A word for the shell; quoted only where it needs to be.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
