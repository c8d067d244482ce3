//! `dyno rig`: a child of the lab. One JSON request on stdin, one JSON reply on stdout.

use std::io;

use anyhow::Context;
use dyno_suite::protocol::Request;

use crate::args::RigArgs;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &RigArgs) -> anyhow::Result<Exit> {
    let request: Request =
        serde_json::from_reader(io::stdin().lock()).context("stdin holds no request of the lab")?;
    // The reply is the last line of stdout. Everything that a rig says besides goes to stderr,
    // which the parent shows as progress.
    terminal::print(&dyno_rigs::answer(&request, args.speak_as.as_deref())?)?;
    Ok(Exit::Done)
}
