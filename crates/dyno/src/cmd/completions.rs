//! `dyno completions SHELL`: prints a script that completes commands and flags.

use crate::args::CompletionsArgs;
use crate::command_line;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &CompletionsArgs) -> anyhow::Result<Exit> {
    // Generated into memory first: the generator panics when it cannot write, as to a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut command_line::command(),
        "dyno",
        &mut script,
    );
    terminal::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
