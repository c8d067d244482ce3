//! `dyno ingest query`: hands the question to `dyno-sql`, which lies beside this program.

use std::env;
use std::process::Command;

use anyhow::{Context, bail};

use crate::args::QueryArgs;
use crate::exit::Exit;

pub fn run(args: &QueryArgs) -> anyhow::Result<Exit> {
    let program = env::current_exe()
        .context("cannot find this program's own path")?
        .with_file_name("dyno-sql");
    if !program.is_file() {
        bail!(
            "the SQL engine {} is missing; build it with `cargo build --release -p dyno-sql`, \
             which takes about 20 minutes on two cores",
            program.display()
        );
    }
    let mut command = Command::new(&program);
    command.arg("query").arg(&args.table).arg(&args.sql);
    command.args(["--format", args.format.name()]);
    if let Some(threads) = args.threads {
        command.args(["--threads", &threads.to_string()]);
    }
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    // It has said by itself what went wrong.
    Ok(if status.success() {
        Exit::Done
    } else {
        Exit::Failure
    })
}
