//! Independent tools on this machine.

use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::usage::{ChildLimits, ChildRun, run_child};

/// Longest run of a tool.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Where a program lies on the PATH.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let paths = env::var_os("PATH")?;
    env::split_paths(&paths)
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
}

/// Runs a tool to its end; a tool that fails gives its last word on the matter.
pub(super) fn run(command: Command) -> Result<ChildRun, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let run = run_child(command, b"", ChildLimits::time(TIME_LIMIT)).map_err(|e| e.to_string())?;
    if run.hung {
        return Err(format!(
            "{name} did not end within {} s",
            TIME_LIMIT.as_secs()
        ));
    }
    if !run.exit.success() {
        let word = run
            .stderr
            .last_line()
            .or_else(|| run.stdout.last_line())
            .unwrap_or_default();
        return Err(format!("{name} ended with {}: {word}", run.exit));
    }
    Ok(run)
}
