//! The connection to the broker: a thread that reads messages, passes them on, and connects again
//! when the connection is lost.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::{Duration, Instant};

use dyno_random::backoff;
use dyno_serve::rustls::ClientConfig;

use crate::Broker;
use crate::link::{self, Link};
use crate::packet::{self, PACKET_BYTES_MAX, Packet};

/// The time limit for a connection to be made, and for the first answers on it.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How often a wait checks for a stop request.
const TICK: Duration = Duration::from_millis(50);

/// What the thread tells the collector.
#[derive(Debug)]
pub(crate) enum Heard {
    /// The broker has accepted the subscription.
    Connected,
    /// The connection was lost or could not be made, for this reason.
    Disconnected(String),
    /// The broker refuses us, and would do so again. The thread has ended.
    Refused(String),
    /// One message, with the time at which it was read.
    Message {
        received_ms: i64,
        topic: String,
        payload: Vec<u8>,
    },
}

/// The parameters of the thread.
pub(crate) struct Listening {
    pub(crate) broker: Broker,
    /// The certificates to trust, for a broker that is reached through TLS.
    pub(crate) tls: Option<Arc<ClientConfig>>,
    pub(crate) client_id: String,
    pub(crate) keep_alive: Duration,
    /// The first and the longest wait after failures; each is twice the one before.
    pub(crate) waits: (Duration, Duration),
    pub(crate) clock: Arc<dyn Fn() -> i64 + Send + Sync>,
    pub(crate) stop: Arc<AtomicBool>,
}

enum Ended {
    /// The collector no longer listens, or has asked for a stop.
    Stopped,
    /// The broker refused, and would give the same answer again.
    Refused(String),
    /// The connection was lost, or could not be made.
    Cut(String),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Ended {
        Ended::Cut(error.to_string())
    }
}

