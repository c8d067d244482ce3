//! Calls of etcd's service, blocking, on one of several endpoints.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dyno_txn_api::{Code, Error, Result, Retry};
use tokio::runtime::Runtime;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, client::Grpc};
use tonic_prost::ProstCodec;

use crate::proto::{RangeRequest, RangeResponse, TxnRequest, TxnResponse};

/// The pause before another endpoint is asked.
const PAUSE: Duration = Duration::from_millis(20);
/// Messages of a whole page of rows pass.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

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
            let _entered = runtime.enter();
            let endpoint = Endpoint::from_shared(format!("http://{address}"))
                .map_err(|error| wrong(&format!("{address}: {error}")))?
                .connect_timeout(connect_wait)
                .tcp_nodelay(true);
            endpoints.push((address.clone(), endpoint.connect_lazy()));
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

    /// A transaction that writes: sent once. When its answer is lost nobody knows whether it was done.
    pub fn write(&self, request: TxnRequest, until: Instant) -> Result<TxnResponse> {
        let (address, channel) = self.endpoint();
        let called = call(channel, "/etcdserverpb.KV/Txn", request);
        let answered = self.runtime.block_on(within(until, called));
        answered.map_err(|status| {
            self.next();
            match meaning(&status) {
                Meaning::Refused(code) => refused(code, address, &status),
                Meaning::NotConnected => refused(Code::Unavailable, address, &status),
                Meaning::Lost => {
                    let text = format!("etcd at {address}: a commit's answer was lost: {status}");
                    Error::with_retry(Code::OutcomeUnknown, Retry::Unknown, text)
                }
            }
        })
    }

    /// Transactions that only read, all at the same time; asked again elsewhere while there is time.
    pub fn read(&self, requests: Vec<TxnRequest>, until: Instant) -> Result<Vec<TxnResponse>> {
        self.until_answered(until, |channel| {
            let requests = requests.clone();
            async move {
                let calls = requests
                    .into_iter()
                    .map(|request| call(channel, "/etcdserverpb.KV/Txn", request));
                futures::future::try_join_all(calls).await
            }
        })
    }

    /// One range.
    pub fn range(&self, request: RangeRequest, until: Instant) -> Result<RangeResponse> {
        self.until_answered(until, |channel| {
            call(channel, "/etcdserverpb.KV/Range", request.clone())
        })
    }

    fn until_answered<'a, T, F: Future<Output = std::result::Result<T, Status>>>(
        &'a self,
        until: Instant,
        ask: impl Fn(&'a Channel) -> F,
    ) -> Result<T> {
        loop {
            let (address, channel) = self.endpoint();
            let status = match self.runtime.block_on(within(until, ask(channel))) {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            if let Meaning::Refused(code) = meaning(&status) {
                return Err(refused(code, address, &status));
            }
            if Instant::now() + PAUSE >= until {
                return Err(refused(Code::Unavailable, address, &status));
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

async fn call<Q, A>(
    channel: &Channel,
    path: &'static str,
    request: Q,
) -> std::result::Result<A, Status>
where
    Q: prost::Message + Send + Sync + 'static,
    A: prost::Message + Default + Send + Sync + 'static,
{
    let mut grpc = Grpc::new(channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let not_ready =
        |error: tonic::transport::Error| Status::unavailable(format!("{NOT_READY}: {error:?}"));
    grpc.ready().await.map_err(not_ready)?;
    let codec: ProstCodec<Q, A> = ProstCodec::default();
    let path = PathAndQuery::from_static(path);
    let answer = grpc
        .unary(tonic::Request::new(request), path, codec)
        .await?;
    Ok(answer.into_inner())
}

/// What a failure before sending begins with.
const NOT_READY: &str = "no connection";

async fn within<T>(
    until: Instant,
    call: impl Future<Output = std::result::Result<T, Status>>,
) -> std::result::Result<T, Status> {
    match tokio::time::timeout_at(until.into(), call).await {
        Ok(answered) => answered,
        Err(_) => Err(Status::deadline_exceeded("no answer in time")),
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

fn meaning(status: &Status) -> Meaning {
    let said = status.message();
    match status.code() {
        tonic::Code::InvalidArgument if said.contains("too many operations") => {
            Meaning::Refused(Code::TooLarge)
        }
        tonic::Code::InvalidArgument if said.contains("request is too large") => {
            Meaning::Refused(Code::TooLarge)
        }
        tonic::Code::OutOfRange => Meaning::Refused(Code::TooOld),
        tonic::Code::InvalidArgument => Meaning::Refused(Code::BadArgument),
        tonic::Code::ResourceExhausted if said.contains("space exceeded") => {
            Meaning::Refused(Code::MemoryFull)
        }
        tonic::Code::ResourceExhausted if said.contains("too many requests") => {
            Meaning::Refused(Code::Overloaded)
        }
        tonic::Code::PermissionDenied | tonic::Code::Unauthenticated => {
            Meaning::Refused(Code::Denied)
        }
        _ if said.starts_with(NOT_READY) || said.contains("tcp connect error") => {
            Meaning::NotConnected
        }
        _ => Meaning::Lost,
    }
}

fn refused(code: Code, address: &str, status: &Status) -> Error {
    let hint = match code {
        Code::TooLarge => "; start etcd with a larger --max-txn-ops or --max-request-bytes",
        _ => "",
    };
    let text = format!("etcd at {address}: {}{hint}", status.message());
    Error::new(code, text)
}
