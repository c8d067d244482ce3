//! Reading without a group: nothing is stored in the log, so the reader itself keeps its positions.

use anyhow::bail;
use dyno_pubsub::{ConsumerOptions, PartitionEnds, Position, Reader};
use dyno_suite::Stop;

use super::output::Output;
use super::patience::Patience;
use super::{WAIT, log};
use crate::args::PubsubConsumeArgs;

pub fn run(args: &PubsubConsumeArgs, options: &ConsumerOptions, stop: &Stop) -> anyhow::Result<()> {
    let address = log::address(&args.place)?;
    let reader = Reader::open(address, &args.topic, options);
    let mut reader = reader.map_err(|error| log::without_broker(&args.place, error))?;
    let ends = wanted(args, &mut reader)?;
    let end = |partition: i32| {
        let of_partition = ends.iter().find(|ends| ends.partition == partition);
        of_partition.map_or(0, |ends| ends.next_offset)
    };
    let mut positions = Vec::with_capacity(ends.len());
    for ends in &ends {
        positions.push(Position {
            partition: ends.partition,
            offset: begin(args, &mut reader, ends)?,
        });
    }
    let mut output = Output::new(args);
    let mut patience = Patience::default();
    while !output.is_complete() && !stop.asked() {
        if args.until_empty {
            positions.retain(|at| at.offset < end(at.partition));
            if positions.is_empty() {
                break;
            }
        }
        let mut messages = match reader.read(&positions, options.fetch_bytes, WAIT) {
            Ok(messages) => messages,
            Err(failed) => {
                patience.bear(failed.error)?;
                continue;
            }
        };
        patience.renew();
        if args.until_empty {
            messages.retain(|message| message.offset < end(message.partition));
        }
        for message in output.write(&messages)? {
            let mut at = positions.iter_mut();
            if let Some(at) = at.find(|at| at.partition == message.partition) {
                at.offset = message.offset + 1;
            }
        }
    }
    Ok(())
}

/// The partitions to read, with their ends as they are now.
fn wanted(args: &PubsubConsumeArgs, reader: &mut Reader) -> anyhow::Result<Vec<PartitionEnds>> {
    let mut ends = reader.ends()?;
    let Some(partition) = args.partition else {
        return Ok(ends);
    };
    ends.retain(|ends| ends.partition == partition);
    if ends.is_empty() {
        let (topic, highest) = (&args.topic, reader.attached()? - 1);
        bail!("topic {topic:?} has no partition {partition}: they are numbered 0 to {highest}");
    }
    Ok(ends)
}

/// The offset from which a partition is read.
fn begin(
    args: &PubsubConsumeArgs,
    reader: &mut Reader,
    ends: &PartitionEnds,
) -> dyno_pubsub::Result<i64> {
    match args.last {
        None => reader.offset_of(args.from, ends),
        Some(last) => {
            let last = i64::try_from(last).unwrap_or(i64::MAX);
            let before_end = ends.next_offset.saturating_sub(last);
            Ok(before_end.max(ends.first_offset))
        }
    }
}
