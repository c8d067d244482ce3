//! One invocation of one system, from a fresh scratch directory to a sample.

use std::path::Path;

use dyno_record::{Answer, Arm, Around, CasePlan, Outcome, Sample, Sensed, Usage};

use crate::beside::RunningLoad;
use crate::executor::{Ended, Exit};
use crate::invoke::{self, DataDirs};
use crate::order::Slot;
use crate::protocol::{Phase, Reply};
use crate::runner::Runner;
use crate::scratch::Scratch;
use crate::{DYNO, Error};

/// A place in the order of a run, for the sample.
#[derive(Clone, Copy)]
pub(crate) struct SchedulePosition {
    pub(crate) block: u32,
    pub(crate) position: u32,
    pub(crate) arm: Arm,
    pub(crate) at_s: f64,
}

/// A running load, and the directory that it works in.
type LoadWithScratch = (Box<dyn RunningLoad>, Scratch);

impl Runner<'_> {
    /// One timed invocation, beside the load if that is its arm; nothing when the user stopped it.
    pub(crate) fn sample(
        &mut self,
        case: &CasePlan,
        slot: &Slot,
        at: SchedulePosition,
        agreed: &Answer,
    ) -> Result<Option<Sample>, Error> {
        let name = case.systems[slot.system].clone();
        let system = name.as_str();
        let scratch = self.scratch(case, system, Phase::Measure)?;
        let load = match slot.arm {
            Arm::Main | Arm::Control => None,
            Arm::Beside => self.begin_load()?,
        };
        let before = (self.sensors)();
        // An error on the way out of here drops the load, which kills it.
        let ended = self.invoke_in(case, system, Phase::Measure, &scratch, None)?;
        // Before the load ends and the processors cool down.
        let sensors = before.and(&(self.sensors)());
        let stopped = matches!(&ended, Ok(ended) if ended.exit == Exit::Stopped);
        if let Some((load, dir)) = load {
            let whole = load.end();
            dir.remove()?;
            // A load that was gone before the sample ended measured something else. What it did
            // after the user stopped the run is of no interest.
            if !stopped {
                whole?;
            }
        }
        let ended = match ended {
            Ok(ended) => ended,
            Err(reason) => {
                scratch.remove()?;
                return Ok(Some(failed_sample(
                    case,
                    system,
                    at,
                    Outcome::Failed(reason),
                )));
            }
        };
        if stopped {
            scratch.remove()?;
            return Ok(None);
        }
        let (reply, outcome) = invoke::judge(&ended, case.time_limit_s);
        let mut sample = failed_sample(case, system, at, outcome);
        sample.wall_s = ended.wall_s;
        sample.usage = ended.usage;
        sample.sensors = sensors;
        if let Some(reply) = reply {
            self.take_reply(case, agreed, reply, &mut sample)?;
        }
        scratch.remove()?;
        Ok(Some(sample))
    }

    /// Fills in what the child said, and keeps its histogram log before its directory is removed.
    fn take_reply(
        &self,
        case: &CasePlan,
        agreed: &Answer,
        reply: Reply,
        sample: &mut Sample,
    ) -> Result<(), Error> {
        let system = sample.system.as_str();
        let wrong = missing_part(case, &reply)
            .or_else(|| invoke::wrong_answer(case, system, reply.answer.as_ref(), Some(agreed)));
        // The figures of a wrong answer are kept: a reader who looks for the cause needs them, and
        // the outcome keeps them out of every median.
        if let Some(reason) = wrong {
            sample.outcome = Outcome::Failed(reason);
        }
        if let Some(log) = &reply.histogram {
            let (block, position) = (sample.block, sample.position);
            let name = format!("{}-{}-{block}-{position}", case.name, sample.system);
            let file = invoke::keep_histogram(log, self.record.path(), &name)?;
            sample.histogram = Some(file);
        }
        sample.answer = reply.answer;
        sample.metrics = reply.metrics;
        sample.facts = reply.facts;
        sample.windows = reply.windows;
        sample.window_s = reply.window_s;
        Ok(())
    }

    /// Starts the load of the run in a directory of its own.
    fn begin_load(&mut self) -> Result<Option<LoadWithScratch>, Error> {
        let Some(load) = &self.beside else {
            return Ok(None);
        };
        let dir = Scratch::fresh(&self.scratch_root, "beside")?;
        let running = self.executor.begin_load(load, dir.path())?;
        Ok(Some((running, dir)))
    }

    /// Runs a child in a scratch directory of its own. The inner error is a reason why this
    /// system cannot run this case.
    pub(crate) fn invoke(
        &mut self,
        case: &CasePlan,
        system: &str,
        phase: Phase,
    ) -> Result<Result<Ended, String>, Error> {
        let scratch = self.scratch(case, system, phase)?;
        let ended = self.invoke_in(case, system, phase, &scratch, None)?;
        scratch.remove()?;
        Ok(ended)
    }

    /// Runs a child in a scratch directory, sampled into the file `stacks` if there is one.
    pub(crate) fn invoke_in(
        &mut self,
        case: &CasePlan,
        name: &str,
        phase: Phase,
        scratch: &Scratch,
        stacks: Option<&Path>,
    ) -> Result<Result<Ended, String>, Error> {
        // A variant is our program with other parameters.
        let variant = case.variants.get(name);
        let program = if variant.is_some() { DYNO } else { name };
        let Some(system) = self.systems.iter().find(|s| s.name == program) else {
            return Ok(Err(format!("{name} is not among the systems of this run")));
        };
        let preparer = &self.preparer;
        let dirs: &DataDirs<'_> = &|data| preparer.dir(data, program).map(|dir| dir.to_path_buf());
        let mut params = case.params.clone();
        params.extend(
            variant
                .into_iter()
                .flatten()
                .map(|(k, v)| (k.clone(), v.clone())),
        );
        let params = match invoke::resolve(&params, dirs) {
            Ok(params) => params,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut invocation = invoke::invocation(
            system,
            &case.workload,
            params,
            phase,
            scratch.path(),
            case.time_limit_s,
        );
        // The child inherits the processors that it may run on and passes them on, so a server that
        // it starts is kept to them too.
        if let Some(Around::Cores { cores }) = around(case, name) {
            invocation.keep_to(cores);
        }
        if let Some(stacks) = stacks {
            invocation.sample_into(stacks);
        }
        self.executor.execute(&invocation, &self.stop).map(Ok)
    }

    pub(crate) fn scratch(
        &self,
        case: &CasePlan,
        system: &str,
        phase: Phase,
    ) -> Result<Scratch, Error> {
        let phase = if phase == Phase::Verify {
            "verify"
        } else {
            "measure"
        };
        let root = match around(case, system) {
            Some(Around::ScratchInMemory) => &self.memory_scratch_root,
            Some(Around::Cores { .. }) | None => &self.scratch_root,
        };
        Scratch::fresh(root, &format!("{}-{system}-{phase}", case.name))
    }

    pub(crate) fn schedule_position(
        &self,
        block: u32,
        position: usize,
        arm: Arm,
    ) -> SchedulePosition {
        SchedulePosition {
            block,
            position: position as u32,
            arm,
            at_s: self.before_s + self.clock.elapsed_s(),
        }
    }

    pub(crate) fn keep_failure(
        &mut self,
        case: &CasePlan,
        system: &str,
        at: SchedulePosition,
        ended: Option<&Ended>,
        outcome: Outcome,
    ) -> Result<(), Error> {
        let mut sample = failed_sample(case, system, at, outcome);
        if let Some(ended) = ended {
            sample.wall_s = ended.wall_s;
            sample.usage = ended.usage.clone();
        }
        Ok(self.record.append(&sample)?)
    }
}

