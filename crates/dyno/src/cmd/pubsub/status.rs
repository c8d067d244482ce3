//! `dyno pubsub status`: what is in the log, and who serves it.

use comfy_table::Table;
use dyno_pubsub::QueueState;
use dyno_report::{counted, quantity};
use serde_json::{Map, Value, json};

use super::log::Log;
use super::topic;
use crate::args::PubsubStatusArgs;
use crate::exit::Exit;
use crate::terminal;
use crate::units::show_seconds;

pub fn run(args: &PubsubStatusArgs) -> anyhow::Result<Exit> {
    let mut log = Log::open(&args.place)?;
    let (topics, queues, broker) = (log.topics()?, log.queues()?, log.broker()?);
    if args.json {
        let broker = broker.map(|(name, counters)| {
            let counters = counters
                .into_iter()
                .map(|counter| (counter.name, json!(counter.value)));
            json!({ "name": name, "counters": counters.collect::<Map<String, Value>>() })
        });
        let topics: Vec<Value> = topics.iter().map(topic::as_json).collect();
        let queues: Vec<Value> = queues.iter().map(queue_as_json).collect();
        let all = json!({ "broker": broker, "topics": topics, "queues": queues });
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
    if !queues.is_empty() {
        text.push_str(&format!("{}\n", queue_table(&queues)));
    }
    if let Some((name, counters)) = broker {
        let of = |wanted: &str| {
            let found = counters.iter().find(|counter| counter.name == wanted);
            found.map_or(0, |counter| counter.value)
        };
        text.push_str(&format!(
            "broker {name}: {}, {} in {}, fetches: {}, of which behind: {}, holds {}",
            counted(of("partitions"), "partition"),
            counted(of("appended_records"), "record"),
            counted(of("appends"), "append"),
            of("fetches"),
            of("fetches_behind"),
            quantity(of("memory_bytes") as f64, "B"),
        ));
    }
    terminal::print(&text)?;
    Ok(Exit::Done)
}

fn queue_table(queues: &[QueueState]) -> Table {
    let mut table = terminal::table(&[
        "queue", "ready", "delayed", "claimed", "dead", "done", "oldest",
    ]);
    for QueueState { queue, stats } in queues {
        let oldest = stats.oldest_ms.map(|ms| show_seconds(ms as f64 / 1e3));
        table.add_row([
            queue.clone(),
            stats.ready.to_string(),
            stats.delayed.to_string(),
            stats.claimed.to_string(),
            stats.dead.to_string(),
            stats.done.to_string(),
            oldest.unwrap_or_default(),
        ]);
    }
    table
}

fn queue_as_json(state: &QueueState) -> Value {
    let stats = &state.stats;
    json!({
        "queue": state.queue,
        "ready": stats.ready,
        "delayed": stats.delayed,
        "claimed": stats.claimed,
        "dead": stats.dead,
        "done": stats.done,
        "oldest_ms": stats.oldest_ms,
    })
}
