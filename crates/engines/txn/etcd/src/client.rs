//! Blocking calls of etcd's service, on one of several endpoints.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dyno_txn_api::{Code, Error, Result, Retry};
use tokio::runtime::Runtime;

use crate::grpc::{Channel, Failure, code};
use crate::proto::{RangeRequest, RangeResponse, TxnRequest, TxnResponse};

/// The pause before another endpoint is tried.
const PAUSE: Duration = Duration::from_millis(20);
const TXN: &str = "/etcdserverpb.KV/Txn";
const RANGE: &str = "/etcdserverpb.KV/Range";

/// Connections to all endpoints. Calls go to one of them until it fails.
pub struct Client {
    runtime: Runtime,
    endpoints: Vec<(String, Channel)>,
    current: AtomicUsize,
}

impl Client {
    /// Makes a client. Connections are made when they are first needed.
    pub fn new(addresses: &[String], connect_wait: Duration) -> Result<Client> {
        let wrong =
            |what: &dyn std::fmt::Display| Error::new(Code::BadArgument, format!("etcd: {what}"));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("etcd-client")
            .enable_all()
            .build()
            .map_err(|error| wrong(&error))?;
        let mut endpoints = Vec::new();
        for address in addresses {
            let channel = Channel::new(address, connect_wait).map_err(|reason| wrong(&reason))?;
            endpoints.push((address.clone(), channel));
        }
        if endpoints.is_empty() {
            return Err(wrong(&"no address"));
        }
        Ok(Client {
            runtime,
            endpoints,
            current: AtomicUsize::new(0),
        })
    }

    /// Runs a transaction that writes. It is sent once: if the first attempt took effect, a
    /// repetition would report a conflict with it. If the answer is lost, the outcome is unknown.
    pub fn write(&self, request: TxnRequest, until: Instant) -> Result<TxnResponse> {
        let (address, channel) = self.endpoint();
        let called = channel.call(TXN, &request);
        let answered = self.runtime.block_on(within(until, called));
        answered.map_err(|failure| {
            // The next call tries another endpoint, also if only the answer was lost.
            self.next();
            match meaning(&failure) {
                Meaning::Refused(code) => refused(code, address, &failure),
                Meaning::NotConnected => refused(Code::Unavailable, address, &failure),
                Meaning::TooLong | Meaning::Lost => {
                    let text = format!("etcd at {address}: a commit's answer was lost: {failure}");
                    Error::with_retry(Code::OutcomeUnknown, Retry::Unknown, text)
                }
            }
        })
    }

    /// Runs transactions that only read, all at the same time. They are repeated on other endpoints
    /// until the deadline, because reading twice does no harm.
    pub fn read(&self, requests: Vec<TxnRequest>, until: Instant) -> Result<Vec<TxnResponse>> {
        self.until_answered(until, |channel| {
            let calls = requests.iter().map(|request| channel.call(TXN, request));
            futures::future::try_join_all(calls)
        })
    }

    /// Reads one range, with the same repetition as [`Client::read`].
    pub fn range(&self, request: RangeRequest, until: Instant) -> Result<RangeResponse> {
        self.until_answered(until, |channel| channel.call(RANGE, &request))
    }

    /// Repeats a call on one endpoint after the other until one answers or refuses it.
    fn until_answered<'a, T, F: Future<Output = std::result::Result<T, Failure>>>(
        &'a self,
        until: Instant,
        ask: impl Fn(&'a Channel) -> F,
    ) -> Result<T> {
        loop {
            let (address, channel) = self.endpoint();
            let failure = match self.runtime.block_on(within(until, ask(channel))) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            match meaning(&failure) {
                Meaning::Refused(code) => return Err(refused(code, address, &failure)),
                Meaning::TooLong => {
                    let text = format!("etcd at {address}: {failure}");
                    return Err(Error::new(Code::TooLarge, text));
                }
                Meaning::NotConnected | Meaning::Lost => {}
            }
            if Instant::now() + PAUSE >= until {
                return Err(refused(Code::Unavailable, address, &failure));
            }
            self.next();
            std::thread::sleep(PAUSE);
        }
    }

