//! `dyno man DIR`.

use std::fs;

use anyhow::Context;
use clap::CommandFactory;

use crate::args::{Args, ManArgs};
use crate::exit::Exit;

pub fn run(args: &ManArgs) -> anyhow::Result<Exit> {
    let dir = &args.dir;
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    clap_mangen::generate_to(Args::command(), dir)
        .with_context(|| format!("cannot write manual pages to {}", dir.display()))?;
    Ok(Exit::Done)
}
