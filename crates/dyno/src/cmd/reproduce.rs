//! `dyno reproduce RUN#CASE`: runs one case of a record again and says whether it agrees.

use std::time::Duration;

use anyhow::{Context, bail};
use dyno_record::{Arm, StoredRun};
use dyno_report::{Agreement, reproduce};
use dyno_suite::{Error, Selection, Stop};

use crate::args::ReproduceArgs;
use crate::built_in;
use crate::exit::Exit;
use crate::session::{Print, Session};
use crate::{runs, terminal};

/// Time between two lines of progress where no bar is shown.
const REPORT_EVERY: Duration = Duration::from_secs(30);

pub fn run(args: &ReproduceArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let recorded = runs::open(&args.record.run)?;
    let plan = &recorded.run.plan;
    let names: Vec<&str> = plan.cases.iter().map(|case| case.name.as_str()).collect();
    let Some(case) = plan.cases.iter().find(|one| one.name == args.record.case) else {
        return Err(Error::unknown("case of the run", &args.record.case, &names).into());
    };
    // A bench command has no suite that could be found by name; its own command line is the way to
    // repeat it.
    if let Some(command) = &recorded.run.command {
        bail!("the run is not of a suite but of a command; run that again: {command}");
    }
    let beside_all = |run: &StoredRun| {
        let mut arms = run.samples.iter().map(|sample| sample.arm);
        run.run.beside.is_some() && arms.all(|arm| arm != Arm::Beside)
    };
    if beside_all(&recorded) {
        bail!(
            "the run is of an earlier version, which ran its load beside every sample; this one \
             runs each system alone and beside it, so the two cannot be compared"
        );
    }
    let mut suite = built_in::suite(&plan.suite, args.suites_dir.as_deref())?;
    suite.set(&plan.set)?;
    suite.select(Selection {
        only: vec![case.name.clone()],
        skip: Vec::new(),
    });
    let session = Session {
        size: plan.size,
        // Peers run again only if the case had some. Ratios to a peer that was not there could not
        // be compared.
        peers: case.peers().next().is_some().then_some(&args.peers_from),
        data_dir: args.data_dir.as_deref(),
        max_disk: None,
        beside: recorded.run.beside.as_deref(),
        why: !case.experiments.is_empty(),
        flamegraph: false,
        report_every: Some(REPORT_EVERY),
        budget: args.budget,
        measure_limits: false,
        out: &args.out,
        resume: None,
        print: Print::Nothing,
        command: None,
    };
    let ran = session.run(&[suite], stop)?;
    if stop.asked() {
        return Ok(Exit::Failure);
    }
    let directory = ran.records.first().context("no record was written")?;
    let again = runs::open(directory)?;
    let found = match reproduce(&recorded, &again, &case.name) {
        Ok(found) => found,
        Err(reason) => bail!("cannot compare: {reason}"),
    };
    terminal::print(&if args.json {
        serde_json::to_string_pretty(&found)?
    } else {
        found.to_text()
    })?;
    Ok(match found.agreement {
        Agreement::Agrees => Exit::Done,
        Agreement::Disagrees => Exit::No,
        Agreement::CannotTell => Exit::NotEnoughEvidence,
    })
}
