//! `redis-benchmark`: how it is started, what it prints, and what must be in the server afterwards.

use std::process::{Command, Stdio};

use dyno_redis::Value;

use super::{RespError, connect};
use crate::process::{self, ProcessError};

/// Keys that are set or read in one command by the rig itself.
const KEYS_AT_ONCE: u64 = 500;
/// The columns of a line of figures, and their names here. Latencies are milliseconds there, and
/// seconds here, as in every record.
const COLUMNS: [(usize, &str); 6] = [
    (1, "throughput"),
    (2, "latency-mean"),
    (4, "latency-p50"),
    (5, "latency-p95"),
    (6, "latency-p99"),
    (7, "latency-max"),
];

/// What the client does.
pub(super) struct Load {
    /// Its name for the test, in small letters.
    pub test: &'static str,
    pub clients: u64,
    /// Requests under way on each connection.
    pub pipeline: u64,
    pub requests: u64,
    pub keys: u64,
    /// Bytes of a value.
    pub payload: u64,
}

impl Load {
    /// Sets the keys that are to be read.
    pub fn prepare(&self, port: u16) -> Result<(), RespError> {
        if self.test != "get" {
            return Ok(());
        }
        let mut client = connect(port)?;
        let value = "x".repeat(self.payload as usize);
        for first in (0..self.keys).step_by(KEYS_AT_ONCE as usize) {
            let mut words = vec!["mset".to_owned()];
            for number in first..self.keys.min(first + KEYS_AT_ONCE) {
                words.extend([key("key", number), value.clone()]);
            }
            client.ask(&words)?;
        }
        Ok(())
    }

    /// Runs the client to its end, and returns its figures: requests a second, and seconds.
    pub fn run(&self, port: u16) -> Result<Vec<(String, f64)>, RespError> {
        let number = |count: u64| count.to_string();
        let mut command = Command::new("redis-benchmark");
        command
            .args(["--csv", "-p", &port.to_string(), "-t", self.test])
            .args(["-n", &number(self.requests), "-c", &number(self.clients)])
            .args(["-P", &number(self.pipeline), "-r", &number(self.keys)])
            .args(["-d", &number(self.payload)])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let child = process::spawn("redis-benchmark", command)?;
        let output = child.wait_with_output();
        let output = output.map_err(ProcessError::io("redis-benchmark"))?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        let found = figures(&stdout).filter(|_| output.status.success());
        let mut found = found.ok_or_else(|| {
            let last = stdout.lines().last().unwrap_or("nothing");
            RespError::NotFigures(last.to_owned())
        })?;
        let seconds = self.requests as f64 / found[0].1;
        found.push(("time".to_owned(), seconds));
        Ok(found)
    }

    /// Compares what is in the server with what was acknowledged.
    pub fn check(&self, port: u16) -> Result<&'static str, RespError> {
        let wrong = |found: u64, what: &str| {
            let text = format!("{what}: {found} of {}", self.requests);
            Err(RespError::Wrong(text))
        };
        match self.test {
            "incr" => match self.sum(port)? {
                sum if sum == self.requests => Ok("every increment is there"),
                sum => wrong(sum, "increments that are there"),
            },
            _ => {
                let keys = match connect(port)?.ask(&["dbsize"])? {
                    Value::Integer(keys) => keys as u64,
                    _ => 0,
                };
                if (1..=self.keys).contains(&keys) {
                    Ok("keys are there")
                } else {
                    wrong(keys, "keys that are there")
                }
            }
        }
    }

    /// The sum of all counters.
    fn sum(&self, port: u16) -> Result<u64, RespError> {
        let mut client = connect(port)?;
        let mut sum = 0;
        for first in (0..self.keys).step_by(KEYS_AT_ONCE as usize) {
            let keys = first..self.keys.min(first + KEYS_AT_ONCE);
            let mut words = vec!["mget".to_owned()];
            words.extend(keys.map(|number| key("counter", number)));
            let Value::Array(counters) = client.ask(&words)? else {
                continue;
            };
            let count = |value: &Value| match value {
                Value::Bulk(text) => str::from_utf8(text).ok()?.parse::<u64>().ok(),
                _ => None,
            };
            sum += counters.iter().filter_map(count).sum::<u64>();
        }
        Ok(sum)
    }
}

/// A key as the client writes it: a number of twelve digits behind a name.
fn key(name: &str, number: u64) -> String {
    format!("{name}:{number:012}")
}

/// The figures in the last line: a name, requests a second, and milliseconds, each in quotes.
fn figures(stdout: &str) -> Option<Vec<(String, f64)>> {
    let line = stdout.lines().rfind(|line| line.starts_with('"'))?;
    let fields: Vec<&str> = line
        .split(',')
        .map(|field| field.trim_matches('"'))
        .collect();
    let read = |(at, name): (usize, &str)| {
        let value: f64 = fields.get(at)?.parse().ok()?;
        let each = if name == "throughput" { 1.0 } else { 1e-3 };
        Some((name.to_owned(), value * each))
    };
    COLUMNS.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_last_line() {
        let said = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
            \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
            \"SET\",\"40000.00\",\"0.5\",\"0.1\",\"0.4\",\"0.9\",\"1.5\",\"2.5\"\n";
        let found = figures(said).expect("figures");
        assert_eq!(found[0], ("throughput".to_owned(), 40_000.0));
        assert_eq!(found[5], ("latency-max".to_owned(), 2.5e-3));
        assert!(figures("\"test\",\"rps\"\n").is_none());
        assert!(figures("").is_none());
        assert_eq!(key("counter", 7), "counter:000000000007");
    }
}
