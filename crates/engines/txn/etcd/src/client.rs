//! Calls of etcd's service, blocking, on one of several endpoints.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dyno_txn_api::{Code, Error, Result, Retry};
use tokio::runtime::Runtime;

use crate::grpc::{Channel, Failure, code};
use crate::proto::{RangeRequest, RangeResponse, TxnRequest, TxnResponse};

/// The pause before another endpoint is asked.
const PAUSE: Duration = Duration::from_millis(20);
const TXN: &str = "/etcdserverpb.KV/Txn";
const RANGE: &str = "/etcdserverpb.KV/Range";

/// Connections to all endpoints; calls go to one of them until it fails.
pub struct Client {
    runtime: Runtime,
    endpoints: Vec<(String, Channel)>,
    current: AtomicUsize,
}

impl Client {
    /// Connections are made when they are needed first.
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

    /// A transaction that writes: sent once. When its answer is lost, the outcome is unknown.
    pub fn write(&self, request: TxnRequest, until: Instant) -> Result<TxnResponse> {
        let (address, channel) = self.endpoint();
        let called = channel.call(TXN, &request);
        let answered = self.runtime.block_on(within(until, called));
        answered.map_err(|failure| {
            self.next();
            match meaning(&failure) {
                Meaning::Refused(code) => refused(code, address, &failure),
                Meaning::NotConnected => refused(Code::Unavailable, address, &failure),
                Meaning::Lost => {
                    let text = format!("etcd at {address}: a commit's answer was lost: {failure}");
                    Error::with_retry(Code::OutcomeUnknown, Retry::Unknown, text)
                }
            }
        })
    }

    /// Transactions that only read, all at the same time; asked again elsewhere while there is
    /// time.
    pub fn read(&self, requests: Vec<TxnRequest>, until: Instant) -> Result<Vec<TxnResponse>> {
        self.until_answered(until, |channel| {
            let calls = requests.iter().map(|request| channel.call(TXN, request));
            futures::future::try_join_all(calls)
        })
    }

    /// One range.
    pub fn range(&self, request: RangeRequest, until: Instant) -> Result<RangeResponse> {
        self.until_answered(until, |channel| channel.call(RANGE, &request))
    }

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
            if let Meaning::Refused(code) = meaning(&failure) {
                return Err(refused(code, address, &failure));
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

enum Meaning {
    /// The server says no; asking elsewhere helps nothing.
    Refused(Code),
    /// Nothing was sent.
    NotConnected,
    /// It was sent, and what became of it is not known.
    Lost,
}

fn meaning(failure: &Failure) -> Meaning {
    let (code, said) = match failure {
        Failure::NotConnected(_) => return Meaning::NotConnected,
        Failure::Lost(_) => return Meaning::Lost,
        Failure::Status { code, message } => (*code, message),
    };
    match code {
        code::INVALID_ARGUMENT if said.contains("too many operations") => {
            Meaning::Refused(Code::TooLarge)
        }
        code::INVALID_ARGUMENT if said.contains("request is too large") => {
            Meaning::Refused(Code::TooLarge)
        }
        code::OUT_OF_RANGE => Meaning::Refused(Code::TooOld),
        code::INVALID_ARGUMENT => Meaning::Refused(Code::BadArgument),
        code::RESOURCE_EXHAUSTED if said.contains("space exceeded") => {
            Meaning::Refused(Code::MemoryFull)
        }
        code::RESOURCE_EXHAUSTED if said.contains("too many requests") => {
            Meaning::Refused(Code::Overloaded)
        }
        code::PERMISSION_DENIED | code::UNAUTHENTICATED => Meaning::Refused(Code::Denied),
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
