//! Whether a figure reaches what its suite wants of it.

use dyno_record::{Better, CasePlan, Target};
use dyno_stats::BLOCKS_MIN;
use serde::Serialize;

use super::OURS;
use super::cell::{Cell, FilledTable};
use super::figure::{Figure, share};
use super::pairing::{deciding_ratio, error_of, ranking_figure};
use super::report::Report;
use super::steady::{NOT_JUDGED, Steady, widened};
use crate::units::{number, ratio_range, ratio_text, share_text};

/// Heading of the table of targets.
pub(crate) const TITLE: &str = "Targets";

/// What a target is of whose case is to reach a share of its limit.
const LIMIT: &str = "limit";

/// What became of a target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TargetOutcome {
    /// What the share is of: a peer's name, or that of a limit.
    pub of: String,
    /// Whether it is a limit's.
    #[serde(skip)]
    of_limit: bool,
    /// The least share that meets the target.
    pub at_least: f64,
    /// The share that was reached; absent when it is not known.
    pub value: Option<f64>,
    /// Lower end of its 95% interval.
    pub low: Option<f64>,
    /// Upper end of the same interval.
    pub high: Option<f64>,
    /// `met`, `missed` or `not judged`.
    pub state: &'static str,
    /// Why it is not judged; empty otherwise.
    pub reason: String,
}

/// A share with its interval, or why there is none.
struct Reached {
    of: String,
    value: Option<(f64, f64, f64)>,
    /// The interval, with all that the rates may become if they are measured for longer.
    widest: (f64, f64),
    /// Why nothing may be concluded, although a share may be known.
    obstacle: Option<String>,
    /// Why the widest interval is wider than the interval, if it is.
    doubt: Option<String>,
}

impl Reached {
    /// No share, and why.
    fn nothing(of: &str, reason: &str) -> Reached {
        Reached {
            of: of.to_owned(),
            value: None,
            widest: (0.0, f64::INFINITY),
            obstacle: Some(reason.to_owned()),
            doubt: None,
        }
    }
}

/// Judges the target of a case; `None` when it has none.
pub(crate) fn outcome_of(report: &Report, case: &CasePlan) -> Option<TargetOutcome> {
    let target = case.target.as_ref()?;
    let reached = match target.of.as_str() {
        LIMIT => of_limit(report, case),
        "peer" => of_peer(report, case, OURS),
        peer => of_peer(report, case, peer),
    };
    let (state, reason) = judge(target, &reached);
    Some(TargetOutcome {
        of: reached.of,
        of_limit: target.of == LIMIT,
        at_least: target.at_least,
        value: reached.value.map(|(value, ..)| value),
        low: reached.value.map(|(_, low, _)| low),
        high: reached.value.map(|(.., high)| high),
        state,
        reason,
    })
}

/// The whole interval decides, with all that the rates may become: a target inside it is neither
/// met nor missed.
fn judge(target: &Target, reached: &Reached) -> (&'static str, String) {
    if let Some(reason) = &reached.obstacle {
        return ("not judged", reason.clone());
    }
    let within = "the interval holds the target, so more blocks are needed";
    match reached.widest {
        (low, _) if low >= target.at_least => ("met", String::new()),
        (_, high) if high < target.at_least => ("missed", String::new()),
        _ => {
            let doubt = reached.doubt.clone();
            ("not judged", doubt.unwrap_or_else(|| within.to_owned()))
        }
    }
}

/// `system` is ours for the best peer, or a peer for that one.
fn of_peer(report: &Report, case: &CasePlan, system: &str) -> Reached {
    let Some((peer, ratio)) = deciding_ratio(report, &case.name, system) else {
        let of = if system == OURS {
            "the best peer"
        } else {
            system
        };
        return Reached::nothing(of, "no peer was measured in the same blocks");
    };
    let reason = || format!("{}: {}", ratio.verdict, ratio.reason);
    // A target may be judged where no winner is: a ratio of 1.00 meets one of 0.5. Too few blocks,
    // of the systems or of the control arm, stand in the way of both.
    let few = ratio.blocks < BLOCKS_MIN || ratio.band.is_none();
    let unusable = few || (ratio.verdict == NOT_JUDGED && !ratio.is_doubted());
    Reached {
        of: peer.to_owned(),
        value: Some((ratio.ratio, ratio.low, ratio.high)),
        widest: ratio.widest,
        obstacle: unusable.then(reason),
        doubt: ratio.is_doubted().then(reason),
    }
}

