//! Kafka's own command line clients: how they are started, and what they print.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use super::KafkaError;
use super::installed::java;
use crate::process::{self, ProcessError};

/// The heap of `kafka-producer-perf-test.sh` and its sibling, which are not a part of the jars.
const HEAP: &str = "-Xmx512M";
/// Milliseconds in which a consumer must get a record. It covers the first answers of a group that
/// shares out its partitions on a busy machine.
const SILENCE_MS: &str = "60000";

const PRODUCER: &str = "ProducerPerformance";
const CONSUMER: &str = "ConsumerPerformance";

/// The clients of one server.
pub(super) struct Tools {
    address: String,
    scratch: PathBuf,
}

/// The figures of one producer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Produced {
    /// Records that were acknowledged, those before the timed ones too.
    pub sent: u64,
    /// Records that were timed.
    pub timed: u64,
    /// Seconds from the first timed record until the last was acknowledged.
    pub seconds: f64,
    /// Milliseconds at the quantiles 50, 95, 99 and 99.9, from when a record was handed to the
    /// client.
    pub latencies_ms: [f64; 4],
    /// When the client said so.
    pub ended: Instant,
}

/// The figures of the reader of one group.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Consumed {
    pub records: u64,
    /// Seconds of reading, without those in which the group shared out its partitions.
    pub seconds: f64,
    /// Seconds in which the group shared out its partitions.
    pub joining_s: f64,
    pub ended: Instant,
}

impl Tools {
    pub fn new(address: String, scratch: &Path) -> Result<Tools, KafkaError> {
        Ok(Tools {
            address,
            scratch: scratch.to_owned(),
        })
    }

    pub fn create_topic(&self, topic: &str, partitions: u64) -> Result<(), KafkaError> {
        let mut command = self.tool("TopicCommand")?;
        command.args(["--create", "--topic", topic, "--replication-factor", "1"]);
        command.args(["--partitions", &partitions.to_string()]);
        ran("TopicCommand", command)?;
        Ok(())
    }

    /// The end offsets of the topic's partitions, summed up.
    pub fn end_offsets(&self, topic: &str) -> Result<u64, KafkaError> {
        let mut command = self.tool("GetOffsetShell")?;
        command.args(["--topic", topic]);
        let text = ran("GetOffsetShell", command)?;
        summed_offsets(&text).ok_or_else(|| not_figures("GetOffsetShell", &text))
    }

    /// Runs so many producers at once, each with `warmup` and then `each` records.
    pub fn produce(
        &self,
        topic: &str,
        producers: u64,
        each: u64,
        warmup: u64,
        payload: u64,
    ) -> Result<Vec<Produced>, KafkaError> {
        let commands = (0..producers).map(|_| {
            let mut command = self.tool(PRODUCER)?;
            command.args(["--topic", topic, "--throughput", "-1"]);
            command.args(["--num-records", &(each + warmup).to_string()]);
            command.args(["--warmup-records", &warmup.to_string()]);
            command.args(["--record-size", &payload.to_string()]);
            // All else stays as the client has it.
            command.args(["--command-property", "acks=all", "enable.idempotence=true"]);
            Ok(command)
        });
        let printed = self.at_once(PRODUCER, commands.collect::<Result<_, ProcessError>>()?)?;
        let read = |printed: &Printed| {
            produced(printed).ok_or_else(|| not_figures(PRODUCER, &printed.text))
        };
        printed.iter().map(read).collect()
    }

    /// Runs a reader for each of so many groups at once; each is to read `records`.
    pub fn consume(
        &self,
        topic: &str,
        groups: u64,
        records: u64,
    ) -> Result<Vec<Consumed>, KafkaError> {
        let commands = (0..groups).map(|group| {
            let mut command = self.tool(CONSUMER)?;
            command.args(["--topic", topic, "--group", &format!("group-{group}")]);
            command.args(["--num-records", &records.to_string()]);
            command.args(["--timeout", SILENCE_MS, "--hide-header"]);
            Ok(command)
        });
        let printed = self.at_once(CONSUMER, commands.collect::<Result<_, ProcessError>>()?)?;
        let read = |printed: &Printed| {
            consumed(printed).ok_or_else(|| not_figures(CONSUMER, &printed.text))
        };
        printed.iter().map(read).collect()
    }

