//! The server's end: a thread with a reactor.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use dyno_net::{
    Address, FrameRef, Handler, Head, Listener, NetError, Outbound, PortId, PortOptions, Reactor,
    ReactorOptions,
};

use super::super::k2::{K2Error, Transport};
use super::{Body, CallParams, LEAST_BYTES, SPIN};

/// The verb of messages and answers.
pub(super) const VERB: u8 = 1;
const SLEEP: Duration = Duration::from_millis(100);

/// A server thread; dropping this stops it.
pub(super) struct Server {
    pub address: Address,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), NetError>>>,
}

impl Server {
    pub fn start(params: &CallParams, scratch: &Path, number: usize) -> Result<Server, K2Error> {
        let place = match params.transport {
            Transport::Unix => {
                // The path of a socket must be short, which that of a scratch directory may not be.
                let id = std::process::id();
                let place = scratch.join(format!("s{number}"));
                if place.as_os_str().len() < 100 {
                    format!("unix:{}", place.display())
                } else {
                    format!(
                        "unix:{}/dyno-calls-{id}-{number}.sock",
                        std::env::temp_dir().display()
                    )
                }
            }
            Transport::Ring | Transport::Tcp => "127.0.0.1:0".to_owned(),
        };
        let mut reactor = Reactor::new(ReactorOptions {
            spin: SPIN,
            ..ReactorOptions::default()
        })?;
        let address = reactor.listen(Listener::bind(&place.parse()?)?)?;
        let over = Arc::new(AtomicBool::new(false));
        let until = over.clone();
        let mut sink = Sink {
            every: params.every as u64,
            filler: vec![0; params.answer_bytes - LEAST_BYTES],
        };
        let thread = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                let count = reactor.poll(&mut sink)?;
                reactor.idle(count > 0, SLEEP)?;
            }
            Ok(())
        });
        Ok(Server {
            address,
            over,
            thread: Some(thread),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its error can be ignored, because its clients have failed too.
            drop(thread.join());
        }
    }
}

/// How clients connect over a transport.
pub(super) fn port_options(transport: Transport) -> PortOptions {
    PortOptions {
        ring: transport == Transport::Ring,
        ..PortOptions::default()
    }
}

/// Checks every message and answers one in every `every`.
struct Sink {
    every: u64,
    filler: Vec<u8>,
}

impl Handler for Sink {
    fn frame(&mut self, _: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> ControlFlow<()> {
        // A wrong message closes the connection, and so its client fails.
        let Some(number) = Body::number(frame.body) else {
            return ControlFlow::Break(());
        };
        if !(number + 1).is_multiple_of(self.every) {
            return ControlFlow::Continue(());
        }
        let (number, mark) = Body::ends(number);
        let head = Head {
            flags: 1,
            ..frame.head
        };
        match out.send(head, &[&number, &self.filler, &mark]) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}
