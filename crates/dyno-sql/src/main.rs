//! `dyno-sql`: answers SQL on the tables of `dyno ingest` and `dyno tpch`. `dyno` starts it as a
//! child.

#[macro_use]
extern crate dyno_messages;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use dyno_sql::args::tpch::TpchCommand;
use dyno_sql::args::{Cli, Command};
use dyno_sql::cmd;
use dyno_sql::cmd::tpch::Verdict;
use dyno_sql::error_text;

/// Keeps memory that a query has given back, which a process whose queries take gigabytes asks for
/// again; glibc's returns it to the kernel, to have it zeroed and mapped anew page by page. It asks
/// for no huge pages: they make a query's first run slower, and most queries run once.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit code of data or answers that are not what they should be.
const WRONG: u8 = 1;
/// Exit code of misuse and failure.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Wrong) => ExitCode::from(WRONG),
        // A reader such as `head` closes the pipe when it has seen enough; that is not a failure.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dyno-sql: {}", error_text::explain(&error));
            ExitCode::from(FAILED)
        }
    }
}

fn run(cli: Cli) -> Result<Verdict> {
    match cli.command {
        Command::Query(args) => {
            let runtime = runtime(args.limits.limits().threads)?;
            let result = runtime.block_on(cmd::query::run(args, Box::new(io::stdout())));
            // After a time limit or Ctrl-C the query may still compute for seconds between two
            // points where it can be cancelled. Dropping the runtime would wait for that; the
            // process ends it.
            runtime.shutdown_background();
            result?;
        }
        Command::Serve(args) => cmd::serve::run(&args)?,
        Command::Bench(args) => {
            let runtime = runtime(args.limits.limits().threads)?;
            runtime.block_on(cmd::bench::run(args, &mut io::stdout()))?;
        }
        Command::Features(args) => {
            let runtime = runtime(args.limits.limits().threads)?;
            let result = runtime.block_on(cmd::features::run(args, &mut io::stdout()));
            // As for a query: Ctrl-C does not wait for a sort.
            runtime.shutdown_background();
            result?;
        }
        Command::Tpch(TpchCommand::Query(args)) => {
            let runtime = runtime(args.source.limits.limits().threads)?;
            let result = runtime.block_on(cmd::tpch::query::run(args, &mut io::stdout()));
            runtime.shutdown_background();
            return result;
        }
        Command::Tpch(TpchCommand::Verify(args)) => {
            let runtime = runtime(args.source.limits.limits().threads)?;
            let result = runtime.block_on(cmd::tpch::verify::run(args, &mut io::stdout()));
            runtime.shutdown_background();
            return result;
        }
        Command::Tpch(TpchCommand::Write) => {
            dyno_tpch_files::serve(dyno_tpch_baseline::run)
                .context("standard input is not the socket of `dyno tpch gen`")?;
        }
        Command::Readback(command) => cmd::readback::run(command, io::stdout())?,
        Command::Version => {
            writeln!(
                io::stdout(),
                "dyno-sql {} (DataFusion {})",
                env!("CARGO_PKG_VERSION"),
                datafusion::DATAFUSION_VERSION
            )
            .context("cannot write to stdout")?;
        }
    }
    Ok(Verdict::Good)
}

fn runtime(threads: usize) -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .context("cannot start the query's threads")
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}
