//! Reading without a group: nothing is stored in the log, so the reader itself keeps its positions.

use anyhow::bail;
use dyno_pubsub::{ConsumerOptions, Position, Reader};
use dyno_suite::Stop;

use super::output::Output;
use super::patience::Patience;
use super::{WAIT, log};
use crate::args::PubsubConsumeArgs;

pub fn run(args: &PubsubConsumeArgs, options: &ConsumerOptions, stop: &Stop) -> anyhow::Result<()> {
    let address = log::address(&args.place)?;
    let reader = Reader::open(address, &args.topic, options);
    let mut reader = reader.map_err(|error| log::without_broker(&args.place, error))?;
    // Read before the first position is: what is appended in between is not part of what was there
    // at the start.
    let ends = reader.ends()?;
    let end = |partition: i32| {
        let of_partition = ends.iter().find(|ends| ends.partition == partition);
        of_partition.map_or(0, |ends| ends.next_offset)
    };
    let mut positions = begin(args, &mut reader)?;
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

/// Where each partition that is wanted is read from.
fn begin(args: &PubsubConsumeArgs, reader: &mut Reader) -> anyhow::Result<Vec<Position>> {
    let partitions = reader.attached()?;
    let wanted = |partition: i32| args.partition.is_none_or(|only| only == partition);
    let mut positions = match args.last {
        None => reader.positions(args.from)?,
        Some(last) => {
            let last = i64::try_from(last).unwrap_or(i64::MAX);
            let before_end = reader.ends()?.into_iter().map(|ends| Position {
                partition: ends.partition,
                offset: ends.next_offset.saturating_sub(last).max(ends.first_offset),
            });
            before_end.collect()
        }
    };
    positions.retain(|at| wanted(at.partition));
    if let (Some(partition), true) = (args.partition, positions.is_empty()) {
        let (topic, highest) = (&args.topic, partitions - 1);
        bail!("topic {topic:?} has no partition {partition}: they are numbered 0 to {highest}");
    }
    Ok(positions)
}