    fn endpoint(&self) -> &(String, Channel) {
        &self.endpoints[self.current.load(Ordering::Relaxed) % self.endpoints.len()]
    }

    fn next(&self) {
        self.current.fetch_add(1, Ordering::Relaxed);
    }
}

async fn within<T>(
    until: Instant,
    call: impl Future<Output = std::result::Result<T, Failure>>,
) -> std::result::Result<T, Failure> {
    match tokio::time::timeout_at(until.into(), call).await {
        Ok(answered) => answered,
        Err(_) => Err(Failure::Lost("no answer in time".to_owned())),
    }
}

/// What a failed call says about the request.
enum Meaning {
    /// The server refuses the request, and so would all others.
    Refused(Code),
    /// The request was not sent, so it had no effect.
    NotConnected,
    /// The request was sent, and its answer is longer than is accepted.
    TooLong,
    /// The request was sent, and its effect is not known.
    Lost,
}

fn meaning(failure: &Failure) -> Meaning {
    let (code, message) = match failure {
        Failure::NotConnected(_) => return Meaning::NotConnected,
        Failure::Lost(_) => return Meaning::Lost,
        Failure::TooLong(_) => return Meaning::TooLong,
        Failure::Status { code, message } => (*code, message),
    };
    match code {
        code::INVALID_ARGUMENT if message.contains("too many operations") => {
            Meaning::Refused(Code::TooLarge)
        }
        code::INVALID_ARGUMENT if message.contains("request is too large") => {
            Meaning::Refused(Code::TooLarge)
        }
        code::OUT_OF_RANGE => Meaning::Refused(Code::TooOld),
        code::INVALID_ARGUMENT => Meaning::Refused(Code::BadArgument),
        // The library of the server refuses a request that is much too large before etcd sees it.
        code::RESOURCE_EXHAUSTED if message.contains("received message larger than max") => {
            Meaning::Refused(Code::TooLarge)
        }
        code::RESOURCE_EXHAUSTED if message.contains("space exceeded") => {
            Meaning::Refused(Code::MemoryFull)
        }
        code::RESOURCE_EXHAUSTED if message.contains("too many requests") => {
            Meaning::Refused(Code::Overloaded)
        }
        code::PERMISSION_DENIED | code::UNAUTHENTICATED => Meaning::Refused(Code::Denied),
        // Other statuses, for example of a member without a leader, may come before or after the
        // request took effect.
        _ => Meaning::Lost,
    }
}

fn refused(code: Code, address: &str, failure: &Failure) -> Error {
    let hint = match code {
        Code::TooLarge => "; start etcd with a larger --max-txn-ops or --max-request-bytes",
        _ => "",
    };
    let text = format!("etcd at {address}: {failure}{hint}");
    Error::new(code, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_refuses_is_told_from_what_is_lost() {
        let exhausted = |message: &str| {
            meaning(&Failure::Status {
                code: code::RESOURCE_EXHAUSTED,
                message: message.to_owned(),
            })
        };
        for (message, wanted) in [
            (
                "grpc: received message larger than max (3000000 vs. 2097152)",
                Code::TooLarge,
            ),
            (
                "etcdserver: mvcc: database space exceeded",
                Code::MemoryFull,
            ),
            ("etcdserver: too many requests", Code::Overloaded),
        ] {
            let refused = exhausted(message);
            assert!(
                matches!(refused, Meaning::Refused(code) if code == wanted),
                "{message}"
            );
        }
        assert!(matches!(exhausted("other"), Meaning::Lost));
        let long = Failure::TooLong("long".to_owned());
        assert!(matches!(meaning(&long), Meaning::TooLong));
    }
}
