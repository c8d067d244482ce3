//! `dyno pubsub group`: who reads a topic, and how far behind.

use anyhow::Context;
use dyno_pubsub::{Code, Error, GroupState, Lag};
use serde_json::{Value, json};

use super::log::Log;
use crate::args::PubsubGroupArgs;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &PubsubGroupArgs) -> anyhow::Result<Exit> {
    let mut groups = Log::open(&args.place)?.groups(&args.topic)?;
    if let Some(wanted) = &args.group {
        groups.retain(|state| &state.group == wanted);
        if groups.is_empty() {
            let text = format_args!("topic {:?} has no group {wanted:?}", args.topic);
            return Err(Error::new(Code::UnknownGroup, text).into());
        }
    }
    let text = if args.json {
        let all: Vec<Value> = groups.iter().map(as_json).collect();
        serde_json::to_string_pretty(&all).context("cannot print groups")?
    } else {
        as_text(&groups)
    };
    terminal::print(&text)?;
    Ok(Exit::Done)
}

fn as_text(groups: &[GroupState]) -> String {
    let mut table = terminal::table(&[
        "group",
        "partition",
        "member",
        "committed",
        "end",
        "lag",
        "redelivered",
        "lost",
    ]);
    for state in groups {
        for one in &state.partitions {
            table.add_row([
                state.group.clone(),
                one.partition.to_string(),
                one.member.clone().unwrap_or_default(),
                one.committed.to_string(),
                one.next_offset.to_string(),
                one.lag.to_string(),
                one.redelivered.to_string(),
                one.lost.to_string(),
            ]);
        }
    }
    let lags = groups
        .iter()
        .map(|state| format!("{}: {} behind", state.group, state.lag()));
    format!("{table}\n{}", lags.collect::<Vec<_>>().join("\n"))
}

fn as_json(state: &GroupState) -> Value {
    let partition = |one: &Lag| {
        json!({
            "partition": one.partition,
            "member": one.member,
            "generation": one.generation,
            "committed": one.committed,
            "next_offset": one.next_offset,
            "lag": one.lag,
            "redelivered": one.redelivered,
            "lost": one.lost,
        })
    };
    json!({
        "group": state.group,
        "lag": state.lag(),
        "partitions": state.partitions.iter().map(partition).collect::<Vec<_>>(),
    })
}
