//! Continues a run that was interrupted, in its own record.

use std::path::Path;

use anyhow::{Context, bail};
use dyno_record::{Plan, Run, RunDir, Sample};
use dyno_suite::{Definition, Selection, whole_blocks};

use crate::args::{RunArgs, SelectArgs};
use crate::built_in;

/// The suite of an interrupted run, with everything that was set and chosen then.
///
/// # Errors
/// There is no record, or the suite is not one that can be named.
pub fn suite(record: &Path, args: &RunArgs) -> anyhow::Result<(Definition, Run)> {
    let run = RunDir::read_run(record)?;
    let SelectArgs { suites_dir, .. } = &args.select;
    let mut suite = built_in::suite(&run.plan.suite, suites_dir.as_deref())
        .with_context(|| format!("{} cannot be continued", record.display()))?;
    suite.set(&run.plan.set)?;
    suite.select(Selection {
        only: run.plan.only.clone(),
        skip: run.plan.skip.clone(),
    });
    Ok((suite, run))
}

/// Opens the record to continue it as `now`, which is how a new run would be described, and returns
/// it with the samples that it keeps.
///
/// # Errors
/// Program, machine, systems or definition differ from those of the interrupted run, by name: its
/// figures would then mix two things. Nothing is changed in that case.
pub fn open(dir: &Path, now: &Run) -> anyhow::Result<(RunDir, Vec<Sample>)> {
    let stored = RunDir::open(dir)?;
    if let Some(reason) = difference(&stored.run, now) {
        bail!("{} cannot be continued: {reason}", dir.display());
    }
    let keep = whole_blocks(&now.plan, now.beside.is_some(), &stored.samples);
    let planned: u32 = now.plan.cases.iter().map(|case| case.repeats).sum();
    eprintln!(
        "{}: {keep} samples stay; of {planned} blocks those that are complete are not run again",
        dir.display()
    );
    let mut samples = stored.samples;
    samples.truncate(keep);
    Ok((RunDir::resume(dir, keep)?, samples))
}

/// What two runs do not share although their figures would stand in one record.
fn difference(then: &Run, now: &Run) -> Option<String> {
    let differ = |what: &str, then: &str, now: &str| {
        (then != now).then(|| format!("{what} was {then} and is {now}"))
    };
    let systems = then.systems.iter().find_map(|system| {
        let same = now.systems.iter().find(|other| other.name == system.name);
        let version = same.map_or("not here", |same| same.version.as_str());
        differ(
            &format!("the version of {}", system.name),
            &system.version,
            version,
        )
    });
    differ(
        "the revision",
        &then.program.git_revision,
        &now.program.git_revision,
    )
    .or_else(|| differ("the program", &then.program.hash, &now.program.hash))
    .or_else(|| {
        differ(
            "the machine",
            &then.machine.fingerprint,
            &now.machine.fingerprint,
        )
    })
    .or(systems)
    .or_else(|| differ("the load beside", beside(then), beside(now)))
    .or_else(|| definition(&then.plan, &now.plan))
}

fn beside(run: &Run) -> &str {
    run.beside.as_deref().unwrap_or("none")
}

fn definition(then: &Plan, now: &Plan) -> Option<String> {
    let names =
        |plan: &Plan| -> Vec<String> { plan.cases.iter().map(|case| case.name.clone()).collect() };
    if names(then) != names(now) {
        return Some(format!(
            "the definition had the cases {} and has {}",
            names(then).join(", "),
            names(now).join(", ")
        ));
    }
    let mut cases = then.cases.iter().zip(&now.cases);
    if let Some((case, _)) = cases.find(|(then, now)| then != now) {
        return Some(format!(
            "the definition of case {} is another one",
            case.name
        ));
    }
    (then != now).then(|| "the definition of the suite is another one".to_owned())
}
