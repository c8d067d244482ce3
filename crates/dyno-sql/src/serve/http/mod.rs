//! HTTP/1.1: statements, spots by filters, what clocks fetch, metrics, and a page.
//!
//! Each connection serves one request, because answers are long and clients few. A request is read
//! whole before it is answered, and both have a time limit.

mod answer;
mod forms;
mod hamclock;
mod page;
mod query;
mod request;
mod spots;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dyno_serve::rustls::ServerConfig;
use dyno_serve::{Registry, Token};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use self::answer::Answer;
use self::request::{BadRequest, HEAD_BYTES, Request, head_length};
use super::engine::Engine;

/// The pause after an accept that failed, for example because the process is out of descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest time that a client may take to send its request.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);
/// The longest time of a connection beyond that of a statement.
const SPARE: Duration = Duration::from_secs(20);

/// What all requests share.
pub struct Shared {
    engine: Arc<Engine>,
    registry: Registry,
    token: Option<Token>,
    tls: Option<TlsAcceptor>,
    /// Whether clients on other machines can connect.
    beyond: bool,
    connections: Arc<Semaphore>,
}

impl Shared {
    /// Serves statements of `engine` and the numbers of `registry` at `address`.
    pub fn new(
        engine: Arc<Engine>,
        registry: Registry,
        token: Option<Token>,
        tls: Option<Arc<ServerConfig>>,
        address: SocketAddr,
        most_connections: usize,
    ) -> Self {
        Self {
            engine,
            registry,
            token,
            tls: tls.map(TlsAcceptor::from),
            beyond: !address.ip().to_canonical().is_loopback(),
            connections: Arc::new(Semaphore::new(most_connections)),
        }
    }
}

/// Accepts clients until `stop` changes, which ends all connections.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            _ = stop.changed() => break,
        };
        match accepted {
            Ok((socket, _)) => {
                // A client above the limit is closed without a word: to tell it why would take the
                // same resources as to serve it.
                let Ok(slot) = Arc::clone(&shared.connections).try_acquire_owned() else {
                    shared.engine.counts().turned_away.add(1);
                    continue;
                };
                let shared = Arc::clone(&shared);
                connections.spawn(async move {
                    let _slot = slot;
                    let within = REQUEST_WITHIN + shared.engine.time_limit() + SPARE;
                    let served = tokio::time::timeout(within, shared.converse(socket));
                    if let Ok(Err(error)) = served.await {
                        debug!("a request ended: {error}");
                    }
                });
            }
            Err(error) => {
                warn!("cannot accept a client: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

impl Shared {
    async fn converse(&self, socket: TcpStream) -> io::Result<()> {
        socket.set_nodelay(true)?;
        match &self.tls {
            Some(acceptor) => {
                let accepted = acceptor.accept(socket);
                let stream = tokio::time::timeout(REQUEST_WITHIN, accepted).await??;
                self.exchange(stream).await
            }
            None => self.exchange(socket).await,
        }
    }

    async fn exchange(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let read = tokio::time::timeout(REQUEST_WITHIN, read(&mut stream)).await??;
        self.engine.counts().requests.add(1);
        match read {
            Some(Ok((request, body))) => {
                let head_only = request.method == "HEAD";
                let answer = self.answer(&request, &body).await;
                answer.send(&mut stream, head_only).await?;
            }
            Some(Err(BadRequest(status, reason))) => {
                let answer = Answer::error(status, "bad request", reason);
                answer.send(&mut stream, false).await?;
            }
            // The client closed the connection without asking.
            None => {}
        }
        stream.shutdown().await
    }

    async fn answer(&self, request: &Request, body: &[u8]) -> Answer {
        if !self.is_for_us(request) {
            // A page of another site can point a name of its own at this machine, and would then be
            // allowed to read the answers.
            let why =
                "the host is not this machine: ask by its address, or give the server a token";
            return Answer::error(403, "forbidden", why);
        }
        let known = self.knows_token(request);
        if request.path == "/healthz" {
            return self.health(known);
        }
        if !known {
            return Answer::error(
                401,
                "unauthorized",
                "send the token: Authorization: Bearer TOKEN",
            );
        }
        let reads = matches!(request.method.as_str(), "GET" | "HEAD");
        match (request.path.as_str(), reads) {
            ("/query", _) => query::answer(&self.engine, request, body).await,
            ("/", true) => page::answer(),
            ("/spots", true) => spots::answer(&self.engine, request).await,
            ("/metrics", true) => Answer::metrics(self.registry.text()),
            (path, true) => match path.rsplit('/').next().and_then(hamclock::Fetched::named) {
                Some(fetched) => hamclock::answer(&self.engine, fetched, request).await,
                None => Answer::error(
                    404,
                    "not found",
                    "there are /, /query, /spots, /metrics, /healthz and HamClock's fetch*.pl",
                ),
            },
            _ => Answer::error(
                405,
                "method not allowed",
                "only /query takes another than GET",
            ),
        }
    }

    /// Whether the table can be opened now, which is what every statement needs.
    fn health(&self, known: bool) -> Answer {
        match self.engine.check() {
            Ok(()) => Answer::text("ok\n".to_owned()),
            Err(refusal) if known => Answer::refused(&refusal),
            // A probe has no token, so it learns that the server is not well, but not the reason.
            Err(_) => Answer::error(503, "not well", "the reason is for clients with the token"),
        }
    }

    fn is_for_us(&self, request: &Request) -> bool {
        if self.beyond || self.token.is_some() {
            return true;
        }
        let host = request.header("host").unwrap_or("localhost");
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok()
    }

    /// Programs send the token as a bearer's (RFC 6750), browsers as the password of a user of any
    /// name (RFC 7617), because they ask for that themselves.
    fn knows_token(&self, request: &Request) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let sent = request.header("authorization").unwrap_or_default();
        let Some((scheme, rest)) = sent.split_once(' ') else {
            return false;
        };
        if scheme.eq_ignore_ascii_case("bearer") {
            return token.is(rest.trim().as_bytes());
        }
        let pair = STANDARD.decode(rest.trim()).unwrap_or_default();
        let colon = pair.iter().position(|byte| *byte == b':');
        let password = colon.and_then(|colon| pair.get(colon + 1..));
        scheme.eq_ignore_ascii_case("basic") && token.is(password.unwrap_or_default())
    }
}

/// A request with its body; `None` if the client closed the connection first.
async fn read(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> io::Result<Option<Result<(Request, Vec<u8>), BadRequest>>> {
    let mut bytes = Vec::with_capacity(1024);
    let end = loop {
        if let Some(end) = head_length(&bytes) {
            break end;
        }
        if bytes.len() >= HEAD_BYTES {
            return Ok(Some(Err(BadRequest(431, "its head is longer than 16 KiB"))));
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let mut body = bytes.split_off(end);
    let parsed = Request::parse(&bytes).and_then(|request| {
        let length = request.body_length()?;
        Ok((request, length))
    });
    let (request, length) = match parsed {
        Ok(parsed) => parsed,
        Err(refused) => return Ok(Some(Err(refused))),
    };
    // `curl` waits for this before it sends a longer body, and for a second without it.
    if request.header("expect").is_some() && body.len() < length {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    while body.len() < length {
        if stream.read_buf(&mut body).await? == 0 {
            return Ok(None);
        }
    }
    body.truncate(length);
    Ok(Some(Ok((request, body))))
}
