//! `dyno pubsub group`: who reads a topic and how far behind, setting groups to another place,
//! deleting them.

use std::collections::BTreeSet;

use anyhow::Context;
use dyno_pubsub::{Code, Error, GroupState, Lag, Reset};
use serde_json::{Value, json};

use super::log::Log;
use crate::args::{PubsubGroupArgs, PubsubGroupCommand, PubsubGroupResetArgs};
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &PubsubGroupArgs) -> anyhow::Result<Exit> {
    match &args.command {
        Some(PubsubGroupCommand::Reset(args)) => reset(args)?,
        Some(PubsubGroupCommand::Delete(args)) => {
            Log::open(&args.place)?.drop_group(&args.topic, &args.group, args.force)?;
            let (group, topic) = (&args.group, &args.topic);
            terminal::print(&format!("group {group} of topic {topic} is gone"))?;
        }
        None => match &args.topic {
            Some(topic) => show_topic(args, topic)?,
            None => all(args)?,
        },
    }
    Ok(Exit::Done)
}

fn reset(args: &PubsubGroupResetArgs) -> anyhow::Result<()> {
    let reset = Reset {
        to: args.to,
        partition: args.partition,
        force: args.force,
    };
    let moved = Log::open(&args.place)?.reset_group(&args.topic, &args.group, &reset)?;
    if args.json {
        let all = moved.iter().map(|moved| {
            json!({ "partition": moved.partition, "was": moved.was, "committed": moved.committed })
        });
        return terminal::print(&serde_json::to_string_pretty(&all.collect::<Vec<_>>())?);
    }
    let mut table = terminal::table(&["partition", "was", "is"]);
    for moved in &moved {
        table.add_row([
            moved.partition.to_string(),
            moved.was.map(|was| was.to_string()).unwrap_or_default(),
            moved.committed.to_string(),
        ]);
    }
    terminal::print(&table.to_string())
}

/// A line for each group of each topic.
fn all(args: &PubsubGroupArgs) -> anyhow::Result<()> {
    let groups = Log::open(&args.place)?.all_groups()?;
    if args.json {
        let all = groups.iter().map(|(topic, state)| {
            let mut of_group = as_json(state);
            of_group["topic"] = json!(topic);
            of_group
        });
        return terminal::print(&serde_json::to_string_pretty(&all.collect::<Vec<_>>())?);
    }
    let mut table = terminal::table(&["topic", "group", "partitions", "members", "lag", "lost"]);
    for (topic, state) in &groups {
        let members = state
            .partitions
            .iter()
            .filter_map(|one| one.member.as_ref());
        let lost: i64 = state.partitions.iter().map(|one| one.lost).sum();
        table.add_row([
            topic.clone(),
            state.group.clone(),
            state.partitions.len().to_string(),
            members.collect::<BTreeSet<_>>().len().to_string(),
            state.lag().to_string(),
            lost.to_string(),
        ]);
    }
    terminal::print(&table.to_string())
}

fn show_topic(args: &PubsubGroupArgs, topic: &str) -> anyhow::Result<()> {
    let mut groups = Log::open(&args.place)?.groups(topic)?;
    if let Some(wanted) = &args.group {
        groups.retain(|state| &state.group == wanted);
        if groups.is_empty() {
            let text = format_args!("topic {topic:?} has no group {wanted:?}");
            return Err(Error::new(Code::UnknownGroup, text).into());
        }
    }
    let text = if args.json {
        let all: Vec<Value> = groups.iter().map(as_json).collect();
        serde_json::to_string_pretty(&all).context("cannot print groups")?
    } else {
        as_text(&groups)
    };
    terminal::print(&text)
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
