//! `dyno pubsub produce`: lines of standard input into a topic.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use dyno_pubsub::{Acknowledge, Producer, ProducerOptions};
use dyno_suite::Stop;
use serde_json::json;

use super::message_json::{self, Outgoing};
use super::receipts::Receipts;
use super::{lines, log};
use crate::args::PubsubProduceArgs;
use crate::exit::Exit;
use crate::terminal;

/// Why no more lines are sent, if nothing failed.
enum End {
    OfInput,
    /// Lines after this one were not sent.
    Asked {
        last_line: u64,
    },
}

pub fn run(args: &PubsubProduceArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let options = ProducerOptions {
        linger: args.linger,
        acknowledge: if args.unsafe_async {
            Acknowledge::Async
        } else {
            Acknowledge::Committed
        },
        name: args.resume.clone(),
        token: log::token(&args.place)?,
        tls: log::tls(&args.place)?,
        ..ProducerOptions::default()
    };
    let producer = Producer::open(log::address(&args.place)?, &args.topic, options);
    let producer = producer.map_err(|error| log::without_broker(&args.place, error))?;
    let blocks = lines::blocks(io::stdin()).context("cannot read standard input")?;
    let began = Instant::now();
    let mut receipts = Receipts::default();
    let ended = send_all(args, &producer, &blocks, &mut receipts, stop);
    // A failure of the flush is also the outcome of the receipts that it concerns, which name their
    // lines.
    let _ = producer.flush();
    receipts.settle();
    terminal::print(&summary(args, &receipts, began.elapsed()))?;
    if let Some((line, error)) = receipts.first_refused {
        let message = format!("line {line} is not acknowledged{}", also_unsent(&ended));
        return Err(anyhow::Error::new(error).context(message));
    }
    match ended? {
        End::OfInput => Ok(Exit::Done),
        End::Asked { last_line } => bail!("stopped: lines after {last_line} were not sent"),
    }
}

/// What to add to the failure of one line about the lines that were not sent.
fn also_unsent(ended: &anyhow::Result<End>) -> String {
    match ended {
        Ok(End::OfInput) => String::new(),
        Ok(End::Asked { last_line }) => format!(", and lines after {last_line} were not sent"),
        Err(error) => format!(", and {error:#}"),
    }
}

/// Sends lines until the input ends, a stop is requested, a line cannot be parsed, or one is
/// refused.
fn send_all(
    args: &PubsubProduceArgs,
    producer: &Producer,
    blocks: &Receiver<io::Result<Vec<u8>>>,
    receipts: &mut Receipts,
    stop: &Stop,
) -> anyhow::Result<End> {
    let mut last_line = 0;
    let mut turns = args.resume.is_some().then(LineAssignment::default);
    loop {
        if stop.asked() {
            return Ok(End::Asked { last_line });
        }
        // A refused line ends the sending at once. Lines behind it would otherwise be stored in
        // front of it when the user repeats the command.
        receipts.settle_known();
        if receipts.first_refused.is_some() {
            return Ok(End::Asked { last_line });
        }
        let block = match blocks.recv_timeout(lines::TICK) {
            Ok(block) => block.with_context(|| format!("line {}", last_line + 1))?,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => {
                if let Some(turns) = &turns {
                    turns.check_end(producer)?;
                }
                return Ok(End::OfInput);
            }
        };
        for line in lines::lines(&block) {
            last_line += 1;
            let record = record(args, line).map_err(|e| {
                anyhow!("line {last_line}: {e}; this line and those after it were not sent")
            })?;
            match &mut turns {
                None => send(producer, receipts, last_line, &record, record.partition),
                Some(turns) => match turns.partition_for(producer, last_line, &record)? {
                    Some(partition) => {
                        send(producer, receipts, last_line, &record, Some(partition))
                    }
                    None => receipts.there += 1,
                },
            }
            if receipts.first_refused.is_some() {
                return Ok(End::Asked { last_line });
            }
        }
    }
}

/// Assigns lines to partitions in the same way in every run, and skips those that an earlier run
/// has sent.
#[derive(Default)]
struct LineAssignment {
    assigned: BTreeMap<u32, AssignedLines>,
}

/// The lines that one partition has been assigned.
#[derive(Default)]
struct AssignedLines {
    lines: u64,
    /// The last line that is known to be the one that was sent, like all before it.
    same_until: u64,
}

