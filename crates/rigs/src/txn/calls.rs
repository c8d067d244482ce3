//! Calls between a client and a server of frames without a database: the layer below transactions.
//!
//! `txn-rpc` is request and response. `txn-transport` is a stream of messages one way, acknowledged
//! together: K2's "transport". Each client thread has a server thread of its own on the other side
//! of a real connection, in this process or, if the case says so, in one of their own.

mod apart;
mod rpc;
mod server;
mod stream;

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

use dyno_measure::Latencies;
use dyno_net::Address;
use dyno_record::Answer;
use dyno_suite::protocol::{Reply, Request};

use super::k2::{K2Error, Transport, size};
use crate::{Params, RigError, Windows, quantiles};
use apart::Servers;
pub(crate) use apart::serve;

/// The shortest message: its number and a check mark.
const LEAST_BYTES: usize = 10;
/// Both ends spin, because they have nothing else to do and waking a thread costs more than what is
/// measured here.
const SPIN: Duration = Duration::from_secs(3_600);
/// The warm-up, which is not counted, lasts this fraction (1/5) of the measured time.
const WARM_UP: u32 = 5;

/// The parsed parameters of `txn-rpc` and `txn-transport`.
#[derive(Debug, Clone, Copy)]
struct CallParams {
    transport: Transport,
    request_bytes: usize,
    answer_bytes: usize,
    connections: usize,
    /// Messages in flight on each connection.
    window: usize,
    /// Messages that one answer acknowledges.
    every: usize,
    duration: Duration,
    /// Client threads, and as many server threads.
    threads: usize,
    /// Whether the server threads are in another process.
    apart: bool,
}

/// What the clients counted.
struct CallCounts {
    messages: u64,
    seconds: f64,
    latencies: Latencies,
    /// Messages by the time of their answers.
    windows: Windows,
    /// The transport that the connections used.
    transport: String,
}

/// `txn-rpc`: requests and answers, with `window` requests in flight on each connection.
pub(crate) fn rpc(params: &mut Params<'_>, request: &Request) -> Result<Reply, RigError> {
    let parsed = CallParams::read(params, 1)?;
    reply(&parsed, request, rpc::run)
}

/// `txn-transport`: messages one way, and one answer to every few.
pub(crate) fn transport(params: &mut Params<'_>, request: &Request) -> Result<Reply, RigError> {
    let parsed = CallParams::read_stream(params)?;
    reply(&parsed, request, stream::run)
}

impl CallParams {
    fn read_stream(params: &mut Params<'_>) -> Result<CallParams, RigError> {
        let every = size(params.count("ack-every")?);
        let parsed = CallParams::read(params, every)?;
        if parsed.every > parsed.window {
            let reason = "a window shorter than that never gets an answer".to_owned();
            return Err(params.wrong("ack-every", reason));
        }
        // A stream ends with a whole group, and fills its window whenever an answer made room. What
        // is sent behind such a group is never whole, so the stream would not end.
        if !parsed.window.is_multiple_of(parsed.every) {
            let (window, every) = (parsed.window, parsed.every);
            let reason = format!("{window} is not a multiple of ack-every, which is {every}");
            return Err(params.wrong("window", reason));
        }
        if parsed.connections != 1 {
            let reason = "a stream has one connection".to_owned();
            return Err(params.wrong("connections", reason));
        }
        Ok(parsed)
    }

    fn read(params: &mut Params<'_>, every: usize) -> Result<CallParams, RigError> {
        let parsed = CallParams {
            transport: Transport::read(params)?,
            request_bytes: size(params.count("request")?),
            answer_bytes: size(params.count("answer")?),
            connections: size(params.count("connections")?),
            window: size(params.count("window")?),
            every,
            duration: params.seconds("seconds")?,
            threads: size(params.count_or("threads", 1)?),
            apart: params.count_or("apart", 0)? == 1,
        };
        let bounds = [
            ("request", parsed.request_bytes, LEAST_BYTES, 1 << 20),
            ("answer", parsed.answer_bytes, LEAST_BYTES, 1 << 20),
            ("connections", parsed.connections, 1, 64),
            ("window", parsed.window, 1, 4_096),
            ("ack-every", parsed.every, 1, 4_096),
            ("threads", parsed.threads, 1, 256),
        ];
        for (name, value, least, most) in bounds {
            if !(least..=most).contains(&value) {
                let reason = format!("{value} is not within {least} and {most}");
                return Err(params.wrong(name, reason));
            }
        }
        Ok(parsed)
    }
}

/// The function that is the client thread of one of the two workloads.
type Run = fn(&CallParams, &Address) -> Result<CallCounts, K2Error>;

