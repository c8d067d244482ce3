//! Drives a plan: prepare, verify, then time, with every sample on disk before the next begins.

use std::path::PathBuf;

use dyno_record::{Answer, Arm, CasePlan, Outcome, RunDir, Sample, Usage};

use crate::Error;
use crate::beside::Beside;
use crate::clock::Clock;
use crate::data::Preparer;
use crate::estimate::CaseEstimate;
use crate::executor::{Ended, Executor, Exit};
use crate::invoke::{self, DataDirs};
use crate::order::{self, Slot};
use crate::plan::{Planned, samples_of};
use crate::progress::{Event, Observer};
use crate::protocol::{Phase, Reply};
use crate::scratch::Scratch;
use crate::stop::Stop;
use crate::system::System;
use crate::verify::{Verdict, Verified, compare};

/// After this many failed or hung invocations of a case, a system is not started in it again: ten
/// hangs at a limit of two minutes would cost more than they tell.
const FAILURES_MAX: u32 = 2;

/// Everything a run is handed.
pub struct Setup<'a> {
    /// What to run.
    pub planned: Planned,
    /// Every system of the plan; those missing say why.
    pub systems: Vec<System>,
    /// Starts children.
    pub executor: &'a mut dyn Executor,
    /// Time.
    pub clock: &'a dyn Clock,
    /// Is told what happens.
    pub observer: &'a mut dyn Observer,
    /// Set when the user wants the run to end.
    pub stop: Stop,
    /// Data directories go here and stay.
    pub data_root: PathBuf,
    /// Scratch directories go here and are removed.
    pub scratch_root: PathBuf,
    /// The record, made already; this finishes it.
    pub record: RunDir,
    /// A command to keep running beside every sample.
    pub beside: Option<String>,
}

/// How a run went; the figures are in the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Samples that ended well.
    pub done: u32,
    /// What failed: case and reason.
    pub failures: Vec<(String, String)>,
    /// Invocations that the budget left no time for.
    pub cut: u32,
    /// Whether the user stopped the run.
    pub stopped: bool,
}

/// Runs a plan to its end, its budget or the user's wish.
///
/// # Errors
/// When data cannot be made, a child cannot even be started, or the record cannot be written. A
/// child that fails, hangs or answers wrongly is part of the [`Summary`].
pub fn run(setup: Setup<'_>) -> Result<Summary, Error> {
    let Setup {
        planned,
        systems,
        executor,
        clock,
        observer,
        stop,
        data_root,
        scratch_root,
        record,
        beside,
    } = setup;
    for system in &systems {
        if let Some(reason) = &system.missing {
            observer.event(&Event::Missing {
                system: &system.name,
                reason,
            });
        }
    }
    let preparer = Preparer::new(&data_root, &planned, &systems);
    let total = planned.samples();
    let mut runner = Runner {
        systems,
        executor,
        clock,
        observer,
        stop,
        scratch_root,
        record,
        beside_command: beside,
        preparer,
        order_seed: planned.plan.order_seed,
        estimates: planned.estimates,
        cases: planned.plan.cases,
        budget_s: planned.budget_s,
        started: 0,
        total,
        summary: Summary::default(),
    };
    runner.all()?;
    let Runner {
        record,
        clock,
        observer,
        summary,
        ..
    } = runner;
    if summary.stopped {
        // The record keeps what was measured and stays marked as unfinished.
        observer.event(&Event::Stopped);
    } else {
        record.finish(&clock.utc())?;
    }
    Ok(summary)
}

struct Runner<'a> {
    systems: Vec<System>,
    executor: &'a mut dyn Executor,
    clock: &'a dyn Clock,
    observer: &'a mut dyn Observer,
    stop: Stop,
    scratch_root: PathBuf,
    record: RunDir,
    beside_command: Option<String>,
    preparer: Preparer,
    order_seed: u64,
    estimates: Vec<CaseEstimate>,
    cases: Vec<CasePlan>,
    budget_s: f64,
    /// Timed invocations begun, or given up.
    started: u32,
    /// Timed invocations planned.
    total: u32,
    summary: Summary,
}

