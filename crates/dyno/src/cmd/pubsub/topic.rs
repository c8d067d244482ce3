//! `dyno pubsub topic`: making, changing, removing and listing topics.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::bail;
use dyno_pubsub::{RetentionState, TopicChanges, TopicOptions, TopicState};
use dyno_report::{counted, quantity};
use serde_json::{Value, json};

use super::log::Log;
use crate::args::{
    PubsubRetentionArgs, PubsubStatusArgs, PubsubTopicAlterArgs, PubsubTopicArgs,
    PubsubTopicCommand, PubsubTopicCreateArgs,
};
use crate::exit::Exit;
use crate::terminal;
use crate::units::show_seconds;

pub fn run(args: &PubsubTopicArgs) -> anyhow::Result<Exit> {
    match &args.command {
        PubsubTopicCommand::Create(args) => create(args)?,
        PubsubTopicCommand::Alter(args) => alter(args)?,
        PubsubTopicCommand::Drop(args) => {
            Log::open(&args.place)?.drop_topic(&args.name)?;
            terminal::print(&format!("topic {} is gone", args.name))?;
        }
        PubsubTopicCommand::List(args) => list(args)?,
    }
    Ok(Exit::Done)
}

fn create(args: &PubsubTopicCreateArgs) -> anyhow::Result<()> {
    let retention = &args.retention;
    let kept = |value: Option<i64>| value.filter(|value| *value != -1);
    let options = TopicOptions {
        partitions: args.partitions,
        compression: args.compression,
        retention_ms: kept(retention_ms(retention)),
        retention_bytes: kept(retention_bytes(retention)),
        range_records: retention
            .range_records
            .unwrap_or(TopicOptions::default().range_records),
        retain_for_groups: retention.retain_for_groups.unwrap_or(false),
        partitioner: args.partitioner,
    };
    check_name(&args.name)?;
    let mut log = Log::open(&args.place)?;
    let (name, partitions) = (&args.name, counted(u64::from(args.partitions), "partition"));
    if args.add_cluster.is_empty() {
        log.create_topic(name, &options)?;
        return terminal::print(&format!("topic {name} has {partitions}"));
    }
    log.create_placed_topic(name, &options, &args.add_cluster)?;
    let clusters: Vec<&str> = args
        .add_cluster
        .iter()
        .map(|cluster| &cluster.name[..])
        .collect();
    let clusters = clusters.join(", ");
    terminal::print(&format!(
        "topic {name} has {partitions}, in turn on this server and on {clusters}"
    ))
}

fn alter(args: &PubsubTopicAlterArgs) -> anyhow::Result<()> {
    let changes = TopicChanges {
        partitions: args.partitions,
        retention_ms: retention_ms(&args.retention),
        retention_bytes: retention_bytes(&args.retention),
        range_records: args.retention.range_records,
        retain_for_groups: args.retention.retain_for_groups,
        ..TopicChanges::default()
    };
    if changes == TopicChanges::default() {
        bail!(
            "say what is to change: --partitions, --retention, --retention-bytes, --range-records or --retain-for-groups"
        );
    }
    Log::open(&args.place)?.alter_topic(&args.name, &changes)?;
    terminal::print(&format!("topic {} is changed", args.name))
}

/// Checks a name by the rule of the schema, so that a mistake is reported before a connection is
/// made.
fn check_name(name: &str) -> anyhow::Result<()> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=100).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    bail!(
        "{name:?} cannot be the name of a topic: it is 1 to 100 of the characters a-z, A-Z, 0-9, \".\", \"_\" and \"-\""
    )
}

/// Retention in milliseconds; -1 keeps records forever, `None` leaves it as it is.
fn retention_ms(args: &PubsubRetentionArgs) -> Option<i64> {
    let ms = args.retention?.as_millis();
    Some(if ms == 0 {
        -1
    } else {
        i64::try_from(ms).unwrap_or(i64::MAX)
    })
}

/// Retention in bytes of a partition; -1 sets no limit, `None` leaves it as it is.
fn retention_bytes(args: &PubsubRetentionArgs) -> Option<i64> {
    let bytes = args.retention_bytes?;
    Some(if bytes == 0 {
        -1
    } else {
        i64::try_from(bytes).unwrap_or(i64::MAX)
    })
}

