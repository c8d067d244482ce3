//! The SQL engine, a program of its own beside this one.

use std::process::Command;

/// A command that starts it.
pub fn command() -> anyhow::Result<Command> {
    Ok(dyno_rigs::sql_engine()?)
}
