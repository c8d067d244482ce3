//! `redis-benchmark`: how it is started, what it prints, and what must be in the server afterwards.

use std::process::{Command, Stdio};

use dyno_redis::Value;

use super::{RespError, connect};
use crate::process::{self, ProcessError};

/// Keys that are set or read in one command by the rig itself.
const KEYS_AT_ONCE: u64 = 500;
/// What the values of keys that are to be read consist of.
const VALUE_BYTE: u8 = b'x';
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
        let value = char::from(VALUE_BYTE).to_string();
        let value = value.repeat(self.payload as usize);
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
        match self.test {
            "incr" => match self.sum(port)? {
                sum if sum == self.requests => Ok("every increment is there"),
                sum => {
                    let text = format!("increments that are there: {sum} of {}", self.requests);
                    Err(RespError::Wrong(text))
                }
            },
            _ => self.check_values(port),
        }
    }

    /// Checks that the server has as many keys as it must, and a whole value of each.
    fn check_values(&self, port: u16) -> Result<&'static str, RespError> {
        let keys = match connect(port)?.ask(&["dbsize"])? {
            Value::Integer(keys) => keys as u64,
            _ => 0,
        };
        let (whole, least) = (self.whole_values(port)?, self.keys_least());
        if whole == keys && keys <= self.keys && whole as f64 >= least {
            Ok("keys are there")
        } else {
            let text = format!(
                "whole values that are there: {whole}, with {keys} keys of {}, of which at least \
                 {least:.0} were set",
                self.keys
            );
            Err(RespError::Wrong(text))
        }
    }

    /// How many keys must be there. Those that are read were all set before. The client draws the
    /// keys that it sets, each as likely as the others, and does not say which; a tenth fewer than
    /// such draws make is farther off than chance comes with a thousand keys.
    fn keys_least(&self) -> f64 {
        let (keys, requests) = (self.keys as f64, self.requests as f64);
        match self.test {
            "get" => keys,
            _ => 0.9 * keys * (1.0 - (-requests / keys).exp()),
        }
    }

    /// How many values are as they were written. The bytes of those that the client sets are its
    /// own choice, so that only their number is known.
    fn whole_values(&self, port: u16) -> Result<u64, RespError> {
        let mut whole = 0;
        self.read_values(port, "key", |value| {
            let written = self.test != "get" || value.iter().all(|byte| *byte == VALUE_BYTE);
            whole += u64::from(written && value.len() as u64 == self.payload);
        })?;
        Ok(whole)
    }

    /// The sum of all counters.
    fn sum(&self, port: u16) -> Result<u64, RespError> {
        let mut sum = 0;
        self.read_values(port, "counter", |value| {
            let count = str::from_utf8(value)
                .ok()
                .and_then(|text| text.parse().ok());
            sum += count.unwrap_or(0u64);
        })?;
        Ok(sum)
    }

    /// Hands over the value of each key of this name that the server has.
    fn read_values(
        &self,
        port: u16,
        name: &str,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), RespError> {
        let mut client = connect(port)?;
        for first in (0..self.keys).step_by(KEYS_AT_ONCE as usize) {
            let keys = first..self.keys.min(first + KEYS_AT_ONCE);
            let mut words = vec!["mget".to_owned()];
            words.extend(keys.map(|number| key(name, number)));
            let Value::Array(values) = client.ask(&words)? else {
                continue;
            };
            for value in values {
                if let Value::Bulk(value) = value {
                    each(&value);
                }
            }
        }
        Ok(())
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
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use super::*;

    /// Says that it has one key, and to everything else that it is done.
    fn answer(mut socket: TcpStream) {
        let mut asked = [0; 4_096];
        while let Ok(count @ 1..) = socket.read(&mut asked) {
            let counts = asked[..count].windows(6).any(|word| word == b"dbsize");
            let said: &[u8] = if counts { b":1\r\n" } else { b"+OK\r\n" };
            if socket.write_all(said).is_err() {
                return;
            }
        }
    }

    #[test]
    fn a_server_that_keeps_nothing_does_not_pass() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                thread::spawn(move || answer(socket));
            }
        });
        for test in ["set", "get", "incr"] {
            let load = Load {
                test,
                clients: 1,
                pipeline: 1,
                requests: 100,
                keys: 10,
                payload: 8,
            };
            let error = load.check(port).expect_err(test).to_string();
            assert!(error.contains("that are there: 0"), "{test}: {error}");
        }
    }

    #[test]
    fn as_many_keys_are_asked_for_as_draws_make() {
        let least = |test, requests| {
            let load = Load {
                test,
                clients: 1,
                pipeline: 1,
                requests,
                keys: 1_000,
                payload: 8,
            };
            load.keys_least().round()
        };
        // 1,000 draws among 1,000 keys leave one in e of them out.
        assert_eq!(least("set", 1_000), 569.0);
        assert_eq!(least("set", 1), 1.0);
        assert_eq!(least("get", 1), 1_000.0);
    }

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