/// A place in the order of a run, for the sample.
#[derive(Clone, Copy)]
struct Place {
    block: u32,
    position: u32,
    arm: Arm,
    at_s: f64,
}

impl Runner<'_> {
    fn all(&mut self) -> Result<(), Error> {
        self.preparer.prepare(
            &self.systems,
            self.executor,
            self.clock,
            self.observer,
            &self.stop,
        )?;
        // Making data is no part of the budget: it happens once, the budget bounds every run.
        let begun_s = self.clock.elapsed_s();
        for index in 0..self.cases.len() {
            let case = self.cases[index].clone();
            let verified = self.verify(index, &case)?;
            if self.summary.stopped {
                break;
            }
            let Some((agreed, able)) = verified else {
                self.started += samples_of(&case);
                continue;
            };
            self.time(index, &case, &agreed, able, begun_s)?;
            if self.summary.stopped {
                break;
            }
        }
        Ok(())
    }

    /// Runs every system of a case once and compares. Answers what they agree on and which
    /// systems can be timed; nothing when the case must not be.
    fn verify(
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
            let place = self.place(0, position, Arm::Main);
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
                    self.estimates[index].learn(case, position, wall_s);
                    verified.push(Verified::Answered(answer, wall_s));
                }
                (_, reason) => {
                    let reason = reason.unwrap_or_else(|| "it gave no answer".to_string());
                    let outcome = match outcome {
                        Outcome::Hung(why) => Outcome::Hung(format!("before timing: {why}")),
                        _ => Outcome::Failed(format!("before timing: {reason}")),
                    };
                    self.keep_failure(case, name, place, ended.as_ref(), outcome)?;
                    verified.push(Verified::Out(reason));
                }
            }
        }
        self.conclude_verification(case, &verified)
    }

    fn conclude_verification(
        &mut self,
        case: &CasePlan,
        verified: &[Verified],
    ) -> Result<Option<(Answer, Vec<bool>)>, Error> {
        for (name, verified) in case.systems.iter().zip(verified) {
            if let Verified::Out(reason) = verified {
                self.fail(case, format!("{name}: {reason}"));
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
                for (position, (name, verified)) in case.systems.iter().zip(verified).enumerate() {
                    let Verified::Answered(answer, wall_s) = verified else {
                        continue;
                    };
                    let place = self.place(0, position, Arm::Main);
                    let reason = format!("before timing: answers disagree: {reason}");
                    let mut sample = failed_sample(case, name, place, Outcome::Failed(reason));
                    sample.wall_s = *wall_s;
                    sample.answer = Some(answer.clone());
                    self.record.append(&sample)?;
                }
                self.fail(
                    case,
                    format!("answers disagree, nothing is timed: {reason}"),
                );
                Ok(None)
            }
        }
    }

    /// Times a case, block by block.
    fn time(
        &mut self,
        index: usize,
        case: &CasePlan,
        agreed: &Answer,
        able: Vec<bool>,
        begun_s: f64,
    ) -> Result<(), Error> {
        let mut beside = self.beside_command.as_deref().map(Beside::start);
        let mut failures: Vec<u32> = able
            .iter()
            .map(|able| if *able { 0 } else { FAILURES_MAX })
            .collect();
        let blocks = order::blocks(
            self.order_seed,
            &case.name,
            case.systems.len(),
            case.control,
            case.repeats,
        );
        for (block, slots) in blocks.iter().enumerate() {
            if self.clock.elapsed_s() - begun_s > self.budget_s {
                let left = (blocks.len() - block) as u32 * slots.len() as u32;
                self.cut(left);
                return Ok(());
            }
            for (position, slot) in slots.iter().enumerate() {
                self.started += 1;
                if failures[slot.system] >= FAILURES_MAX {
                    continue;
                }
                let place = self.place(block as u32, position, slot.arm);
                self.announce(index, case, slot);
                let Some(mut sample) = self.sample(case, slot, place, agreed)? else {
                    self.summary.stopped = true;
                    return Ok(());
                };
                if let Some(told) = beside
                    .as_mut()
                    .map(Beside::keep_alive)
                    .transpose()?
                    .flatten()
                {
                    sample.facts.insert("beside".to_string(), told);
                }
                self.keep(case, &sample)?;
                if sample.outcome != Outcome::Done {
                    failures[slot.system] += 1;
                }
            }
        }
        Ok(())
    }

    /// One timed invocation; nothing when the user stopped it.
    fn sample(
        &mut self,
        case: &CasePlan,
        slot: &Slot,
        place: Place,
        agreed: &Answer,
    ) -> Result<Option<Sample>, Error> {
        let name = case.systems[slot.system].clone();
        let system = name.as_str();
        let scratch = self.scratch(case, system, Phase::Measure)?;
        let ended = match self.invoke_in(case, system, Phase::Measure, &scratch)? {
            Ok(ended) => ended,
            Err(reason) => {
                scratch.remove()?;
                return Ok(Some(failed_sample(
                    case,
                    system,
                    place,
                    Outcome::Failed(reason),
                )));
            }
        };
        if ended.exit == Exit::Stopped {
            scratch.remove()?;
            return Ok(None);
        }
        let (reply, outcome) = invoke::judge(&ended, case.time_limit_s);
        let mut sample = failed_sample(case, system, place, outcome);
        sample.wall_s = ended.wall_s;
        sample.usage = ended.usage;
        if let Some(reply) = reply {
            let wrong = missing_part(case, &reply)
                .or_else(|| invoke::wrong_answer(case, reply.answer.as_ref(), Some(agreed)));
            if let Some(reason) = wrong {
                sample.outcome = Outcome::Failed(reason);
            }
            if let Some(log) = &reply.histogram {
                let name = format!("{}-{system}-{}-{}", case.name, place.block, place.position);
                let file = invoke::keep_histogram(log, self.record.path(), &name)?;
                sample.histogram = Some(file);
            }
            sample.answer = reply.answer;
            sample.metrics = reply.metrics;
            sample.facts = reply.facts;
            sample.windows = reply.windows;
        }
        scratch.remove()?;
        Ok(Some(sample))
    }

    /// Runs a child in a scratch directory of its own. The inner error is a reason why this
    /// system cannot run this case.
    fn invoke(
        &mut self,
        case: &CasePlan,
        system: &str,
        phase: Phase,
    ) -> Result<Result<Ended, String>, Error> {
        let scratch = self.scratch(case, system, phase)?;
        let ended = self.invoke_in(case, system, phase, &scratch)?;
        scratch.remove()?;
        Ok(ended)
    }

    fn invoke_in(
        &mut self,
        case: &CasePlan,
        name: &str,
        phase: Phase,
        scratch: &Scratch,
    ) -> Result<Result<Ended, String>, Error> {
        let Some(system) = self.systems.iter().find(|s| s.name == name) else {
            return Ok(Err(format!("{name} is not among the systems of this run")));
        };
        let preparer = &self.preparer;
        let dirs: &DataDirs<'_> = &|data| preparer.dir(data, name).map(|dir| dir.to_path_buf());
        let params = match invoke::resolve(&case.params, dirs) {
            Ok(params) => params,
            Err(reason) => return Ok(Err(reason)),
        };
        let invocation = invoke::invocation(
            system,
            &case.workload,
            params,
            phase,
            scratch.path(),
            case.time_limit_s,
        );
        self.executor.execute(&invocation, &self.stop).map(Ok)
    }

    fn scratch(&self, case: &CasePlan, system: &str, phase: Phase) -> Result<Scratch, Error> {
        let phase = if phase == Phase::Verify {
            "verify"
        } else {
            "measure"
        };
        Scratch::fresh(
            &self.scratch_root,
            &format!("{}-{system}-{phase}", case.name),
        )
    }

    fn place(&self, block: u32, position: usize, arm: Arm) -> Place {
        Place {
            block,
            position: position as u32,
            arm,
            at_s: self.clock.elapsed_s(),
        }
    }

    fn announce(&mut self, index: usize, case: &CasePlan, slot: &Slot) {
        let mean_s = self.estimates[index].mean_s(case);
        let after: f64 = self.estimates[index + 1..].iter().map(|e| e.total_s).sum();
        let before: u32 = self.cases[..=index].iter().map(samples_of).sum();
        let in_case = f64::from((before + 1).saturating_sub(self.started));
        let name = match slot.arm {
            Arm::Main => case.systems[slot.system].clone(),
            Arm::Control => format!("{} (control)", case.systems[slot.system]),
        };
        self.observer.event(&Event::Sampling {
            case: &case.name,
            system: &name,
            done: self.started - 1,
            planned: self.total,
            remaining_s: in_case * mean_s + after,
        });
    }

    fn keep(&mut self, case: &CasePlan, sample: &Sample) -> Result<(), Error> {
        self.record.append(sample)?;
        match &sample.outcome {
            Outcome::Done => self.summary.done += 1,
            Outcome::Failed(why) => {
                let reason = format!("{}: {why}", sample.system);
                self.summary.failures.push((case.name.clone(), reason));
            }
            Outcome::Hung(why) => {
                let reason = format!("{} hung: {why}", sample.system);
                self.summary.failures.push((case.name.clone(), reason));
            }
        }
        self.observer.event(&Event::Sampled {
            sample,
            metric: &case.metric,
            unit: &case.unit,
        });
        Ok(())
    }

    fn keep_failure(
        &mut self,
        case: &CasePlan,
        system: &str,
        place: Place,
        ended: Option<&Ended>,
        outcome: Outcome,
    ) -> Result<(), Error> {
        let mut sample = failed_sample(case, system, place, outcome);
        if let Some(ended) = ended {
            sample.wall_s = ended.wall_s;
            sample.usage = ended.usage.clone();
        }
        Ok(self.record.append(&sample)?)
    }

    fn fail(&mut self, case: &CasePlan, reason: String) {
        self.observer.event(&Event::CaseFailed {
            case: &case.name,
            reason: &reason,
        });
        self.summary.failures.push((case.name.clone(), reason));
    }

    fn cut(&mut self, left: u32) {
        self.started += left;
        self.summary.cut += left;
        self.observer.event(&Event::BudgetSpent {
            budget_s: self.budget_s,
            left,
        });
    }
}

/// What a reply lacks that the case needs, if something.
fn missing_part(case: &CasePlan, reply: &Reply) -> Option<String> {
    // These two come from outside the child, out of its usage.
    let watched = ["cpu", "peak-rss"].contains(&case.metric.as_str());
    if reply.answer.is_none() {
        Some("it gave no answer".to_string())
    } else if !watched && !reply.metrics.contains_key(&case.metric) {
        Some(format!("it reports no `{}`", case.metric))
    } else {
        None
    }
}

/// A sample with nothing in it yet but its place and what became of it.
fn failed_sample(case: &CasePlan, system: &str, place: Place, outcome: Outcome) -> Sample {
    Sample {
        case: case.name.clone(),
        system: system.to_string(),
        arm: place.arm,
        block: place.block,
        position: place.position,
        at_s: place.at_s,
        outcome,
        wall_s: 0.0,
        answer: None,
        metrics: Default::default(),
        facts: Default::default(),
        windows: Vec::new(),
        usage: Usage::default(),
        histogram: None,
    }
}
