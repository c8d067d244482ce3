//! `dyno run SUITE...`: plan, run, report.

use anyhow::bail;
use dyno_suite::Stop;

use crate::args::RunArgs;
use crate::built_in;
use crate::exit::Exit;
use crate::session::{Print, Session};

pub fn run(args: &RunArgs, stop: &Stop) -> anyhow::Result<Exit> {
    if args.select.suites.is_empty() {
        // Listed on stderr, because a script that reads the report from stdout gets no report here.
        eprint!("{}", built_in::listed(&args.select)?);
        bail!("name a suite to run, such as `dyno run wspr --tiny`");
    }
    let session = Session {
        size: args.select.size.size(),
        peers: args.select.peers.then_some(&args.select.peers_from),
        data_dir: args.select.data_dir.as_deref(),
        max_disk: args.select.max_disk,
        beside: args.beside.as_deref(),
        why: args.why,
        report_every: args.report_every,
        budget: args.budget,
        measure_limits: args.measure_limits,
        out: &args.out,
        print: Print::new(args.json),
        command: None,
    };
    Ok(session.run(&built_in::suites(&args.select)?, stop)?.exit)
}
