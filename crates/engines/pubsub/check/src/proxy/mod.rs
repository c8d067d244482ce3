//! A proxy between clients and a server, which cuts connections: any of them, or one inside its
//! commit, after the request has gone to the server and before the answer comes back, so that the
//! client cannot know the outcome.
//!
//! It follows either PostgreSQL's protocol or the frames of a broker, just far enough to recognise
//! a commit. Its target can change, as a virtual address does when a standby takes over.

mod cut;
mod frames;
mod link;
mod postgres;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dyno_net::{Address, Listener, NetError, Stream};

pub use cut::{Control, Counts};
pub use frames::FrameWatch;
pub use postgres::PostgresWatch;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The protocol of the connections, by which the proxy recognises commits.
#[derive(Debug, Clone)]
pub enum Protocol {
    /// PostgreSQL, version 3; statements that hold one of these texts commit when they are
    /// executed.
    Postgres {
        /// Such as `append_`; COMMIT itself is always known.
        committing: Vec<String>,
    },
    /// Frames of a broker; these verbs commit.
    Frames {
        /// As in the frame's header.
        committing: Vec<u8>,
    },
}

/// Finds the end of a request that commits in the bytes that a client sends.
#[derive(Debug)]
enum Watch {
    Postgres(PostgresWatch),
    Frames(FrameWatch),
}

impl Watch {
    fn new(protocol: &Protocol) -> Self {
        match protocol {
            Protocol::Postgres { committing } => Self::Postgres(PostgresWatch::new(committing)),
            Protocol::Frames { committing } => Self::Frames(FrameWatch::new(committing)),
        }
    }

    /// The position in `bytes` right after the first request that commits, if there is one.
    fn commit_end(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Postgres(watch) => watch.commit_end(bytes),
            Self::Frames(watch) => watch.commit_end(bytes),
        }
    }
}

/// A running proxy. It ends, with all its connections, when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: Address,
    control: Arc<Control>,
    closing: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Listens at `listen` and passes every connection on to `target`.
    pub fn start(listen: &Address, target: Address, protocol: Protocol) -> Result<Self, NetError> {
        let listener = Listener::bind(listen)?;
        let address = listener.address().clone();
        let control = Arc::new(Control::new(target));
        let closing = Arc::new(AtomicBool::new(false));
        let (links, ends) = (control.clone(), closing.clone());
        let accepting = thread::Builder::new()
            .name("proxy".to_owned())
            .spawn(move || accept(&listener, &links, &ends, &protocol))
            .map_err(|source| NetError::Io {
                action: "start a thread for",
                address: address.to_string(),
                source: Arc::new(source),
            })?;
        Ok(Self {
            address,
            control,
            closing,
            accepting: Some(accepting),
        })
    }

    /// The address that clients connect to.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The handle by which connections are cut, delayed and counted.
    pub fn control(&self) -> &Arc<Control> {
        &self.control
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        // Connecting wakes the thread that accepts. If that is not possible any more, because the
        // socket's file was removed for instance, the thread cannot be woken; it does nothing until
        // the program ends.
        let woken = Stream::connect(&self.address, CONNECT_TIMEOUT).is_ok();
        if let Some(thread) = self.accepting.take()
            && woken
        {
            // It ends by itself; a panic in it has been printed.
            let _ = thread.join();
        }
        self.control.cut_all();
    }
}

fn accept(listener: &Listener, control: &Arc<Control>, closing: &AtomicBool, protocol: &Protocol) {
    loop {
        let client = listener.accept();
        if closing.load(Ordering::Acquire) {
            return;
        }
        match client {
            Ok(client) => {
                // A server that is down looks to the client as it does without a proxy: the
                // connection is closed.
                if let Ok(server) = Stream::connect(&control.target(), CONNECT_TIMEOUT) {
                    pass(client, server, control, protocol);
                } else {
                    client.shutdown();
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => {
                // Out of descriptors, most likely: connections that end give some back.
                control.failed();
                thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

fn pass(client: Stream, server: Stream, control: &Arc<Control>, protocol: &Protocol) {
    if link::start(client, server, control.clone(), Watch::new(protocol)).is_err() {
        control.failed();
    }
}
