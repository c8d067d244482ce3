//! `dyno beside`: keeps a part of the machine busy until it is killed.
//!
//! The runner starts it in a process group of its own and kills the group after the sample. A shell
//! command goes through it as well, so that it too ends when the runner is killed and can end
//! nothing any more.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, bail};
use dyno_machine::{BuiltInLoad, Root, end_with_parent};

use crate::args::{BesideArgs, BesideLoad};
use crate::exit::Exit;

pub fn run(args: &BesideArgs) -> anyhow::Result<Exit> {
    end_with_parent();
    let load = match &args.load {
        BesideLoad::Cpu => BuiltInLoad::Cpu,
        BesideLoad::Memory => BuiltInLoad::Memory,
        BesideLoad::Disk => BuiltInLoad::Disk,
        BesideLoad::Shell { command } => return shell(command),
    };
    // It is killed and never asked to stop.
    load.run(&Root::system(), Path::new("."), &AtomicBool::new(false))?;
    Ok(Exit::Done)
}

fn shell(command: &str) -> anyhow::Result<Exit> {
    // Without a group of its own the shell is in ours, which the runner kills.
    let status = Command::new("sh").arg("-c").arg(command).status();
    let status = status.context("cannot start sh")?;
    bail!("the command ended with {status}");
}
