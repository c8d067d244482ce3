//! `dyno pubsub ...`: the log's own commands.

mod bench;
mod check;
mod consume;
mod group;
mod install;
mod lines;
pub mod log;
mod message_json;
mod produce;
mod queue;
mod receipts;
mod serve;
mod status;
mod topic;
mod unanswered;

use anyhow::anyhow;
use dyno_pubsub::{Error, Retry};
use dyno_suite::Stop;

use crate::args::{PubsubArgs, PubsubCommand};
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &PubsubArgs, stop: &Stop) -> anyhow::Result<Exit> {
    match &args.command {
        // These commands own servers, which they must stop in order, so they are not ended early.
        PubsubCommand::Serve(_)
        | PubsubCommand::Bench(_)
        | PubsubCommand::Check(_)
        | PubsubCommand::CheckJob(_) => {}
        _ => unanswered::end_when_stopped(stop)?,
    }
    let done = match &args.command {
        PubsubCommand::Serve(args) => serve::run(args, stop),
        PubsubCommand::Install(args) => install::run(args),
        PubsubCommand::Topic(args) => topic::run(args),
        PubsubCommand::Produce(args) => produce::run(args, stop),
        PubsubCommand::Consume(args) => consume::run(args, stop),
        PubsubCommand::Group(args) => group::run(args),
        PubsubCommand::Queue(args) => queue::run(args, stop),
        PubsubCommand::Status(args) => status::run(args),
        PubsubCommand::Bench(args) => bench::run(args, stop),
        PubsubCommand::Check(args) => check::run(args, stop),
        PubsubCommand::CheckJob(args) => check::job(args),
    };
    done.map_err(with_retry)
}

/// Adds to an error of the log whether the command may be run again.
fn with_retry(error: anyhow::Error) -> anyhow::Error {
    let of_log = error.chain().find_map(|e| e.downcast_ref::<Error>());
    match of_log.map(Error::retry) {
        Some(retry) => anyhow!("{}; {}", terminal::explain(&error), advice(retry)),
        None => error,
    }
}

fn advice(retry: Retry) -> &'static str {
    match retry {
        Retry::Safe => "a retry is safe",
        Retry::Never => "a retry is of no use",
        Retry::Unknown => "it may have been done: look before a retry",
    }
}
