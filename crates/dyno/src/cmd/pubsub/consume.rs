//! `dyno pubsub consume`: records to standard output, as a member of a group.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::time::{Duration, Instant};

use anyhow::Context;
use dyno_pubsub::{Code, Consumer, ConsumerOptions, Error, Message, Position, Result, Retry};
use dyno_suite::Stop;

use super::log::{self, Log};
use super::message_json;
use crate::args::PubsubConsumeArgs;
use crate::exit::Exit;

/// How long a poll waits for records, and so how late a request to stop is noticed.
const WAIT: Duration = Duration::from_millis(200);
/// How long the log may be unreachable before the command gives up, as long as a producer retries.
const PATIENCE: Duration = Duration::from_secs(120);

pub fn run(args: &PubsubConsumeArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let options = ConsumerOptions {
        member: args.member.clone(),
        start: args.from,
        lease: args.lease,
        token: log::token(&args.place)?,
        tls: log::tls(&args.place)?,
        ..ConsumerOptions::default()
    };
    let address = log::address(&args.place)?;
    let consumer = Consumer::open(address, &args.topic, &args.group, options);
    let consumer = consumer.map_err(|error| log::without_broker(&args.place, error))?;
    let mut reading = Reading {
        args,
        consumer,
        written: BTreeMap::new(),
        left: args.count.unwrap_or(u64::MAX),
        away_since: None,
    };
    reading.until_done(stop)?;
    reading.close()?;
    Ok(Exit::Done)
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
    consumer: Consumer,
    /// The offset after the last record that was written and flushed, by partition, until it is
    /// committed.
    written: BTreeMap<i32, i64>,
    /// Records that may still be written.
    left: u64,
    away_since: Option<Instant>,
}

impl Reading<'_> {
    fn until_done(&mut self, stop: &Stop) -> anyhow::Result<()> {
        while self.left > 0 && !stop.asked() {
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
        self.away_since = None;
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

    /// Waits and returns if the error may pass, until [`PATIENCE`] is over.
    fn bear(&mut self, error: Error) -> Result<()> {
        if error.retry() == Retry::Never {
            return Err(with_remedy(error, &self.args.topic, &self.args.group));
        }
        let since = *self.away_since.get_or_insert_with(|| {
            eprintln!("dyno: {error}; it is tried again");
            Instant::now()
        });
        if since.elapsed() > PATIENCE {
            return Err(error);
        }
        std::thread::sleep(WAIT);
        Ok(())
    }

    /// Whether the group has committed every record of the topic.
    fn has_read_everything(&mut self) -> anyhow::Result<bool> {
        let groups = Log::open(&self.args.place)?.groups(&self.args.topic)?;
        let own = groups.iter().find(|state| state.group == self.args.group);
        Ok(own.is_none_or(|state| state.lag() == 0))
    }

    /// Writes as many records as are still wanted. Records that cannot be written are not
    /// committed.
    fn write(&mut self, messages: &[Message]) -> anyhow::Result<()> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let messages = &messages[..messages.len().min(most)];
        let mut stdout = BufWriter::with_capacity(64 << 10, io::stdout().lock());
        for message in messages {
            self.line(&mut stdout, message)
                .context("cannot write to stdout")?;
        }
        // Flushed before the offsets are noted. An offset that is committed while its line is still
        // in a buffer would lose the line at a kill.
        stdout.flush().context("cannot write to stdout")?;
        self.left -= messages.len() as u64;
        for message in messages {
            self.written.insert(message.partition, message.offset + 1);
        }
        Ok(())
    }

    fn line(&self, to: &mut impl Write, message: &Message) -> io::Result<()> {
        if self.args.json {
            serde_json::to_writer(&mut *to, &message_json::print(message))?;
        } else {
            to.write_all(&message.value)?;
        }
        to.write_all(b"\n")
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
