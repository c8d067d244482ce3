//! `dyno pubsub consume`: records to standard output, as a member of a group or without one.

mod member;
mod output;
mod patience;
mod ungrouped;

use std::time::Duration;

use dyno_pubsub::ConsumerOptions;
use dyno_suite::Stop;

use super::log;
use crate::args::PubsubConsumeArgs;
use crate::exit::Exit;

/// How long a poll waits for records, and so how late a request to stop is noticed.
const WAIT: Duration = Duration::from_millis(200);

pub fn run(args: &PubsubConsumeArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let options = ConsumerOptions {
        member: args.member.clone(),
        start: args.from,
        lease: args.lease,
        token: log::token(&args.place)?,
        tls: log::tls(&args.place)?,
        ..ConsumerOptions::default()
    };
    match &args.group {
        Some(group) => member::run(args, group, options, stop)?,
        None => ungrouped::run(args, &options, stop)?,
    }
    Ok(Exit::Done)
}