/// What an experiment changes around its child.
fn around<'a>(case: &'a CasePlan, system: &str) -> Option<&'a Around> {
    case.experiments.get(system)?.around.as_ref()
}

/// What a reply lacks that the case needs, if something.
pub(crate) fn missing_part(case: &CasePlan, reply: &Reply) -> Option<String> {
    // These two come from outside the child, out of its usage.
    let watched = ["cpu", "peak-rss"].contains(&case.metric.as_str());
    if reply.answer.is_none() {
        Some("it gave no answer".to_string())
    } else if !watched && !reply.metrics.contains_key(&case.metric) {
        // A child that cannot measure its ranking metric gives the reason as a fact by that name.
        let why = reply.facts.get(&case.metric);
        let why = why.map_or(String::new(), |why| format!(": {why}"));
        Some(format!("it reports no `{}`{why}", case.metric))
    } else {
        None
    }
}

/// A sample with nothing in it yet but its place and what became of it.
pub(crate) fn failed_sample(
    case: &CasePlan,
    system: &str,
    at: SchedulePosition,
    outcome: Outcome,
) -> Sample {
    Sample {
        case: case.name.clone(),
        system: system.to_string(),
        arm: at.arm,
        block: at.block,
        position: at.position,
        at_s: at.at_s,
        outcome,
        wall_s: 0.0,
        answer: None,
        metrics: Default::default(),
        facts: Default::default(),
        windows: Vec::new(),
        window_s: None,
        usage: Usage::default(),
        sensors: Sensed::default(),
        histogram: None,
    }
}
