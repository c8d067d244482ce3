//! `dyno run SUITE...`: plan, run, report.

use anyhow::bail;
use dyno_record::CasePlan;
use dyno_suite::Stop;

use crate::args::RunArgs;
use crate::exit::Exit;
use crate::session::{Print, Session};
use crate::{built_in, resume};

pub fn run(args: &RunArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let session = Session {
        size: args.select.size.size(),
        peers: args.select.peers.then_some(&args.select.peers_from),
        data_dir: args.select.data_dir.as_deref(),
        max_disk: args.select.max_disk,
        beside: args.beside.as_deref(),
        why: args.why,
        flamegraph: args.flamegraph,
        report_every: (!args.quiet).then_some(args.report_every),
        budget: args.budget,
        measure_limits: args.measure_limits,
        out: &args.out,
        resume: args.resume.as_deref(),
        print: Print::new(args.json),
        command: None,
    };
    if let Some(record) = &args.resume {
        let (suite, run) = resume::suite(record, args)?;
        // A run with `--peers` names every peer that it asked for, those missing as well.
        let with_peers = run.systems.len() > 1;
        let session = Session {
            size: run.plan.size,
            peers: with_peers.then_some(&args.select.peers_from),
            beside: run.beside.as_deref(),
            // A record of `--why` has experiments in its cases, or says why it has none.
            why: args.why || run.plan.cases.iter().any(was_asked_why),
            ..session
        };
        return Ok(session.run(&[suite], stop)?.exit);
    }
    if args.select.suites.is_empty() {
        // Listed on stderr, because a script that reads the report from stdout gets no report here.
        eprint!("{}", built_in::listed(&args.select)?);
        bail!("name a suite to run, such as `dyno run wspr --tiny`");
    }
    Ok(session.run(&built_in::suites(&args.select)?, stop)?.exit)
}

fn was_asked_why(case: &CasePlan) -> bool {
    !case.experiments.is_empty() || !case.untried.is_empty()
}