impl LineAssignment {
    /// The partition to send a line to; `None` if an earlier run has sent it. Fails if another line
    /// was sent in its place.
    fn partition_for(
        &mut self,
        producer: &Producer,
        line: u64,
        record: &Outgoing,
    ) -> anyhow::Result<Option<u32>> {
        let partitions = producer.partitions();
        let partition = match (record.partition, &record.key) {
            (Some(partition), _) => partition,
            (None, Some(key)) => producer.partition_of(key),
            // Lines without a key take turns by their number, and not by batch as they do without
            // --resume: the assignment must not depend on timing, which batches do.
            (None, None) => u32::try_from((line - 1) % u64::from(partitions)).unwrap_or(0),
        };
        let given = self.assigned.entry(partition).or_default();
        given.lines += 1;
        if given.lines > producer.sent_before(partition) {
            return Ok(Some(partition));
        }
        let headers = headers(record);
        match producer.leave_out(record.key.as_deref(), &record.value, &headers, partition) {
            Ok(true) => given.same_until = line,
            Ok(false) => {}
            Err(error) => {
                let first = given.same_until + 1;
                let lines = if first == line {
                    format!("line {line}")
                } else {
                    format!("one of the lines {first} to {line}")
                };
                return Err(anyhow::Error::new(error).context(format!(
                    "{lines} is the first that differs from what was sent to partition {partition}"
                )));
            }
        }
        Ok(None)
    }

    /// Fails if the input ended before all lines that were sent: it is another input then.
    fn check_end(&self, producer: &Producer) -> anyhow::Result<()> {
        for partition in 0..producer.partitions() {
            let sent = producer.sent_before(partition);
            let lines = self.assigned.get(&partition).map_or(0, |given| given.lines);
            if lines < sent {
                bail!(
                    "the input has {lines} lines for partition {partition}, and {sent} were sent under this name before: \
                     it is not the same input"
                );
            }
        }
        Ok(())
    }
}

/// Blocks while more is unacknowledged than the producer's buffer holds.
fn send(
    producer: &Producer,
    receipts: &mut Receipts,
    line: u64,
    record: &Outgoing,
    partition: Option<u32>,
) {
    let headers = headers(record);
    match producer.send_with(record.key.as_deref(), &record.value, &headers, partition) {
        Ok(receipt) => receipts.push(line, receipt),
        Err(error) => receipts.refuse(line, error),
    }
}

fn headers(record: &Outgoing) -> Vec<(&str, Option<&[u8]>)> {
    let headers = record.headers.iter();
    headers
        .map(|(name, value)| (name.as_str(), value.as_deref()))
        .collect()
}

fn record(args: &PubsubProduceArgs, line: &[u8]) -> Result<Outgoing, String> {
    let mut record = read(args, line)?;
    record.partition = args.partition.or(record.partition);
    let headers = args.headers.iter();
    record
        .headers
        .extend(headers.map(|(name, value)| (name.clone(), Some(value.clone().into()))));
    Ok(record)
}

fn read(args: &PubsubProduceArgs, line: &[u8]) -> Result<Outgoing, String> {
    if args.json {
        return message_json::read(line);
    }
    let Some(separator) = &args.key_separator else {
        return Ok(Outgoing {
            value: line.to_vec(),
            ..Outgoing::default()
        });
    };
    let width = separator.len();
    let at = line
        .windows(width)
        .position(|signs| signs == separator.as_bytes())
        .ok_or_else(|| format!("there is no {separator:?} between key and value"))?;
    Ok(Outgoing {
        key: Some(line[..at].to_vec()),
        value: line[at + width..].to_vec(),
        ..Outgoing::default()
    })
}

fn summary(args: &PubsubProduceArgs, receipts: &Receipts, took: Duration) -> String {
    let (acknowledged, refused) = (receipts.acknowledged, receipts.refused);
    if args.json {
        let partitions = receipts.partitions.iter().map(|(partition, (records, last))| {
            json!({ "partition": partition, "records": records, "last_offset": last })
        });
        let all = json!({
            "acknowledged": acknowledged,
            "there_already": receipts.there,
            "refused": refused,
            "first_refused_line": receipts.first_refused.as_ref().map(|(line, _)| line),
            "seconds": took.as_secs_f64(),
            "partitions": partitions.collect::<Vec<_>>(),
        });
        return format!("{all:#}");
    }
    let there = match receipts.there {
        0 => String::new(),
        there => format!(", {there} were there already"),
    };
    let noun = if acknowledged == 1 {
        "record"
    } else {
        "records"
    };
    match refused {
        0 => format!("{acknowledged} {noun} acknowledged{there}"),
        _ => format!("{acknowledged} {noun} acknowledged, {refused} not{there}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second failure was once left out, and with it that no later line was sent.
    #[test]
    fn a_refused_line_does_not_hide_why_the_input_ended() {
        assert_eq!(also_unsent(&Ok(End::OfInput)), "");
        let asked = Ok(End::Asked { last_line: 7 });
        assert_eq!(also_unsent(&asked), ", and lines after 7 were not sent");
        let failed = Err(anyhow!("line 9: no JSON; it was not sent"));
        assert_eq!(
            also_unsent(&failed),
            ", and line 9: no JSON; it was not sent"
        );
    }
}