fn of_limit(report: &Report, case: &CasePlan) -> Reached {
    let of = case.limit.clone().unwrap_or_default();
    let without = |reason: &str| Reached::nothing(&of, reason);
    let Some(figure) = ranking_figure(report, &case.name, OURS) else {
        return without("dyno did not end well");
    };
    let Some(value) = share_interval(figure) else {
        return without("the limit was not measured, or the figure has no spread");
    };
    let too_few = || format!("n = {}, and {BLOCKS_MIN} are needed", figure.n);
    let few = (figure.n < BLOCKS_MIN).then(too_few);
    let unsteady = figure.unsteady();
    let later = unsteady.map(Steady::later);
    let is_rate = figure.better == Better::Higher;
    Reached {
        of,
        value: Some(value),
        widest: widened((value.1, value.2), later, is_rate),
        obstacle: error_of(&report.findings, &case.name, OURS).or(few),
        doubt: unsteady.map(Steady::text),
    }
}

/// The share of the limit with the ends of the figure's own spread: the limit is taken as exact.
fn share_interval(figure: &Figure) -> Option<(f64, f64, f64)> {
    let limit = figure.limit?;
    let of = |value: f64| share(value, limit, figure.better);
    let ends = [of(figure.low?)?, of(figure.high?)?];
    Some((
        of(figure.median)?,
        ends[0].min(ends[1]),
        ends[0].max(ends[1]),
    ))
}

impl TargetOutcome {
    /// The outcome in a clause: `at least 0.5× zram-lz4 is missed with 0.42× (0.40 .. 0.44)`.
    pub(crate) fn text(&self) -> String {
        let wanted = self.wanted();
        let reached = self
            .reached()
            .map_or(String::new(), |text| format!(" with {text}"));
        let reason = match self.reason.as_str() {
            "" => String::new(),
            reason => format!(", because {reason}"),
        };
        format!("{wanted} is {}{reached}{reason}", self.state)
    }

    /// What is wanted: `at least 3× duckdb`, or `at least 0.5 of copy-all`.
    pub fn wanted(&self) -> String {
        let share = number(self.at_least);
        if self.of_limit {
            format!("at least {share} of {}", self.of)
        } else {
            format!("at least {share}× {}", self.of)
        }
    }

    /// The share that was reached, with its interval; absent when it is not known.
    pub fn reached(&self) -> Option<String> {
        let (value, low, high) = (self.value?, self.low?, self.high?);
        Some(format!(
            "{} ({})",
            ratio_text(value),
            ratio_range(low, high)
        ))
    }
}

/// How many targets are met, for the summary of page one; `None` when there are none.
pub(crate) fn summary(report: &Report) -> Option<String> {
    let outcomes: Vec<&TargetOutcome> = report
        .cases
        .iter()
        .filter_map(|c| c.target.as_ref())
        .collect();
    let count = |state: &str| outcomes.iter().filter(|one| one.state == state).count();
    (!outcomes.is_empty()).then(|| {
        format!(
            " Of the targets that its suite sets, {} met, {} missed, {} not judged.",
            count("met"),
            count("missed"),
            count("not judged")
        )
    })
}

/// A row for each case with a target; `None` when no case has one.
pub(crate) fn table(report: &Report) -> Option<FilledTable> {
    let cases = report.cases.iter();
    let rows: Vec<Vec<Cell>> = cases
        .filter_map(|case| Some((&case.plan.name, case.target.as_ref()?)))
        .map(|(case, outcome)| {
            vec![
                Cell::text(case),
                Cell::text(outcome.wanted()),
                match outcome.reached().zip(outcome.value) {
                    Some((text, value)) => {
                        Cell::number(text, share_text(value)).with_value(value, "x")
                    }
                    None => Cell::none(&outcome.reason),
                },
                Cell {
                    title: outcome.reason.clone(),
                    loud: outcome.state == "missed",
                    ..Cell::text(outcome.state)
                },
            ]
        })
        .collect();
    (!rows.is_empty()).then(|| FilledTable {
        title: TITLE.to_owned(),
        columns: ["case", "target", "reached", "state"]
            .map(str::to_owned)
            .to_vec(),
        rows,
        notes: vec![
            "A target is met or missed when the whole interval is on one side of it, and is not \
             judged otherwise. Where a rate is not steady, the interval is widened by what the rate \
             may still become. A share of a peer is turned so that more is better."
                .to_owned(),
        ],
    })
}