/// Runs the server threads, and a client thread for each of them.
fn run_all(params: &CallParams, scratch: &Path, run: Run) -> Result<CallCounts, K2Error> {
    let servers = Servers::start(params, scratch)?;
    let counts: Vec<Result<CallCounts, K2Error>> = thread::scope(|scope| {
        let addresses = servers.addresses().iter();
        let clients: Vec<_> = addresses
            .map(|address| scope.spawn(move || run(params, address)))
            .collect();
        let joined = clients.into_iter().map(|client| client.join());
        joined
            .map(|counts| counts.unwrap_or(Err(K2Error::Panicked)))
            .collect()
    });
    let mut counts = counts.into_iter();
    let mut all = counts.next().unwrap_or(Err(K2Error::Panicked))?;
    for one in counts {
        let one = one?;
        all.messages += one.messages;
        // All of them last as long as they were told. The one that ended last decides the rate, so
        // that a thread that was held up does not flatter it.
        all.seconds = all.seconds.max(one.seconds);
        all.latencies.add(&one.latencies)?;
        all.windows.add(&one.windows);
    }
    Ok(all)
}

fn reply(params: &CallParams, request: &Request, run: Run) -> Result<Reply, RigError> {
    let counts = run_all(params, &request.scratch, run)?;
    let rate = counts.messages as f64 / counts.seconds.max(1e-9);
    let mut metrics = BTreeMap::from([
        ("throughput".to_owned(), rate),
        ("io-rate".to_owned(), rate * params.request_bytes as f64),
        ("latency-count".to_owned(), counts.latencies.count() as f64),
    ]);
    quantiles::insert(&mut metrics, "latency", &counts.latencies, 1.0);
    let mut facts = BTreeMap::from([("carrier".to_owned(), counts.transport.clone())]);
    if let Ok(load) = std::fs::read_to_string("/proc/loadavg") {
        let first = load.split(' ').next().unwrap_or_default();
        facts.insert("load".to_owned(), first.to_owned());
    }
    let mut reply = Reply {
        // Every message is checked while it runs, and their number depends on the speed, so the
        // answer is constant.
        answer: Some(Answer {
            count: 0,
            checksum: "all right".to_owned(),
        }),
        metrics,
        facts,
        ..Reply::default()
    };
    counts.windows.tell(&mut reply, 1.0);
    Ok(reply)
}

/// The body of a message: its number, a filler, and a mark that depends on the number.
struct Body {
    filler: Vec<u8>,
}

impl Body {
    fn new(bytes: usize) -> Body {
        let filler = (0..bytes - LEAST_BYTES).map(|at| (at % 251) as u8);
        Body {
            filler: filler.collect(),
        }
    }

    fn ends(number: u64) -> ([u8; 8], [u8; 2]) {
        let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (
            number.to_le_bytes(),
            [(mixed >> 56) as u8, (mixed >> 48) as u8],
        )
    }

    /// The number of a message, or `None` if its mark does not match.
    fn number(body: &[u8]) -> Option<u64> {
        let (number, mark) = (body.first_chunk::<8>()?, body.last_chunk::<2>()?);
        let number = u64::from_le_bytes(*number);
        (Body::ends(number).1 == *mark).then_some(number)
    }
}

fn wrong(what: &str, found: &[u8]) -> K2Error {
    let start = &found[..found.len().min(16)];
    K2Error::Wrong(format!("{what} is wrong: it begins {start:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn params(every: usize) -> CallParams {
        CallParams {
            transport: Transport::Unix,
            request_bytes: 1024,
            answer_bytes: 10,
            connections: if every == 1 { 2 } else { 1 },
            window: 8,
            every,
            duration: Duration::from_millis(50),
            threads: 2,
            apart: false,
        }
    }

    #[test]
    fn every_transport_carries_both_and_every_answer_is_right() {
        for transport in [Transport::Ring, Transport::Unix, Transport::Tcp] {
            for (every, run) in [(1, rpc::run as Run), (4, stream::run)] {
                let folder = tempfile::tempdir().expect("a folder");
                let params = CallParams {
                    transport,
                    ..params(every)
                };
                let counts: CallCounts = run_all(&params, folder.path(), run).expect("it runs");
                assert!(
                    counts.messages > 0 && counts.latencies.count() > 0,
                    "{transport:?}"
                );
                assert!(
                    counts.transport.contains(transport.name()),
                    "{}",
                    counts.transport
                );
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (name, value) in [("window", 0), ("answer", 4), ("connections", 1000)] {
            let mut all = serde_json::from_value::<BTreeMap<String, _>>(json!({
                "carrier": "tcp", "request": 1024, "answer": 10, "connections": 1, "window": 1,
                "seconds": 0.1,
            }))
            .expect("a map");
            all.insert(name.to_owned(), json!(value));
            let error = CallParams::read(&mut Params::new(&all), 1).expect_err(name);
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn a_stream_whose_window_ends_within_a_group_is_refused() {
        let read = |window: usize| {
            let all = serde_json::from_value::<BTreeMap<String, _>>(json!({
                "carrier": "tcp", "request": 1024, "answer": 10, "connections": 1,
                "window": window, "ack-every": 4, "seconds": 0.1,
            }))
            .expect("a map");
            CallParams::read_stream(&mut Params::new(&all))
        };
        assert_eq!(read(12).expect("three groups").window, 12);
        for (window, expected) in [(10, "window"), (2, "ack-every")] {
            let error = read(window).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
        let error = read(10).expect_err("two and a half groups").to_string();
        assert!(
            error.contains("10 is not a multiple of ack-every"),
            "{error}"
        );
    }
}
