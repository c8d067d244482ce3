//! `dyno man DIR`: writes a manual page for each command.

use std::fs;

use crate::args::ManArgs;
use crate::command_line;
use crate::exit::Exit;
use anyhow::Context;

pub fn run(args: &ManArgs) -> anyhow::Result<Exit> {
    let dir = &args.dir;
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    clap_mangen::generate_to(command_line::command(), dir)
        .with_context(|| format!("cannot write manual pages to {}", dir.display()))?;
    Ok(Exit::Done)
}
