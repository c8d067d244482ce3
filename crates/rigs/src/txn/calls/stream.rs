//! Messages one way, with an answer to every few: an answer acknowledges all messages up to its
//! own.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use dyno_measure::Latencies;
use dyno_net::{Address, FrameRef, Head, Outbound, Port, SendError};

use super::server::{VERB, port_options};
use super::{Body, CallCounts, CallParams, K2Error, WARM_UP, wrong};
use crate::Windows;

/// How long an answer may take before the run fails.
const ANSWER_MAX: Duration = Duration::from_secs(10);

pub(super) fn run(params: &CallParams, address: &Address) -> Result<CallCounts, K2Error> {
    let port = Port::connect(address, &port_options(params.transport))?;
    let mut stream = Stream {
        port,
        next: 0,
        answered: 0,
        sent_ns: vec![0; params.window.next_power_of_two()],
    };
    stream.once(params, params.duration / WARM_UP)?;
    stream.once(params, params.duration)
}

struct Stream {
    port: Port,
    next: u64,
    answered: u64,
    sent_ns: Vec<u64>,
}

impl Stream {
    fn once(&mut self, params: &CallParams, duration: Duration) -> Result<CallCounts, K2Error> {
        let body = Body::new(params.request_bytes);
        let began = Instant::now();
        let (first, end_ns) = (self.answered, duration.as_nanos() as u64);
        let mut latencies = Latencies::new()?;
        let mut windows = Windows::over(duration);
        let (mut now_ns, mut last_ns) = (0, 0);
        // Only whole groups are sent, so that the last message is answered too.
        while now_ns < end_ns || !self.next.is_multiple_of(params.every as u64) {
            self.fill(params, &body, now_ns)?;
            now_ns = began.elapsed().as_nanos() as u64;
            let before = self.answered;
            if self.receive(params, now_ns, &mut latencies)? {
                last_ns = now_ns;
                windows.count(now_ns, self.answered - before);
            }
            expect_life(now_ns, last_ns)?;
        }
        while self.answered < self.next {
            now_ns = began.elapsed().as_nanos() as u64;
            if self.receive(params, now_ns, &mut latencies)? {
                last_ns = now_ns;
            }
            expect_life(now_ns, last_ns)?;
        }
        Ok(CallCounts {
            messages: self.answered - first,
            seconds: began.elapsed().as_secs_f64(),
            latencies,
            windows,
            transport: self.port.transport().kind.to_string(),
        })
    }

    fn fill(&mut self, params: &CallParams, body: &Body, now_ns: u64) -> Result<(), K2Error> {
        let mask = self.sent_ns.len() - 1;
        while self.next - self.answered < params.window as u64 {
            let (number, mark) = Body::ends(self.next);
            let head = Head {
                verb: VERB,
                flags: 0,
                request: self.next as u32,
            };
            match self.port.send(head, &[&number, &body.filler, &mark]) {
                Ok(()) => {}
                // What is queued must be sent first.
                Err(SendError::Full { .. }) => break,
                Err(error) => return Err(K2Error::Wrong(error.to_string())),
            }
            self.sent_ns[self.next as usize & mask] = now_ns;
            self.next += 1;
        }
        Ok(())
    }

    /// Reads answers that have arrived and sends what is queued. Returns whether an answer arrived.
    fn receive(
        &mut self,
        params: &CallParams,
        now_ns: u64,
        latencies: &mut Latencies,
    ) -> Result<bool, K2Error> {
        let (mut upto, mut bad) = (self.answered, None);
        let take = |frame: FrameRef<'_>, _: &mut Outbound| {
            let right = frame.body.len() == params.answer_bytes;
            match Body::number(frame.body) {
                Some(number) if right && number + 1 == upto + params.every as u64 => {
                    upto = number + 1;
                }
                _ => bad = Some(frame.body.to_vec()),
            }
            ControlFlow::Continue(())
        };
        let polled = self.port.poll(take);
        polled.map_err(|closed| closed.into_error("the other end"))?;
        if let Some(body) = bad {
            return Err(wrong("an answer", &body));
        }
        let mask = self.sent_ns.len() - 1;
        for number in self.answered..upto {
            latencies.record(now_ns - self.sent_ns[number as usize & mask])?;
        }
        let came = upto > self.answered;
        self.answered = upto;
        Ok(came)
    }
}

fn expect_life(now_ns: u64, last_ns: u64) -> Result<(), K2Error> {
    if now_ns - last_ns > ANSWER_MAX.as_nanos() as u64 {
        Err(K2Error::Wrong(format!("no answer within {ANSWER_MAX:?}")))
    } else {
        Ok(())
    }
}
