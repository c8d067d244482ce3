//! `dyno pubsub status`: what is in the log, and who serves it.

use dyno_report::quantity;
use serde_json::{Map, Value, json};

use super::log::Log;
use super::topic;
use crate::args::PubsubStatusArgs;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &PubsubStatusArgs) -> anyhow::Result<Exit> {
    let mut log = Log::open(&args.place)?;
    let (topics, broker) = (log.topics()?, log.broker()?);
    if args.json {
        let broker = broker.map(|(name, counters)| {
            let counters = counters
                .into_iter()
                .map(|counter| (counter.name, json!(counter.value)));
            json!({ "name": name, "counters": counters.collect::<Map<String, Value>>() })
        });
        let topics: Vec<Value> = topics.iter().map(topic::as_json).collect();
        let all = json!({ "broker": broker, "topics": topics });
        terminal::print(&serde_json::to_string_pretty(&all)?)?;
        return Ok(Exit::Done);
    }
    let mut table = terminal::table(&[
        "topic",
        "partition",
        "records",
        "first",
        "end",
        "size",
        "broker",
    ]);
    for state in &topics {
        for one in &state.partitions {
            table.add_row([
                state.topic.name.clone(),
                one.partition.partition.to_string(),
                topic::records(&one.partition).to_string(),
                one.partition.first_offset.to_string(),
                one.partition.next_offset.to_string(),
                quantity(one.bytes as f64, "B"),
                one.partition.broker_address.clone().unwrap_or_default(),
            ]);
        }
    }
    let mut text = format!("{table}\n{}", topic::elsewhere(&topics));
    if let Some((name, counters)) = broker {
        let of = |wanted: &str| {
            let found = counters.iter().find(|counter| counter.name == wanted);
            found.map_or(0, |counter| counter.value)
        };
        text.push_str(&format!(
            "broker {name}: {} partitions, {} records in {} appends, {} fetches, {} of them behind, holds {}",
            of("partitions"),
            of("appended_records"),
            of("appends"),
            of("fetches"),
            of("fetches_behind"),
            quantity(of("memory_bytes") as f64, "B"),
        ));
    }
    terminal::print(&text)?;
    Ok(Exit::Done)
}
