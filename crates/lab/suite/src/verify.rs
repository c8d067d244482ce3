//! The verify pass of a case: every system answers once, and all answers agree, or nothing is
//! timed.

use dyno_record::{Answer, CasePlan};

use crate::invoke::wrong_answer;

/// What one system came to in the verify pass.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verified {
    /// It answered, in this many seconds.
    Answered(Answer, f64),
    /// It failed, hung or gave no answer; the others go on without it.
    Out(String),
}

/// What the pass as a whole came to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// The answer all systems agree on; no system answered at all when absent.
    Agreed(Option<Answer>),
    /// Why the case must not be timed.
    Disagreed(String),
}

/// Compares the answers of a case's systems, in the case's order.
///
/// A wrong count fails the whole case and not only the system that gave it: a harness that feeds
/// one system wrong input would otherwise time the others on it.
pub(crate) fn compare(case: &CasePlan, answers: &[Verified]) -> Verdict {
    let mut agreed: Option<(&str, &Answer)> = None;
    for (system, verified) in case.systems.iter().zip(answers) {
        let Verified::Answered(answer, _) = verified else {
            continue;
        };
        if let Some(reason) = wrong_answer(case, Some(answer), None) {
            return Verdict::Disagreed(format!("{system}: {reason}"));
        }
        match agreed {
            None => agreed = Some((system, answer)),
            Some((_, first)) if first == answer => {}
            Some((name, first)) => {
                return Verdict::Disagreed(format!(
                    "{name} answered {} ({}) and {system} answered {} ({})",
                    first.count, first.checksum, answer.count, answer.checksum
                ));
            }
        }
    }
    Verdict::Agreed(agreed.map(|(_, answer)| answer.clone()))
}
