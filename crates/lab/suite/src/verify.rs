//! The verify pass of a case: every system answers once, and all answers agree, or nothing is
//! timed.

use dyno_record::{Answer, Arm, CasePlan, Outcome, Role, Sample};

use crate::executor::Exit;
use crate::invoke::{self, wrong_answer};
use crate::progress::Event;
use crate::protocol::Phase;
use crate::runner::Runner;
use crate::sample::{failed_sample, missing_part};
use crate::{DYNO, Error};

/// How the reason of a failure in the verify pass begins in the record, which tells it from one of
/// a timed invocation.
const BEFORE_TIMING: &str = "before timing: ";

/// Whether a sample was kept of a failure in the verify pass. Such a sample is a part of no block.
pub(crate) fn is_before_timing(sample: &Sample) -> bool {
    match &sample.outcome {
        Outcome::Done => false,
        Outcome::Failed(why) | Outcome::Hung(why) => why.starts_with(BEFORE_TIMING),
    }
}

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
        // A change that makes a program do other work must not stop the case: it is put out of it.
        if case.role(system) == Role::Experiment {
            continue;
        }
        if let Some(reason) = wrong_answer(case, system, Some(answer), None) {
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

/// The experiments that answer otherwise than `dyno` unchanged, which comes before them: they did
/// other work, and their time says nothing about a resource. Each is given by its place in the case
/// and the reason.
fn with_other_work(case: &CasePlan, verified: &[Verified]) -> Vec<(usize, String)> {
    let answer = |verified: &Verified| match verified {
        Verified::Answered(answer, _) => Some(answer.clone()),
        Verified::Out(_) => None,
    };
    let unchanged = verified.first().and_then(answer);
    let places = case.systems.iter().zip(verified).enumerate();
    places
        .filter(|(_, (system, _))| case.role(system) == Role::Experiment)
        .filter_map(|(place, (system, verified))| {
            let given = answer(verified)?;
            let wrong = wrong_answer(case, system, Some(&given), unchanged.as_ref())?;
            Some((place, format!("the change makes it do other work: {wrong}")))
        })
        .collect()
}

impl Runner<'_> {
    /// Runs every system of a case once and compares. Answers what they agree on and which
    /// systems can be timed; nothing when the case must not be.
    pub(crate) fn verify(
        &mut self,
        index: usize,
        case: &CasePlan,
    ) -> Result<Option<(Answer, Vec<bool>)>, Error> {
        let mut verified = Vec::new();
        for (position, name) in case.systems.iter().enumerate() {
            self.observer.event(&Event::Verifying {
                case: &case.name,
                system: name,
            });
            let at = self.schedule_position(0, position, Arm::Main);
            let ended = self.invoke(case, name, Phase::Verify)?;
            let (ended, reply, outcome) = match ended {
                Ok(ended) if ended.exit == Exit::Stopped => {
                    self.summary.stopped = true;
                    return Ok(None);
                }
                Ok(ended) => {
                    let (reply, outcome) = invoke::judge(&ended, case.time_limit_s);
                    (Some(ended), reply, outcome)
                }
                Err(reason) => (None, None, Outcome::Failed(reason)),
            };
            let reason = match (&reply, &outcome) {
                (Some(reply), _) => missing_part(case, reply),
                (None, Outcome::Failed(why) | Outcome::Hung(why)) => Some(why.clone()),
                (None, Outcome::Done) => Some("it gave no reply".to_string()),
            };
            match (reply.and_then(|r| r.answer), reason) {
                (Some(answer), None) => {
                    let wall_s = ended.map_or(0.0, |e| e.wall_s);
                    // The estimate of the suite's file was made on another machine.
                    self.estimates[index].learn(case, position, wall_s);
                    verified.push(Verified::Answered(answer, wall_s));
                }
                (_, reason) => {
                    let reason = reason.unwrap_or_else(|| "it gave no answer".to_string());
                    let outcome = match outcome {
                        Outcome::Hung(why) => Outcome::Hung(format!("{BEFORE_TIMING}{why}")),
                        _ => Outcome::Failed(format!("{BEFORE_TIMING}{reason}")),
                    };
                    self.keep_failure(case, name, at, ended.as_ref(), outcome)?;
                    verified.push(Verified::Out(reason));
                }
            }
        }
        self.conclude_verification(case, &mut verified)
    }

    fn conclude_verification(
        &mut self,
        case: &CasePlan,
        verified: &mut [Verified],
    ) -> Result<Option<(Answer, Vec<bool>)>, Error> {
        for (position, reason) in with_other_work(case, verified) {
            let at = self.schedule_position(0, position, Arm::Main);
            let outcome = Outcome::Failed(format!("{BEFORE_TIMING}{reason}"));
            let system = case.systems[position].clone();
            self.keep_failure(case, &system, at, None, outcome)?;
            verified[position] = Verified::Out(reason);
        }
        for (name, verified) in case.systems.iter().zip(verified.iter()) {
            if let Verified::Out(reason) = verified {
                self.fail(case, name, format!("{name}: {reason}"));
            }
        }
        match compare(case, verified) {
            Verdict::Agreed(Some(answer)) => {
                let able: Vec<bool> = verified
                    .iter()
                    .map(|v| matches!(v, Verified::Answered(..)))
                    .collect();
                self.observer.event(&Event::Verified {
                    case: &case.name,
                    count: answer.count,
                    systems: able.iter().filter(|able| **able).count(),
                });
                Ok(Some((answer, able)))
            }
            Verdict::Agreed(None) => Ok(None),
            Verdict::Disagreed(reason) => {
                // The answers are kept as failed samples, because a reader who looks for the cause
                // needs to see who answered what.
                for (position, (name, verified)) in
                    case.systems.iter().zip(verified.iter()).enumerate()
                {
                    let Verified::Answered(answer, wall_s) = verified else {
                        continue;
                    };
                    let at = self.schedule_position(0, position, Arm::Main);
                    let reason = format!("{BEFORE_TIMING}answers disagree: {reason}");
                    let mut sample = failed_sample(case, name, at, Outcome::Failed(reason));
                    sample.wall_s = *wall_s;
                    sample.answer = Some(answer.clone());
                    self.record.append(&sample)?;
                }
                self.fail(
                    case,
                    DYNO,
                    format!("answers disagree, nothing is timed: {reason}"),
                );
                Ok(None)
            }
        }
    }
}