fn list(args: &PubsubStatusArgs) -> anyhow::Result<()> {
    let mut log = Log::open(&args.place)?;
    let (topics, retained) = (log.topics()?, log.retention()?);
    if args.json {
        let topics: Vec<Value> = topics
            .iter()
            .map(|state| with_retention(state, &retained))
            .collect();
        return terminal::print(&serde_json::to_string_pretty(&topics)?);
    }
    let mut table = terminal::table(&[
        "topic",
        "partitions",
        "records",
        "size",
        "oldest",
        "compression",
        "retention",
    ]);
    for state in &topics {
        let records: i64 = state
            .partitions
            .iter()
            .map(|state| records(&state.partition))
            .sum();
        let bytes: i64 = state.partitions.iter().map(|state| state.bytes).sum();
        table.add_row([
            state.topic.name.clone(),
            state.topic.options.partitions.to_string(),
            records.to_string(),
            quantity(bytes as f64, "B"),
            age_of_oldest(&state.topic.name, &retained),
            state.topic.options.compression.name().to_owned(),
            retention(&state.topic.options),
        ]);
    }
    terminal::print(format!("{table}\n{}", elsewhere(&topics)).trim_end())
}

/// A line for each cluster that holds partitions which are not on this server.
pub fn elsewhere(topics: &[TopicState]) -> String {
    let mut lines = String::new();
    for state in topics {
        for (cluster, partitions) in &state.elsewhere {
            let numbers: Vec<String> = partitions.iter().map(ToString::to_string).collect();
            let (name, numbers) = (&state.topic.name, numbers.join(", "));
            lines.push_str(&format!(
                "topic {name}: partitions {numbers} are on cluster {cluster}\n"
            ));
        }
    }
    lines
}

/// How many records the partition holds.
pub fn records(partition: &dyno_pubsub::Partition) -> i64 {
    partition.next_offset - partition.first_offset
}

/// How long ago the oldest remaining record of a topic was appended, by this machine's clock. Empty
/// if the topic has no record.
fn age_of_oldest(topic: &str, retained: &[RetentionState]) -> String {
    let of_topic = retained.iter().filter(|retained| retained.topic == topic);
    let oldest = of_topic.filter_map(|retained| retained.oldest_at_us).min();
    let Some(oldest_at_us) = oldest else {
        return String::new();
    };
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    show_seconds((now.as_secs_f64() - oldest_at_us as f64 / 1e6).max(0.0))
}

/// A topic as `topic list` prints it: with what its partitions hold.
fn with_retention(state: &TopicState, retained: &[RetentionState]) -> Value {
    let mut value = as_json(state);
    for (one, partition) in state.partitions.iter().zip(0..) {
        let same = |retained: &&RetentionState| {
            retained.topic == state.topic.name && retained.partition == one.partition.partition
        };
        if let Some(retained) = retained.iter().find(same) {
            value["partitions"][partition]["ranges"] = json!(retained.ranges);
            value["partitions"][partition]["oldest_at_us"] = json!(retained.oldest_at_us);
        }
    }
    value
}

fn retention(options: &TopicOptions) -> String {
    let mut limits = Vec::new();
    if let Some(ms) = options.retention_ms {
        limits.push(show_seconds(ms as f64 / 1e3));
    }
    if let Some(bytes) = options.retention_bytes {
        limits.push(format!("{} a partition", quantity(bytes as f64, "B")));
    }
    if limits.is_empty() {
        return "for ever".to_owned();
    }
    if options.retain_for_groups {
        limits.push("and what groups have not read".to_owned());
    }
    limits.join(", ")
}

/// A topic with its partitions, as `topic list` and `status` print it.
pub fn as_json(state: &TopicState) -> Value {
    let options = &state.topic.options;
    let partitions = state.partitions.iter().map(|state| {
        json!({
            "partition": state.partition.partition,
            "first_offset": state.partition.first_offset,
            "next_offset": state.partition.next_offset,
            "bytes": state.bytes,
            "epoch": state.partition.epoch,
            "broker": state.partition.broker_address,
        })
    });
    let elsewhere = state
        .elsewhere
        .iter()
        .map(|(cluster, partitions)| json!({ "cluster": cluster, "partitions": partitions }));
    json!({
        "elsewhere": elsewhere.collect::<Vec<_>>(),
        "topic": state.topic.name,
        "compression": options.compression.name(),
        "retention_ms": options.retention_ms,
        "retention_bytes": options.retention_bytes,
        "range_records": options.range_records,
        "retain_for_groups": options.retain_for_groups,
        "partitioner": options.partitioner.name(),
        "partitions": partitions.collect::<Vec<_>>(),
    })
}
