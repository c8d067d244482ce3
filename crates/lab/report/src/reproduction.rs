//! One case of a record, run again: does it come out the same?

use std::fmt::Write;

use dyno_record::{CasePlan, Role, StoredRun};
use dyno_stats::BLOCKS_MIN;
use serde::Serialize;

use crate::compare::{Change, CompareRules, compare};
use crate::model::{OURS, Ratio, Report, build, ratio_to};
use crate::units::{quantity, ratio_range, ratio_text};

/// Whether a claim of the record holds in the new run, and what that means for all claims together:
/// one that disagrees outweighs the others, and one that agrees outweighs those that cannot tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// The samples are too few or too uneven, or nothing says what the machine did in between.
    CannotTell,
    /// The intervals of the two runs, widened by their noise bands, have values in common.
    Agrees,
    /// The widened intervals have no value in common.
    Disagrees,
}

impl Agreement {
    fn as_str(self) -> &'static str {
        match self {
            Self::CannotTell => "cannot tell",
            Self::Agrees => "agrees",
            Self::Disagrees => "disagrees",
        }
    }
}

/// A figure of the record beside the one of the new run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// What the figure is, such as `throughput against duckdb`.
    pub what: String,
    /// What the record says, with its interval where it has one.
    pub recorded: String,
    /// What the new run says.
    pub again: String,
    /// Whether the two agree, within the noise of both runs.
    pub agreement: Agreement,
    /// Why, where that does not follow from the two.
    pub reason: String,
}

/// What came of running one case again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reproduction {
    /// Name of the record's suite.
    pub suite: String,
    /// Name of the case that ran again.
    pub case: String,
    /// What differs between the runs beside the program.
    pub marks: Vec<String>,
    /// The ratios to other systems, then the figures themselves where one machine made both.
    pub claims: Vec<Claim>,
    /// What the claims say together; see the order of [`Agreement`].
    pub agreement: Agreement,
}

/// Sets the case of the record beside the same case of a new run. Samples of the two are never
/// paired. On another machine only ratios are compared, because figures differ there anyway.
///
/// # Errors
/// A sentence for the user, when the new run does not have the case or asks for other work in it.
pub fn reproduce(
    recorded: &StoredRun,
    again: &StoredRun,
    case: &str,
) -> Result<Reproduction, String> {
    let plan = case_of(recorded, case).ok_or_else(|| format!("the record has no case {case}"))?;
    // A reproduction is usually made on another machine, so the marks are shown and do not stop the
    // comparison.
    let rules = CompareRules {
        across: true,
        ..CompareRules::default()
    };
    let comparison = compare(recorded, std::slice::from_ref(again), &rules);
    let is_case = |change: &&Change| change.case == case;
    if !comparison.changes.iter().any(|change| is_case(&change)) {
        let why = comparison.left_out.iter().find(|left| left.case == case);
        return Err(why.map_or_else(
            || format!("{case} did not run"),
            |left| format!("{}: {}", left.subject(), left.reason),
        ));
    }
    let [before, after] = [recorded, again].map(|stored| build(&stored.run, &stored.samples));
    let mut claims: Vec<Claim> = plan
        .systems
        .iter()
        .filter(|system| *system != OURS)
        .filter_map(|system| ratio_claim(&before, &after, plan, system))
        .collect();
    if recorded.run.machine.fingerprint == again.run.machine.fingerprint {
        // A peer's own figure is not a claim of the record: what it claims is the ratio to that
        // peer.
        let ours = |change: &&Change| plan.role(&change.system) != Role::Peer;
        let values = comparison.changes.iter().filter(is_case).filter(ours);
        claims.extend(values.map(value_claim));
    }
    let agreement = claims.iter().map(|claim| claim.agreement).max();
    Ok(Reproduction {
        suite: recorded.run.plan.suite.clone(),
        case: case.to_owned(),
        marks: comparison.marks,
        claims,
        agreement: agreement.unwrap_or(Agreement::CannotTell),
    })
}