impl Listening {
    /// Passes on what the broker sends until the receiver is gone, [`Listening::stop`] is set, or
    /// the broker refuses.
    pub(crate) fn run(self, heard: &SyncSender<Heard>) {
        let mut failures = 0;
        while !self.stopped() {
            let mut was_connected = false;
            let ended = self.one_connection(heard, &mut was_connected);
            let last = match ended {
                Ended::Stopped => return,
                Ended::Refused(reason) => Heard::Refused(reason),
                Ended::Cut(reason) => Heard::Disconnected(reason),
            };
            // The collector is told in every case, because each end of a connection becomes a line
            // of the file.
            let refused = matches!(last, Heard::Refused(_));
            if heard.send(last).is_err() || refused {
                return;
            }
            failures = if was_connected { 0 } else { failures + 1 };
            self.wait(failures);
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Connects and listens until the connection ends, and returns the reason.
    fn one_connection(&self, heard: &SyncSender<Heard>, was_connected: &mut bool) -> Ended {
        match self.listen(heard, was_connected) {
            Ok(never) => match never {},
            Err(ended) => ended,
        }
    }

    fn listen(
        &self,
        heard: &SyncSender<Heard>,
        was_connected: &mut bool,
    ) -> Result<std::convert::Infallible, Ended> {
        let mut socket = self.connect()?;
        let keep_alive_s = u16::try_from(self.keep_alive.as_secs()).unwrap_or(u16::MAX);
        let Broker { user, password, .. } = &self.broker;
        socket.write_all(&packet::connect(
            &self.client_id,
            keep_alive_s,
            user.as_deref(),
            password.as_deref(),
        ))?;
        let mut bytes = Vec::new();
        let (mut sent, mut got) = (Instant::now(), Instant::now());
        loop {
            if self.stopped() {
                // Whether the broker still hears it makes no difference to us.
                let _ = socket.write_all(&packet::DISCONNECT);
                return Err(Ended::Stopped);
            }
            if fill(&mut socket, &mut bytes)? {
                got = Instant::now();
                let used = self.pass_on(&bytes, &mut socket, heard, was_connected)?;
                bytes.drain(..used);
            }
            // A broker answers pings, so on a good connection something arrives at least twice in
            // the time of a keep-alive.
            let patience = if *was_connected {
                self.keep_alive * 3 / 2
            } else {
                CONNECT_WITHIN
            };
            if got.elapsed() > patience {
                return Err(Ended::Cut(format!(
                    "nothing came for {} s",
                    patience.as_secs()
                )));
            }
            if *was_connected && sent.elapsed() > self.keep_alive / 2 {
                socket.write_all(&packet::PING)?;
                sent = Instant::now();
            }
        }
    }

    /// Passes on all packets that are complete, and returns how many bytes they have.
    fn pass_on(
        &self,
        bytes: &[u8],
        socket: &mut Link,
        heard: &SyncSender<Heard>,
        was_connected: &mut bool,
    ) -> Result<usize, Ended> {
        let cut = |reason: &str| Ended::Cut(format!("the broker sends what is not MQTT: {reason}"));
        let mut at = 0;
        while let Some((found, length)) = packet::read(&bytes[at..]).map_err(cut)? {
            at += length;
            let handed = match found {
                Packet::Connected { code: 0 } => {
                    socket.write_all(&packet::subscribe(&self.broker.topic))?;
                    continue;
                }
                // The one that may change by waiting.
                Packet::Connected { code: 3 } => {
                    return Err(Ended::Cut(packet::refusal(3).to_owned()));
                }
                Packet::Connected { code } => {
                    return Err(Ended::Refused(packet::refusal(code).to_owned()));
                }
                Packet::Subscribed { accepted: true } => {
                    *was_connected = true;
                    heard.send(Heard::Connected)
                }
                Packet::Subscribed { accepted: false } => {
                    let topic = &self.broker.topic;
                    return Err(Ended::Refused(format!(
                        "it does not let us subscribe to {topic}"
                    )));
                }
                Packet::Message { topic, payload } => heard.send(Heard::Message {
                    received_ms: (self.clock)(),
                    topic: topic.to_owned(),
                    payload: payload.to_vec(),
                }),
                Packet::Pong => continue,
            };
            handed.map_err(|_| Ended::Stopped)?;
        }
        Ok(at)
    }

    fn connect(&self) -> Result<Link, Ended> {
        let Broker { host, port, .. } = &self.broker;
        let mut last = Ended::Cut(format!("{host} has no address"));
        for address in (host.as_str(), *port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_WITHIN) {
                Ok(socket) => {
                    socket.set_write_timeout(Some(CONNECT_WITHIN))?;
                    let link = match &self.tls {
                        None => Link::Plain(socket),
                        Some(config) => self.encrypted(socket, config)?,
                    };
                    link.socket().set_read_timeout(Some(TICK))?;
                    return Ok(link);
                }
                Err(e) => last = e.into(),
            }
        }
        Err(last)
    }

    fn encrypted(&self, socket: TcpStream, config: &Arc<ClientConfig>) -> Result<Link, Ended> {
        let shaken = Link::tls(
            socket,
            Arc::clone(config),
            &self.broker.host,
            CONNECT_WITHIN,
        );
        shaken.map_err(|error| match link::distrust(&error) {
            Some(reason) => Ended::Refused(reason),
            None => Ended::Cut(format!("the TLS handshake failed: {error}")),
        })
    }

    fn wait(&self, failures: u32) {
        let (first, longest) = self.waits;
        let mut left = backoff(first, longest, failures + 1);
        while !left.is_zero() && !self.stopped() {
            let step = left.min(TICK);
            thread::sleep(step);
            left -= step;
        }
    }
}

/// Appends the bytes that have arrived. Returns false if the time limit passed without any.
fn fill(socket: &mut Link, bytes: &mut Vec<u8>) -> Result<bool, Ended> {
    const STEP: usize = 64 * 1024;
    debug_assert!(
        bytes.len() < PACKET_BYTES_MAX,
        "a packet that is all there was taken"
    );
    let start = bytes.len();
    bytes.resize(start + STEP, 0);
    // The buffer holds one incomplete packet at most, whose length `packet::read` limits.
    let read = socket.read(&mut bytes[start..]);
    // The room that was not filled is given back, also after an error, because the bytes behind the
    // end would be read as packets.
    bytes.truncate(start + *read.as_ref().unwrap_or(&0));
    match read {
        Ok(0) => Err(Ended::Cut("the broker closed the connection".to_owned())),
        Ok(_) => Ok(true),
        Err(e)
            if matches!(
                e.kind(),
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
            ) =>
        {
            Ok(false)
        }
        Err(e) => Err(e.into()),
    }
}