    fn tool(&self, class: &str) -> Result<Command, ProcessError> {
        let mut command = java()?;
        command
            .arg(HEAP)
            .arg(format!("org.apache.kafka.tools.{class}"));
        command.args(["--bootstrap-server", &self.address]);
        command.current_dir(&self.scratch);
        Ok(command)
    }

    /// Runs clients side by side until all have ended, and returns what each printed.
    fn at_once(&self, name: &str, commands: Vec<Command>) -> Result<Vec<Printed>, ProcessError> {
        let mut running = Vec::new();
        for command in commands {
            running.push(Running::start(name, command)?);
        }
        // All are waited for before the first error is returned. One that ends early would leave
        // the others running until they are dropped.
        let ended: Vec<_> = running.into_iter().map(|client| client.end(name)).collect();
        ended.into_iter().collect()
    }
}

/// What a client printed, and when it printed the last line of it.
struct Printed {
    text: String,
    ended: Instant,
}

/// A client, and the threads that read its output. Dropping it kills the client.
struct Running {
    child: Child,
    out: Option<thread::JoinHandle<Printed>>,
    errors: Option<thread::JoinHandle<String>>,
}

impl Running {
    fn start(name: &str, mut command: Command) -> Result<Running, ProcessError> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = process::spawn(name, command)?;
        let out = child.stdout.take().map(|out| {
            thread::spawn(move || {
                let (mut text, mut ended) = (String::new(), Instant::now());
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    // A client prints its figures when the load ends, and takes a moment more to
                    // end itself.
                    ended = Instant::now();
                    text.push_str(&line);
                    text.push('\n');
                }
                Printed { text, ended }
            })
        });
        let errors = child.stderr.take().map(|mut errors| {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                // What was read before an error is still of use.
                let _ = errors.read_to_end(&mut bytes);
                String::from_utf8_lossy(&bytes).into_owned()
            })
        });
        Ok(Running { child, out, errors })
    }

    fn end(mut self, name: &str) -> Result<Printed, ProcessError> {
        let failed = |reason: String| ProcessError::program(name, reason);
        let status = self.child.wait();
        let status = status.map_err(|error| failed(error.to_string()))?;
        let errors = self.errors.take().and_then(|thread| thread.join().ok());
        let printed = self.out.take().and_then(|thread| thread.join().ok());
        let printed = printed.ok_or_else(|| failed("its output was not read".to_owned()))?;
        if !status.success() {
            let errors = errors.unwrap_or_default();
            return Err(failed(format!(
                "{status}: {}{}",
                errors.trim(),
                printed.text.trim()
            )));
        }
        Ok(printed)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The errors are ignored, because most have ended by now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs one client to its end, and returns what it printed.
pub(super) fn ran(name: &str, command: Command) -> Result<String, ProcessError> {
    Ok(Running::start(name, command)?.end(name)?.text)
}

fn not_figures(client: &'static str, text: &str) -> KafkaError {
    let last_line = text.lines().last().unwrap_or("nothing").to_owned();
    KafkaError::NotFigures { client, last_line }
}

/// The sum of lines `TOPIC:PARTITION:OFFSET`; `None` without any, or if one has another form.
fn summed_offsets(text: &str) -> Option<u64> {
    let offsets = text
        .lines()
        .map(|line| line.rsplit(':').next()?.parse().ok());
    let offsets: Vec<u64> = offsets.collect::<Option<_>>()?;
    (!offsets.is_empty()).then(|| offsets.iter().sum())
}

/// Reads the two lines at the end of a producer's output: all its records, and those after the
/// first `--warmup-records`. Without these there is only the first line.
fn produced(printed: &Printed) -> Option<Produced> {
    let totals: Vec<&str> = printed
        .text
        .lines()
        .filter(|line| line.contains(" 99.9th."))
        .collect();
    let (all, timed) = (*totals.first()?, *totals.last()?);
    let records = |line: &str| line.split(' ').next()?.parse::<u64>().ok();
    let rate: f64 = timed
        .split_once(" sent, ")?
        .1
        .split(' ')
        .next()?
        .parse()
        .ok()?;
    let quantile = |label: &str| -> Option<f64> {
        let before = timed.split_once(&format!(" ms {label}"))?.0;
        before.rsplit(' ').next()?.parse().ok()
    };
    Some(Produced {
        sent: records(all)?,
        timed: records(timed)?,
        seconds: records(timed)? as f64 / rate,
        latencies_ms: [
            quantile("50th")?,
            quantile("95th")?,
            quantile("99th")?,
            quantile("99.9th")?,
        ],
        ended: printed.ended,
    })
}

/// Reads the line of a consumer: start, end, MB, MB/s, records, records/s, milliseconds of sharing
/// out partitions, milliseconds of reading, and two rates.
fn consumed(printed: &Printed) -> Option<Consumed> {
    let line = printed
        .text
        .lines()
        .rfind(|line| line.matches(", ").count() == 9)?;
    let fields: Vec<&str> = line.split(", ").collect();
    let seconds = |ms: &str| ms.parse::<f64>().ok().map(|ms| ms / 1e3);
    Some(Consumed {
        records: fields[4].parse().ok()?,
        joining_s: seconds(fields[6])?,
        seconds: seconds(fields[7]).filter(|seconds| *seconds > 0.0)?,
        ended: printed.ended,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> Printed {
        Printed {
            text: text.to_owned(),
            ended: Instant::now(),
        }
    }

    #[test]
    fn a_producers_figures_are_those_after_its_warm_up() {
        let text = "1 records sent, 0.3 records/sec (0.00 MB/sec), 396.0 ms avg latency, 396.0 ms max latency.\n\
            In steady state.\n\
            60000 records sent, 483.796819 records/sec (0.47 MB/sec), 12756.68 ms avg latency, 119348.00 ms max latency, \
            2865 ms 50th, 106220 ms 95th, 119303 ms 99th, 119341 ms 99.9th.\n\
            40000 steady state records sent, 8000.0 records/sec (0.33 MB/sec), 13632.00 ms avg latency, 119348.00 ms max \
            latency, 3299 ms 50th, 118297 ms 95th, 119314 ms 99th, 119344 ms 99.9th.\n";
        let read = produced(&printed(text)).expect("figures");
        assert_eq!((read.sent, read.timed, read.seconds), (60_000, 40_000, 5.0));
        assert_eq!(
            read.latencies_ms,
            [3_299.0, 118_297.0, 119_314.0, 119_344.0]
        );
        assert_eq!(
            produced(&printed("1 records sent, 0.3 records/sec\n")),
            None
        );
    }

    #[test]
    fn a_consumers_time_is_that_of_reading() {
        let line = "2026-11-25 23:57:55:281, 2026-11-25 23:58:04:323, 195.3125, 21.6006, 200000, \
            22119.0002, 5742, 3300, 59.1856, 60606.0606\n";
        let read = consumed(&printed(line)).expect("figures");
        assert_eq!(
            (read.records, read.seconds, read.joining_s),
            (200_000, 3.3, 5.742)
        );
        assert_eq!(consumed(&printed("WARNING: Exiting before\n")), None);
    }

    #[test]
    fn offsets_are_summed_over_partitions() {
        assert_eq!(
            summed_offsets("flow:0:49980\nflow:1:50030\n"),
            Some(100_010)
        );
        assert_eq!(summed_offsets("flow:0:\n"), None);
        assert_eq!(summed_offsets(""), None);
    }
}
