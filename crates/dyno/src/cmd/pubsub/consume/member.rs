//! Reading as a member of a group, whose cursors are stored in the log.

use std::collections::BTreeMap;

use dyno_pubsub::{Code, Consumer, ConsumerOptions, Error, Message, Position, Result};
use dyno_suite::Stop;

use super::super::log::Log;
use super::output::Output;
use super::patience::Patience;
use super::{WAIT, log};
use crate::args::PubsubConsumeArgs;

pub fn run(
    args: &PubsubConsumeArgs,
    group: &str,
    options: ConsumerOptions,
    stop: &Stop,
) -> anyhow::Result<()> {
    let address = log::address(&args.place)?;
    let consumer = Consumer::open(address, &args.topic, group, options);
    let consumer = consumer.map_err(|error| log::without_broker(&args.place, error))?;
    let mut reading = Reading {
        args,
        group,
        consumer,
        written: BTreeMap::new(),
        output: Output::new(args),
        patience: Patience::default(),
    };
    reading.until_done(stop)?;
    Ok(reading.close()?)
}

/// Adds the remedy to the error of a group whose position retention has removed.
fn with_remedy(error: Error, topic: &str, group: &str) -> Error {
    if error.kind() != Code::OffsetOutOfRange {
        return error;
    }
    let text = format_args!(
        "{}; `dyno pubsub group reset {topic} --group {group} --to earliest` sets the group to a place that is there",
        error.text()
    );
    Error::with_retry(error.kind(), error.retry(), text)
}

/// A member of the group while it reads.
struct Reading<'a> {
    args: &'a PubsubConsumeArgs,
    group: &'a str,
    consumer: Consumer,
    /// The offset after the last record that was written and flushed, by partition, until it is
    /// committed.
    written: BTreeMap<i32, i64>,
    output: Output,
    patience: Patience,
}

impl Reading<'_> {
    fn until_done(&mut self, stop: &Stop) -> anyhow::Result<()> {
        while !self.output.is_complete() && !stop.asked() {
            match self.next() {
                Ok(messages) if messages.is_empty() => {
                    if self.args.until_empty && self.has_read_everything()? {
                        return Ok(());
                    }
                }
                Ok(messages) => self.write(&messages)?,
                Err(error) => self.bear(error)?,
            }
        }
        Ok(())
    }

    /// Commits what was written, and polls for more.
    fn next(&mut self) -> Result<Vec<Message>> {
        // Committed before the next poll and not behind each line: a commit waits for stable
        // storage. A kill in between repeats at most the lines of one poll.
        self.commit()?;
        let messages = self.consumer.poll(WAIT)?;
        self.patience.renew();
        Ok(messages)
    }

    fn commit(&mut self) -> Result<()> {
        if self.written.is_empty() {
            return Ok(());
        }
        let written = self.written.iter();
        let upto: Vec<Position> = written
            .map(|(&partition, &offset)| Position { partition, offset })
            .collect();
        match self.consumer.commit_upto(&upto) {
            // Another member owns these partitions now and reads the records again. The lines were
            // written, so this is a repetition and not a loss, and the command goes on with its
            // other partitions.
            Err(error) if error.kind() == Code::WrongGeneration => {
                eprintln!(
                    "dyno: {error}: their last records will be read again by their new owner"
                );
            }
            committed => committed?,
        }
        self.written.clear();
        Ok(())
    }

    /// Waits and returns if the error may pass.
    fn bear(&mut self, error: Error) -> Result<()> {
        let borne = self.patience.bear(error);
        borne.map_err(|error| with_remedy(error, &self.args.topic, self.group))
    }

    /// Whether the group has committed every record of the topic.
    fn has_read_everything(&mut self) -> anyhow::Result<bool> {
        let groups = Log::open(&self.args.place)?.groups(&self.args.topic)?;
        let own = groups.iter().find(|state| state.group == self.group);
        Ok(own.is_none_or(|state| state.lag() == 0))
    }

    /// Writes records, and then notes how far they reach. An offset that is committed while its
    /// line is still in a buffer would lose the line at a kill.
    fn write(&mut self, messages: &[Message]) -> anyhow::Result<()> {
        for message in self.output.write(messages)? {
            self.written.insert(message.partition, message.offset + 1);
        }
        Ok(())
    }

    /// Commits the last records and leaves the group, so that another member need not wait for the
    /// lease.
    fn close(mut self) -> Result<()> {
        while let Err(error) = self.commit() {
            self.bear(error)?;
        }
        self.consumer.close()
    }
}
