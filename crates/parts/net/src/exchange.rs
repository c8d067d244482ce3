//! A measured loop of requests and answers, each answer verified: what `examples/rpc.rs` and the
//! lab run. The server's side is [`Echo`], a handler for a [`crate::Reactor`].
//!
//! A request begins with its number and ends with a mark made from it; the answer repeats the
//! number plus one, and the mark, so that an answer proves that the whole request was read.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::{Client, FrameRef, Handler, Head, NetError, Outbound, PortId};

/// The verb of these requests and answers.
pub const VERB: u8 = 1;
/// The shortest request and the shortest answer: a number and a mark.
pub const LEAST_BYTES: usize = NUMBER_BYTES + MARK_BYTES;

const NUMBER_BYTES: usize = 8;
const MARK_BYTES: usize = 2;

/// The plan of an exchange: how long the bodies are, how many are under way, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Exchange {
    /// Length of a request's body, at least [`LEAST_BYTES`].
    pub request_bytes: usize,
    /// Length of an answer's body, which the server's [`Echo`] must have too.
    pub answer_bytes: usize,
    /// Requests under way at once, at most the client's window.
    pub window: usize,
    /// How long to send; requests that are under way then are waited for.
    pub duration: Duration,
}

/// The result of an exchange that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchanged {
    /// Requests that got the right answer.
    pub answers: u64,
    /// Time from the first request to the last answer.
    pub elapsed: Duration,
}

/// Why an exchange was broken off.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The connection failed, or a request was refused.
    #[error(transparent)]
    Net(#[from] NetError),
    /// An answer does not belong to its request.
    #[error("the answer to request {number} is wrong: {found:?}")]
    Wrong {
        /// The number of the request.
        number: u64,
        /// The first bytes of the answer; empty if none came.
        found: Vec<u8>,
    },
    /// A length or the window is too small.
    #[error("{what} is {found}, at least {least} is needed")]
    Plan {
        /// The parameter, in words.
        what: &'static str,
        /// Its value in the plan.
        found: usize,
        /// The least value that it may have.
        least: usize,
    },
}

/// Runs the plan. `on_latency` gets the nanoseconds of each request, from before it was made to
/// after its answer was verified. In a window the clock is read once for all that is sent or
/// verified in one pass.
pub fn exchange(
    client: &mut Client,
    plan: &Exchange,
    mut on_latency: impl FnMut(u64),
) -> Result<Exchanged, ExchangeError> {
    check("the length of a request", plan.request_bytes, LEAST_BYTES)?;
    check("the length of an answer", plan.answer_bytes, LEAST_BYTES)?;
    check("the window", plan.window, 1)?;
    let filler: Vec<u8> = (0..plan.request_bytes - LEAST_BYTES)
        .map(|at| (at % 251) as u8)
        .collect();
    let slots = plan.window.next_power_of_two();
    // A request's number is its token; two requests of one window differ in their slot.
    let mut sent_at = vec![0_u64; slots];
    let began = Instant::now();
    let end = plan.duration.as_nanos() as u64;
    let (mut next, mut answers, mut wrong, mut now) = (0_u64, 0_u64, None, 0_u64);
    let mut done = vec![true; slots];
    let mut finished = Vec::with_capacity(slots);
    loop {
        while now < end && next - answers < plan.window as u64 && done[next as usize & (slots - 1)]
        {
            let (number, mark) = (next.to_le_bytes(), mark(next));
            client.send(VERB, 0, &[&number, &filler, &mark], next)?;
            sent_at[next as usize & (slots - 1)] = now;
            done[next as usize & (slots - 1)] = false;
            next += 1;
        }
        client.flush()?;
        if answers == next {
            break;
        }
        client.wait(Duration::from_millis(100), |answer| {
            answers += 1;
            let number = answer.token;
            match answer.result {
                Ok(frame) if is_right(number, frame.body, plan.answer_bytes) => {
                    finished.push(number as usize & (slots - 1));
                }
                Ok(frame) => {
                    wrong = Some((number, frame.body[..frame.body.len().min(16)].to_vec()))
                }
                // An answer that is too late; a failed connection is reported by the call itself.
                Err(_) => wrong = Some((number, Vec::new())),
            }
        })?;
        if let Some((number, found)) = wrong {
            return Err(ExchangeError::Wrong { number, found });
        }
        // The clock is read once in a pass; once for each answer it would cost a tenth of the time.
        now = began.elapsed().as_nanos() as u64;
        for slot in finished.drain(..) {
            on_latency(now - sent_at[slot]);
            done[slot] = true;
        }
    }
    Ok(Exchanged {
        answers,
        elapsed: began.elapsed(),
    })
}

fn check(what: &'static str, found: usize, least: usize) -> Result<(), ExchangeError> {
    if found < least {
        Err(ExchangeError::Plan { what, found, least })
    } else {
        Ok(())
    }
}

/// Two bytes that depend on the whole number.
fn mark(number: u64) -> [u8; MARK_BYTES] {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    [(mixed >> 56) as u8, (mixed >> 48) as u8]
}

fn is_right(number: u64, body: &[u8], bytes: usize) -> bool {
    body.len() == bytes
        && body[..NUMBER_BYTES] == (number + 1).to_le_bytes()
        && body[bytes - MARK_BYTES..] == mark(number)
}

/// The server's side of an exchange.
#[derive(Debug)]
pub struct Echo {
    filler: Vec<u8>,
}

impl Echo {
    /// A handler that answers with bodies of `answer_bytes`, at least [`LEAST_BYTES`].
    pub fn new(answer_bytes: usize) -> Result<Echo, ExchangeError> {
        check("the length of an answer", answer_bytes, LEAST_BYTES)?;
        Ok(Echo {
            filler: vec![0; answer_bytes - LEAST_BYTES],
        })
    }
}

impl Handler for Echo {
    fn frame(&mut self, _: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> ControlFlow<()> {
        let (Some(number), Some(mark)) = (
            frame.body.first_chunk::<NUMBER_BYTES>(),
            frame.body.last_chunk::<MARK_BYTES>(),
        ) else {
            return ControlFlow::Break(());
        };
        let number = u64::from_le_bytes(*number).wrapping_add(1).to_le_bytes();
        let head = Head {
            flags: 1,
            ..frame.head
        };
        match out.send(head, &[&number, &self.filler, mark]) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}
