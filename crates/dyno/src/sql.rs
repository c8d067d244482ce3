//! The SQL engine, a program of its own beside this one.

use std::env;
use std::process::Command;

use anyhow::{Context, bail};

/// A command that starts it.
pub fn command() -> anyhow::Result<Command> {
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
    Ok(Command::new(program))
}
