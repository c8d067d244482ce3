//! The client's end of a connection to a broker: messages instead of frames.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dyno_net::rustls::ClientConfig;
use dyno_net::{Address, Answer, CallOptions, Caller, NetError};

use super::{Ask, Failed, Hello, Message, Verb, Welcome, WireError};
use crate::error::{Code, Error, Result, Retry};

/// A connection that a broker has admitted. Clones share it.
#[derive(Clone)]
pub struct Client {
    caller: Caller,
    welcome: Welcome,
}

/// How to connect to a broker, and how long to wait for it.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The broker's secret; empty if the broker wants none.
    pub token: String,
    /// A name by which people find the client in the broker's lists.
    pub name: String,
    /// How many requests may be under way at once; a further one waits.
    pub window: usize,
    /// TLS, for a broker over TCP.
    pub tls: Option<Arc<ClientConfig>>,
    /// How long connecting may take.
    pub connect_wait: Duration,
    /// How long a request may take. It has to be longer than any fetch waits.
    pub answer_wait: Duration,
}

impl Default for ClientOptions {
    fn default() -> ClientOptions {
        ClientOptions {
            token: String::new(),
            name: "dyno-pubsub".to_owned(),
            window: 4096,
            tls: None,
            connect_wait: Duration::from_secs(5),
            answer_wait: Duration::from_secs(90),
        }
    }
}

impl Client {
    /// Connects and introduces the client with a Hello.
    ///
    /// # Errors
    /// `server-lost` when nothing listens, `denied` for a wrong token, `bad-argument` for an
    /// text that is not an address.
    pub fn connect(address: &str, options: &ClientOptions) -> Result<Client> {
        let address: Address = address.parse().map_err(Error::bad_argument)?;
        let bounds = CallOptions {
            window: options.window,
            connect_wait: options.connect_wait,
            answer_wait: Some(options.answer_wait),
            tls: options.tls.clone(),
            ..CallOptions::default()
        };
        // Nothing was asked yet, so every failure can be tried again, unless the next attempt would
        // fail in the same way.
        let lost = |error: NetError| {
            if error.is_lasting() {
                Error::with_retry(Code::ServerLost, Retry::Never, error)
            } else {
                Error::new(Code::ServerLost, error)
            }
        };
        let caller = Caller::connect(&address, bounds).map_err(lost)?;
        let hello = Hello {
            token: options.token.clone(),
            client: options.name.clone(),
        };
        let answer = caller.call(Verb::Hello as u8, 0, &hello.parts());
        let welcome = match answer {
            Ok(frame) => read::<Hello>(Ok(frame))?,
            Err(error) => return Err(lost(error)),
        };
        Ok(Client { caller, welcome })
    }

    /// The broker's name, new with every start of it.
    pub fn broker(&self) -> &str {
        &self.welcome.broker
    }

    /// The longest body that the broker takes, in bytes.
    pub fn most_body_bytes(&self) -> usize {
        self.welcome.most_body_bytes as usize
    }

    /// Whether the connection has ended, for good: open another.
    pub fn is_closed(&self) -> bool {
        self.caller.ended().is_some()
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// What the broker says, or `outcome-unknown` if no answer came.
    pub fn ask<A: Ask>(&self, request: &A) -> Result<A::Answer> {
        read::<A>(self.caller.call(A::VERB as u8, 0, &request.parts()))
    }

    /// Sends a request and returns. `then` runs exactly once, on the thread that reads the
    /// connection, and must not block. While the window is full the call waits for room.
    pub fn send<A: Ask>(&self, request: &A, then: impl FnOnce(Result<A::Answer>) + Send + 'static) {
        self.caller
            .send(A::VERB as u8, 0, &request.parts(), move |answer| {
                then(read::<A>(answer));
            });
    }

    /// Ends the connection. Requests under way end with `outcome-unknown`.
    pub fn close(&self) {
        self.caller.close();
    }
}

fn read<A: Ask>(answer: Answer) -> Result<A::Answer> {
    let frame = answer.map_err(|error| unanswered(&error))?;
    let found = frame.head.verb;
    if found == Verb::Error as u8 {
        return Err(refused(frame.body));
    }
    let expected = <A::Answer as Message>::VERB as u8;
    if found != expected {
        let error = WireError::Verb {
            message: "an answer",
            expected,
            found,
        };
        return Err(Error::new(Code::Damaged, error));
    }
    A::Answer::decode(frame.body).map_err(|error| Error::new(Code::Damaged, error))
}

fn unanswered(error: &NetError) -> Error {
    if error.unsent() {
        return Error::new(Code::Overloaded, error);
    }
    Error::new(Code::OutcomeUnknown, error)
}

/// The broker's error, as if it had happened here. A code of a later version keeps its text.
fn refused(body: Bytes) -> Error {
    let failed = match Failed::decode(body) {
        Ok(failed) => failed,
        Err(error) => return Error::new(Code::Damaged, error),
    };
    let retry = match failed.retry {
        0 => Retry::Safe,
        1 => Retry::Never,
        _ => Retry::Unknown,
    };
    match Code::named(&failed.code) {
        Some(code) => Error::with_retry(code, retry, failed.text),
        None => {
            let text = format_args!("{}: {}", failed.code, failed.text);
            Error::with_retry(Code::Refused, retry, text)
        }
    }
}
