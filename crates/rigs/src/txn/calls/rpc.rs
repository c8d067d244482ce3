//! Requests and answers: one thread keeps a window on each of its connections full.

use std::time::{Duration, Instant};

use dyno_measure::Latencies;
use dyno_net::{Address, Client, ClientOptions};

use super::server::{VERB, port_options};
use super::{Body, CallCounts, CallParams, K2Error, SPIN, WARM_UP, wrong};
use crate::Windows;

/// How long an answer may take before the run fails.
const ANSWER_MAX: Duration = Duration::from_secs(10);

pub(super) fn run(params: &CallParams, address: &Address) -> Result<CallCounts, K2Error> {
    let options = ClientOptions {
        port: port_options(params.transport),
        spin: SPIN,
        ..ClientOptions::default()
    };
    let mut connections = Vec::new();
    for _ in 0..params.connections {
        connections.push(Connection {
            client: Client::connect(address, &options)?,
            next: 0,
            answered: 0,
            sent_ns: vec![0; params.window.next_power_of_two()],
        });
    }
    once(params, &mut connections, params.duration / WARM_UP)?;
    once(params, &mut connections, params.duration)
}

/// A connection with its requests in flight.
struct Connection {
    client: Client,
    next: u64,
    answered: u64,
    /// When requests were sent, indexed by their number modulo the length, because answers come in
    /// the order of requests.
    sent_ns: Vec<u64>,
}

fn once(
    params: &CallParams,
    connections: &mut [Connection],
    duration: Duration,
) -> Result<CallCounts, K2Error> {
    let body = Body::new(params.request_bytes);
    let began = Instant::now();
    let end_ns = duration.as_nanos() as u64;
    let mut counts = CallCounts {
        messages: 0,
        seconds: 0.0,
        latencies: Latencies::new()?,
        windows: Windows::over(duration),
        transport: connections
            .first()
            .map(|one| one.client.transport().kind.to_string())
            .unwrap_or_default(),
    };
    let (mut now_ns, mut last_ns) = (0, 0);
    loop {
        let mut under_way = 0;
        for connection in &mut *connections {
            connection.fill(params, &body, now_ns, end_ns)?;
            // One connection can wait in the call; several are polled in turn.
            let answered = match params.connections {
                1 => connection.receive(params, true)?,
                _ => connection.receive(params, false)?,
            };
            // The clock is read once for all answers that arrived together.
            now_ns = began.elapsed().as_nanos() as u64;
            for number in answered {
                let slot = number as usize & (connection.sent_ns.len() - 1);
                counts.latencies.record(now_ns - connection.sent_ns[slot])?;
                counts.messages += 1;
                counts.windows.count(now_ns, 1);
                last_ns = now_ns;
            }
            under_way += connection.next - connection.answered;
        }
        if now_ns >= end_ns && under_way == 0 {
            break;
        }
        if now_ns - last_ns > ANSWER_MAX.as_nanos() as u64 {
            return Err(K2Error::Wrong(format!("no answer within {ANSWER_MAX:?}")));
        }
    }
    counts.seconds = began.elapsed().as_secs_f64();
    Ok(counts)
}

impl Connection {
    fn fill(
        &mut self,
        params: &CallParams,
        body: &Body,
        now_ns: u64,
        end_ns: u64,
    ) -> Result<(), K2Error> {
        let mask = self.sent_ns.len() - 1;
        while now_ns < end_ns && self.next - self.answered < params.window as u64 {
            let (number, mark) = Body::ends(self.next);
            let parts: [&[u8]; 3] = [&number, &body.filler, &mark];
            self.client.send(VERB, 0, &parts, self.next)?;
            self.sent_ns[self.next as usize & mask] = now_ns;
            self.next += 1;
        }
        Ok(self.client.flush()?)
    }

    /// The numbers of the requests that were answered, a range because answers come in order.
    fn receive(
        &mut self,
        params: &CallParams,
        wait: bool,
    ) -> Result<std::ops::Range<u64>, K2Error> {
        let first = self.answered;
        let (answered, mut bad) = (&mut self.answered, None);
        let on_answer = |answer: dyno_net::Answered<'_>| {
            let right = answer.result.as_ref().is_ok_and(|frame| {
                frame.body.len() == params.answer_bytes
                    && Body::number(frame.body) == Some(*answered)
            });
            match (right, answer.result) {
                (true, _) => *answered += 1,
                (false, Ok(frame)) => bad = Some(frame.body.to_vec()),
                // The connection's own error is returned by the call itself.
                (false, Err(_)) => bad = Some(Vec::new()),
            }
        };
        if wait && self.next > first {
            self.client.wait(ANSWER_MAX, on_answer)?
        } else {
            self.client.poll(on_answer)?
        };
        match bad {
            None => Ok(first..self.answered),
            Some(body) => Err(wrong("an answer", &body)),
        }
    }
}
