//! Drives a plan: prepare, verify, then time, with every sample on disk before the next begins.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dyno_machine::Readings;
use dyno_record::{Answer, Arm, CasePlan, Outcome, Plan, Role, RunDir, Sample};

use crate::Error;
use crate::beside::LoadCommand;
use crate::clock::Clock;
use crate::data::Preparer;
use crate::estimate::{CaseEstimate, samples_of};
use crate::executor::Executor;
use crate::order::{self, Slot};
use crate::plan::Planned;
use crate::profile::Profiler;
use crate::progress::{Event, Observer};
use crate::stop::Stop;
use crate::system::System;
use crate::verify::is_before_timing;

/// After this many failed or hung invocations of a case, a system is not started in it again: ten
/// hangs at a limit of two minutes would cost more than they tell.
const FAILURES_MAX: u32 = 2;

/// Everything a run is handed.
pub struct Setup<'a> {
    /// The plan with its estimates, its budget and the load beside it.
    pub planned: Planned,
    /// Every system of the plan; those missing say why.
    pub systems: Vec<System>,
    /// Starts the children and the load, for real or from a script.
    pub executor: &'a mut dyn Executor,
    /// The clock of budgets, of the samples and of the record.
    pub clock: &'a dyn Clock,
    /// Reads clocks and temperatures; called just before and just after each sample.
    pub sensors: &'a dyn Fn() -> Readings,
    /// Is told of each step on the thread of the runner, between children.
    pub observer: &'a mut dyn Observer,
    /// Set when the user wants the run to end.
    pub stop: Stop,
    /// Data directories go here and stay.
    pub data_root: PathBuf,
    /// Scratch directories go here and are removed.
    pub scratch_root: PathBuf,
    /// Scratch directories of experiments that want them in memory go here and are removed.
    pub memory_scratch_root: PathBuf,
    /// The record, made already; this finishes it.
    pub record: RunDir,
    /// Samples where each system spends its processor time, in one more invocation for each case;
    /// `None` leaves that out.
    pub profiler: Option<Profiler>,
    /// Samples that the record has already, of a run that is continued. Blocks that they complete
    /// are not run again.
    pub done: Vec<Sample>,
}

/// How a run went; the figures are in the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Samples that ended well, with the answer that all agreed on.
    pub done: u32,
    /// What failed: case and reason. Of a continued run also what had failed before.
    pub failures: Vec<(String, String)>,
    /// Invocations that the budget left no time for.
    pub cut: u32,
    /// Whether the user stopped the run.
    pub stopped: bool,
}

