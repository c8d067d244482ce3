//! Opens a connection and authenticates it: the caller shows its token, and is welcomed or
//! refused.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use dyno_net::{Address, FrameRef, Head, Outbound, Port, PortOptions};
use dyno_serve::Token;
use dyno_txn_api::{Code, Error, Result};

use crate::error::{from_net, unavailable};
use crate::hello::{REFUSED, decode_refusal, encode_refusal};

/// How long the other side may take to answer the greeting.
const WELCOME_WAIT: Duration = Duration::from_secs(5);

/// A first frame, and the verb that its answer must have.
pub(crate) struct Greeting<'a> {
    pub verb: u8,
    pub body: &'a [u8],
    pub answer: u8,
}

/// Connects and greets. Returns the connection, and the body of the welcome. Blocks until then, or
/// until the other side has refused, ended the connection or said nothing for too long.
pub(crate) fn greet(
    address: &Address,
    options: &PortOptions,
    spin: Duration,
    greeting: &Greeting<'_>,
) -> Result<(Port, Vec<u8>)> {
    let mut port = Port::connect(address, options).map_err(from_net)?;
    let head = Head {
        verb: greeting.verb,
        flags: 0,
        request: 0,
    };
    let ended = |what: &dyn std::fmt::Display| unavailable(format!("{address}: {what}"));
    port.send(head, &[greeting.body])
        .map_err(|error| ended(&error))?;
    let mut answer: Option<Result<Vec<u8>>> = None;
    let take = |frame: FrameRef<'_>, _: &mut Outbound| {
        answer = Some(match frame.head.verb {
            verb if verb == greeting.answer => Ok(frame.body.to_vec()),
            REFUSED => {
                let error = decode_refusal(frame.body);
                let text = format!("{address}: {}", error.text());
                Err(Error::with_retry(error.kind(), error.retry(), text))
            }
            verb => {
                let text = format!("{address}: verb {verb} instead of a welcome");
                Err(Error::new(Code::Damaged, text))
            }
        });
        ControlFlow::Continue(())
    };
    let began = Instant::now();
    let waited = port.wait(spin, WELCOME_WAIT, take);
    // An answer counts even if the connection has ended after it: a refusal is followed by the end,
    // and says why.
    match (answer, waited) {
        (Some(answer), _) => answer.map(|welcome| (port, welcome)),
        (None, Err(closed)) => Err(from_net(closed.into_error(&address.to_string()))),
        (None, Ok(_)) => Err(ended(&format!("no welcome within {:?}", began.elapsed()))),
    }
}

/// Checks the token that the other end of a connection has shown, if this end has one.
pub(crate) fn check_token(token: Option<&Token>, shown: &[u8]) -> Result<()> {
    match token {
        Some(token) if !token.is(shown) => {
            Err(Error::new(Code::Denied, "the token is not this server's"))
        }
        _ => Ok(()),
    }
}

/// Goes on with a connection whose frame was handled, or says why it was not and ends the
/// connection. If the outbox is full the reason is lost, and the other end sees only that its
/// connection ends.
pub(crate) fn end_on_error(
    handled: Result<()>,
    request: u32,
    out: &mut Outbound,
) -> ControlFlow<()> {
    let Err(error) = handled else {
        return ControlFlow::Continue(());
    };
    let head = Head {
        verb: REFUSED,
        flags: 0,
        request,
    };
    let _ = out.send(head, &[&encode_refusal(&error)]);
    ControlFlow::Break(())
}
