//! `dyno completions SHELL`.

use crate::args::CompletionsArgs;
use crate::command_line;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &CompletionsArgs) -> anyhow::Result<Exit> {
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