impl Summary {
    /// How a continued run stands before it goes on. What failed before the interruption is in the
    /// record as well, and its exit code tells of the whole record.
    fn from_done(cases: &[CasePlan], samples: &[Sample]) -> Summary {
        let failures = samples.iter().filter_map(|sample| {
            let case = cases.iter().find(|case| case.name == sample.case)?;
            failure_of(case, sample)
        });
        Summary {
            failures: failures.collect(),
            ..Summary::default()
        }
    }
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
        sensors,
        observer,
        stop,
        data_root,
        scratch_root,
        memory_scratch_root,
        record,
        profiler,
        done,
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
    let summary = Summary::from_done(&planned.plan.cases, &done);
    let mut runner = Runner {
        systems,
        executor,
        clock,
        sensors,
        observer,
        stop,
        scratch_root,
        memory_scratch_root,
        record,
        profiler,
        beside: planned.beside,
        preparer,
        order_seed: planned.plan.order_seed,
        estimates: planned.estimates,
        cases: planned.plan.cases,
        budget_s: planned.budget_s,
        started: 0,
        // The clock of a continued run goes on where the interrupted one stopped, so that samples
        // keep their order in time.
        before_s: done.last().map_or(0.0, |last| last.at_s + last.wall_s),
        done: blocks_done(&done),
        total,
        summary,
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

/// The number of blocks that each case has timed samples of. A run goes block by block, so all
/// before the last one are complete.
fn blocks_done(samples: &[Sample]) -> BTreeMap<String, u32> {
    let mut done = BTreeMap::new();
    let timed = samples.iter().filter(|sample| !is_before_timing(sample));
    for sample in timed {
        let blocks: &mut u32 = done.entry(sample.case.clone()).or_default();
        *blocks = (*blocks).max(sample.block + 1);
    }
    done
}

/// How many of a record's samples a continued run keeps: all, or those before the last block if it
/// lacks some.
///
/// What the verify pass left counts as none, so that it never completes a block.
pub fn whole_blocks(plan: &Plan, beside: bool, samples: &[Sample]) -> usize {
    let Some(last) = samples.last() else {
        return 0;
    };
    let of_last = |sample: &&Sample| sample.case == last.case && sample.block == last.block;
    let there = samples.iter().rev().take_while(of_last);
    let timed = there.clone().filter(|sample| !is_before_timing(sample));
    let case = plan.cases.iter().find(|case| case.name == last.case);
    let full = case.map_or(0, |case| samples_of(case, beside) / case.repeats.max(1));
    if timed.count() >= full as usize {
        samples.len()
    } else {
        samples.len() - there.count()
    }
}

pub(crate) struct Runner<'a> {
    pub(crate) systems: Vec<System>,
    pub(crate) executor: &'a mut dyn Executor,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) sensors: &'a dyn Fn() -> Readings,
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) stop: Stop,
    pub(crate) scratch_root: PathBuf,
    pub(crate) memory_scratch_root: PathBuf,
    pub(crate) record: RunDir,
    pub(crate) profiler: Option<Profiler>,
    /// What runs beside the second invocation of each system in each block.
    pub(crate) beside: Option<LoadCommand>,
    pub(crate) preparer: Preparer,
    pub(crate) order_seed: u64,
    pub(crate) estimates: Vec<CaseEstimate>,
    pub(crate) cases: Vec<CasePlan>,
    pub(crate) budget_s: f64,
    /// Timed invocations begun, or given up.
    pub(crate) started: u32,
    /// Seconds that an interrupted run had lasted.
    pub(crate) before_s: f64,
    /// Blocks of each case that it had completed.
    pub(crate) done: BTreeMap<String, u32>,
    pub(crate) total: u32,
    pub(crate) summary: Summary,
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
        // Making data is not a part of the budget: it happens once, the budget bounds every run.
        let begun_s = self.clock.elapsed_s();
        for index in 0..self.cases.len() {
            let case = self.cases[index].clone();
            if self.done_of(&case) >= case.repeats {
                self.started += self.samples_of(&case);
                continue;
            }
            // What will not be timed is not worth the time to verify either.
            if self.clock.elapsed_s() - begun_s > self.budget_s {
                let left = case.repeats - self.done_of(&case);
                self.cut(self.samples_of(&case) / case.repeats * left);
                continue;
            }
            let verified = self.verify(index, &case)?;
            if self.summary.stopped {
                break;
            }
            let Some((agreed, able)) = verified else {
                self.started += self.samples_of(&case);
                continue;
            };
            self.time(index, &case, &agreed, &able, begun_s)?;
            // Behind the samples, so that what the profiler leaves in caches disturbs none of them.
            if self.profiler.is_some() {
                self.profile(&case, &able)?;
            }
            if self.summary.stopped {
                break;
            }
        }
        Ok(())
    }

    /// Times a case, block by block.
    fn time(
        &mut self,
        index: usize,
        case: &CasePlan,
        agreed: &Answer,
        able: &[bool],
        begun_s: f64,
    ) -> Result<(), Error> {
        let failures: Vec<u32> = able
            .iter()
            .map(|able| if *able { 0 } else { FAILURES_MAX })
            .collect();
        // A system that the load makes fail must still be measured alone, so the failures of the
        // two are counted apart.
        let (mut alone, mut beside) = (failures.clone(), failures);
        let blocks = self.blocks(case);
        let done = self.done_of(case) as usize;
        self.started += self.samples_of(case) / case.repeats * done as u32;
        for (block, slots) in blocks.iter().enumerate().skip(done) {
            // Only between blocks: half a block would leave samples without the partner that they
            // are paired with.
            if self.clock.elapsed_s() - begun_s > self.budget_s {
                let left = (blocks.len() - block) as u32 * slots.len() as u32;
                self.cut(left);
                return Ok(());
            }
            for (position, slot) in slots.iter().enumerate() {
                self.started += 1;
                let failures = match slot.arm {
                    Arm::Main | Arm::Control => &mut alone[slot.system],
                    Arm::Beside => &mut beside[slot.system],
                };
                if *failures >= FAILURES_MAX {
                    continue;
                }
                let at = self.schedule_position(block as u32, position, slot.arm);
                self.announce(index, case, slot);
                let Some(sample) = self.sample(case, slot, at, agreed)? else {
                    self.summary.stopped = true;
                    return Ok(());
                };
                // On disk before the next child starts, so that a crash costs one sample at most.
                self.keep(case, &sample)?;
                if sample.outcome != Outcome::Done {
                    *failures += 1;
                }
            }
        }
        Ok(())
    }

    fn blocks(&self, case: &CasePlan) -> Vec<Vec<Slot>> {
        let order = match self.beside {
            None => order::blocks,
            Some(_) => order::blocks_beside,
        };
        order(
            self.order_seed,
            &case.name,
            case.systems.len(),
            case.control,
            case.repeats,
        )
    }

    fn done_of(&self, case: &CasePlan) -> u32 {
        self.done.get(&case.name).copied().unwrap_or(0)
    }

    fn samples_of(&self, case: &CasePlan) -> u32 {
        samples_of(case, self.beside.is_some())
    }

    fn announce(&mut self, index: usize, case: &CasePlan, slot: &Slot) {
        let mean_s = self.estimates[index].mean_s(case);
        let after: f64 = self.estimates[index + 1..].iter().map(|e| e.total_s).sum();
        let before: u32 = self.cases[..=index]
            .iter()
            .map(|case| self.samples_of(case))
            .sum();
        let in_case = f64::from((before + 1).saturating_sub(self.started));
        let name = match slot.arm {
            Arm::Main => case.systems[slot.system].clone(),
            Arm::Control => format!("{} (control)", case.systems[slot.system]),
            Arm::Beside => format!("{} (beside the load)", case.systems[slot.system]),
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
        self.summary.done += u32::from(sample.outcome == Outcome::Done);
        self.summary.failures.extend(failure_of(case, sample));
        self.observer.event(&Event::Sampled {
            sample,
            metric: &case.metric,
            unit: &case.unit,
        });
        Ok(())
    }

    /// Tells of a system that takes no part in a case.
    pub(crate) fn fail(&mut self, case: &CasePlan, system: &str, reason: String) {
        self.observer.event(&Event::CaseFailed {
            case: &case.name,
            reason: &reason,
        });
        if counts_as_failure(case, system) {
            self.summary.failures.push((case.name.clone(), reason));
        }
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

/// A change that cannot be made on this machine is a part of the answer of `--why`, and does not
/// make the run a failure.
fn counts_as_failure(case: &CasePlan, system: &str) -> bool {
    case.role(system) != Role::Experiment
}

/// The case and the reason, where a sample makes the run a failure.
fn failure_of(case: &CasePlan, sample: &Sample) -> Option<(String, String)> {
    let reason = match &sample.outcome {
        Outcome::Done => return None,
        Outcome::Failed(why) => format!("{}: {why}", sample.system),
        Outcome::Hung(why) => format!("{} hung: {why}", sample.system),
    };
    counts_as_failure(case, &sample.system).then(|| (case.name.clone(), reason))
}