fn case_of<'a>(run: &'a StoredRun, case: &str) -> Option<&'a CasePlan> {
    run.run.plan.cases.iter().find(|plan| plan.name == case)
}

/// The ratio of ours to another system, `None` where the record has none.
fn ratio_claim(recorded: &Report, again: &Report, plan: &CasePlan, system: &str) -> Option<Claim> {
    let before = ratio_to(recorded, plan, &plan.metric, system)?;
    let after = ratio_to(again, plan, &plan.metric, system);
    let shown = |ratio: &Ratio| {
        let range = ratio_range(ratio.low, ratio.high);
        format!("{} ({range})", ratio_text(ratio.ratio))
    };
    let unusable = |ratio: &Ratio, which: &str| {
        let judged = ["faster", "slower", "no difference shown"].contains(&ratio.verdict)
            && !ratio.is_doubted();
        (!judged).then(|| format!("{which}: {}, {}", ratio.verdict, ratio.reason))
    };
    let (agreement, reason) = match &after {
        None => (Agreement::CannotTell, "did not run again".to_owned()),
        Some(after) => {
            // An interval of an unsteady or unstable run is not a statement about the program, and
            // two such intervals meet or miss each other by chance.
            let why = unusable(&before, "the record").or_else(|| unusable(after, "the new run"));
            match why {
                Some(why) => (Agreement::CannotTell, why),
                None => (meet(widened(&before), widened(after)), String::new()),
            }
        }
    };
    Some(Claim {
        what: format!("{} against {system}", plan.metric),
        recorded: shown(&before),
        again: after.as_ref().map_or_else(|| "-".to_owned(), shown),
        agreement,
        reason,
    })
}

/// The interval with the noise band of its run on both sides: what the same program may give.
fn widened(ratio: &Ratio) -> (f64, f64) {
    let band = 1.0 + ratio.band.unwrap_or(0.0);
    (ratio.low / band, ratio.high * band)
}

fn meet(a: (f64, f64), b: (f64, f64)) -> Agreement {
    if a.0 <= b.1 && b.0 <= a.1 {
        Agreement::Agrees
    } else {
        Agreement::Disagrees
    }
}

/// The figure itself, on the same machine.
fn value_claim(change: &Change) -> Claim {
    let band = change.band.map(|band| 1.0 + band);
    let within = |band: f64| change.low / band <= 1.0 && 1.0 <= change.high * band;
    let (agreement, reason) = match band {
        _ if change.n < BLOCKS_MIN => {
            let reason = format!("too few samples: {}", change.n);
            (Agreement::CannotTell, reason)
        }
        // "not judged" is not in this list. Two runs that share no peer are never judged, but an
        // interval around 1 still shows that the figure came out the same.
        _ if ["unstable", "not steady"].contains(&change.verdict) => {
            (Agreement::CannotTell, change.reason.clone())
        }
        _ if within(1.0) => (Agreement::Agrees, String::new()),
        Some(band) if within(band) => (Agreement::Agrees, String::new()),
        Some(_) => (Agreement::Disagrees, String::new()),
        None => {
            let reason = "it differs, and no peer ran in both runs to tell what the machine did";
            (Agreement::CannotTell, reason.to_owned())
        }
    };
    Claim {
        what: format!("{} of {}", change.metric, change.system),
        recorded: quantity(change.base, &change.unit),
        again: format!(
            "{}, {} ({})",
            quantity(change.new, &change.unit),
            ratio_text(change.ratio),
            ratio_range(change.low, change.high)
        ),
        agreement,
        reason,
    }
}

impl Reproduction {
    /// A line for each claim, then the answer.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for mark in &self.marks {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "not the same: {mark}");
        }
        for claim in &self.claims {
            let because = if claim.reason.is_empty() {
                String::new()
            } else {
                format!(" ({})", claim.reason)
            };
            let _ = writeln!(
                text,
                "{}: recorded {}, now {}: {}{because}",
                claim.what,
                claim.recorded,
                claim.again,
                claim.agreement.as_str()
            );
        }
        let _ = writeln!(text, "{}: {}", self.case, self.agreement.as_str());
        text
    }
}
