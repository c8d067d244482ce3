//! One thread's connections: to every thread of the engine one, made when it is first needed.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dyno_net::{FrameRef, Handler, Head, Outbound, PortId, Reactor, ReactorOptions, SendError};
use dyno_txn_api::{Code, Error, Result};
use dyno_txn_core::message::Message;

use super::connector::Connector;
use crate::error::{from_net, unavailable};
use crate::hello::{
    FIGURES, MESSAGE, MOST_BODY_BYTES, ORACLE, REFUSED, STATS, Welcome, decode_refusal,
};
use crate::member::ClusterMap;
use crate::ports::port_options;

/// Idle passes between two looks at the time.
const LOOKS: u32 = 16;
/// The longest single sleep.
const SLEEP: Duration = Duration::from_millis(50);

/// Sessions of one client that wait at the same time.
pub(crate) struct Crowd {
    waiting: AtomicUsize,
    /// As many may spin: processors, but for one that the engine may want.
    most: usize,
}

impl Crowd {
    pub fn new() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self {
            waiting: AtomicUsize::new(0),
            most: processors - 1,
        }
    }

    /// Whether who spins takes a processor from others that have something to do.
    fn is_dense(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > self.most
    }
}

/// Connections of one thread, used for one thing at a time.
pub(crate) struct Session {
    connector: Arc<Connector>,
    crowd: Arc<Crowd>,
    reactor: Reactor,
    map: Arc<ClusterMap>,
    /// Of all threads of all processes, one process after the other.
    ports: Vec<Option<PortId>>,
    /// Where those of each process begin.
    starts: Vec<usize>,
    inbox: Inbox,
    begin: Instant,
    scratch: Vec<u8>,
    tickets: u64,
    /// The thread that was talked to last: the oracle is asked there.
    last_core: usize,
    /// Connections that have ended so far.
    pub losses: u64,
}

/// What came.
#[derive(Default)]
struct Inbox {
    messages: VecDeque<(u32, Message)>,
    figures: Option<String>,
    /// What the engine refused, or said that makes no sense.
    refused: Option<Error>,
}

impl Handler for Inbox {
    fn frame(&mut self, _: PortId, frame: FrameRef<'_>, _: &mut Outbound) -> ControlFlow<()> {
        match frame.head.verb {
            MESSAGE => match Message::decode(frame.body) {
                Ok(message) => self.messages.push_back((frame.head.request, message)),
                Err(error) => {
                    self.refused = Some(error);
                    return ControlFlow::Break(());
                }
            },
            FIGURES => self.figures = Some(String::from_utf8_lossy(frame.body).into_owned()),
            REFUSED => self.refused = Some(decode_refusal(frame.body)),
            verb => {
                let text = format!("the engine said verb {verb}, which is unknown");
                self.refused = Some(Error::new(Code::Damaged, text));
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

impl Session {
    /// One without connections.
    pub fn new(
        connector: Arc<Connector>,
        map: Arc<ClusterMap>,
        crowd: Arc<Crowd>,
        spin: Duration,
    ) -> Result<Self> {
        let (mut starts, mut count) = (Vec::new(), 0);
        for part in &map.processes {
            starts.push(count);
            // One that is not known yet has a place all the same, where dialling says so.
            count += part.threads.max(1) as usize;
        }
        let options = ReactorOptions {
            port: port_options(),
            spin,
            most_rings: 0,
            ..Default::default()
        };
        Ok(Self {
            connector,
            crowd,
            reactor: Reactor::new(options).map_err(from_net)?,
            ports: vec![None; count],
            starts,
            map,
            inbox: Inbox::default(),
            begin: Instant::now(),
            scratch: Vec::new(),
            tickets: 0,
            last_core: 0,
            losses: 0,
        })
    }

    /// Monotonic nanoseconds.
    pub fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// A number for a request, used once.
    pub fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// The connection to a partition's thread, if there is one now.
    pub fn port_of(&self, partition: u32) -> Option<PortId> {
        self.ports[self.place(partition)]
    }

    /// Where the connection to a partition's thread is.
    fn place(&self, partition: u32) -> usize {
        match self.starts.len() {
            1 => partition as usize % self.ports.len(),
            of => {
                let (part, thread) = self
                    .map
                    .home(partition)
                    .unwrap_or((partition as usize % of, 0));
                self.starts[part] + thread
            }
        }
    }

    /// Whether a connection that was there still is.
    pub fn lives(&self, port: PortId) -> bool {
        self.reactor.port(port).is_some()
    }

    fn connected(&mut self, core: usize) -> Result<PortId> {
        if let Some(port) = self.ports[core] {
            if self.lives(port) {
                return Ok(port);
            }
            self.ports[core] = None;
        }
        let part = self.starts.partition_point(|start| *start <= core) - 1;
        let (port, welcome) = self.connector.connect(part, core - self.starts[part])?;
        self.check(part, &welcome)?;
        let id = self.reactor.attach(port).map_err(from_net)?;
        self.ports[core] = Some(id);
        Ok(id)
    }

    /// An engine with another number of threads is another one than was opened.
    fn check(&self, part: usize, welcome: &Welcome) -> Result<()> {
        let same = welcome.cores == self.map.processes[part].threads;
        match same && welcome.partitions == self.map.partitions {
            true => Ok(()),
            false => Err(unavailable(
                "the engine has been started in another way: open it again",
            )),
        }
    }

    /// Asks for a stamp, of the thread of the first of these partitions. True: that thread has all of them, and gives
    /// the stamp itself, so that what is sent to them next can go by it.
    pub fn ask_before(
        &mut self,
        ticket: u64,
        mut partitions: impl Iterator<Item = u32>,
    ) -> Result<bool> {
        if let Some(first) = partitions.next() {
            self.last_core = self.place(first);
        }
        let core = self.last_core;
        self.send(ORACLE, &Message::TakeStamps { ticket, count: 1 })?;
        // Several processes have their oracle elsewhere.
        Ok(self.starts.len() == 1 && partitions.all(|partition| self.place(partition) == core))
    }

    /// Sends to a partition, or to the oracle. It goes out with the next [`Session::wait`].
    pub fn send(&mut self, to: u32, message: &Message) -> Result<()> {
        let core = match to {
            ORACLE => self.last_core,
            partition => self.place(partition),
        };
        self.last_core = core;
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        message.encode(&mut bytes);
        let sent = self.send_bytes(
            core,
            Head {
                verb: MESSAGE,
                flags: 0,
                request: to,
            },
            &bytes,
        );
        self.scratch = bytes;
        sent
    }

    fn send_bytes(&mut self, core: usize, head: Head, bytes: &[u8]) -> Result<()> {
        if bytes.len() > MOST_BODY_BYTES {
            let text = format!(
                "a request of {} bytes: {MOST_BODY_BYTES} at most",
                bytes.len()
            );
            return Err(Error::new(Code::TooLarge, text));
        }
        let port = self.connected(core)?;
        loop {
            match self.reactor.send(port, head, &[bytes]) {
                Ok(()) => return Ok(()),
                // A connection whose peer takes nothing for long is ended by the port itself.
                Err(SendError::Full { .. }) => self.poll_once()?,
                Err(error) => return Err(unavailable(format!("the engine: {error}"))),
            }
        }
    }

    fn poll_once(&mut self) -> Result<()> {
        let count = self.reactor.poll(&mut self.inbox).map_err(from_net)?;
        self.reactor.idle(count > 0, SLEEP).map_err(from_net)
    }

    /// Hands on what was sent, and takes in what has come, without waiting.
    pub fn flush(&mut self) -> Result<()> {
        self.reactor.poll(&mut self.inbox).map_err(from_net)?;
        self.look_for_losses();
        Ok(())
    }

    /// Waits until something has come or a connection has ended. False: neither until then.
    pub fn wait(&mut self, until: u64) -> Result<bool> {
        self.crowd.waiting.fetch_add(1, Ordering::Relaxed);
        let waited = self.wait_in_crowd(until);
        self.crowd.waiting.fetch_sub(1, Ordering::Relaxed);
        waited
    }

    fn wait_in_crowd(&mut self, until: u64) -> Result<bool> {
        let losses = self.losses;
        let mut looks = 0u32;
        loop {
            let count = self.reactor.poll(&mut self.inbox).map_err(from_net)?;
            if count > 0 || !self.inbox.messages.is_empty() {
                return Ok(true);
            }
            self.look_for_losses();
            if self.losses > losses {
                return Ok(true);
            }
            let mut left = SLEEP;
            if looks.is_multiple_of(LOOKS) {
                let now = self.now();
                if now >= until {
                    return Ok(false);
                }
                left = left.min(Duration::from_nanos(until - now));
            }
            looks += 1;
            let idle = match self.crowd.is_dense() {
                true => self.reactor.sleep(left),
                false => self.reactor.idle(false, left),
            };
            idle.map_err(from_net)?;
        }
    }

    fn look_for_losses(&mut self) {
        for at in 0..self.ports.len() {
            if self.ports[at].is_some_and(|port| !self.lives(port)) {
                self.ports[at] = None;
                self.losses += 1;
            }
        }
    }

    /// The next message that has come, with the partition it came from.
    pub fn next(&mut self) -> Option<(u32, Message)> {
        self.inbox.messages.pop_front()
    }

    /// Why the last connection was refused or broken, if the engine said.
    pub fn refusal(&mut self) -> Option<Error> {
        self.inbox.refused.take()
    }

    /// How many processes there are.
    pub fn parts(&self) -> usize {
        self.starts.len()
    }

    /// The figures of a process.
    pub fn figures(&mut self, part: usize, wait: Duration) -> Result<String> {
        self.inbox.figures = None;
        let core = self.starts[part];
        self.send_bytes(
            core,
            Head {
                verb: STATS,
                flags: 0,
                request: 0,
            },
            &[],
        )?;
        let until = self.now() + wait.as_nanos() as u64;
        while self.inbox.figures.is_none() {
            if !self.wait(until)? || self.ports[core].is_none() {
                return Err(unavailable("the engine gave no figures"));
            }
            self.inbox.messages.clear();
        }
        Ok(self.inbox.figures.take().unwrap_or_default())
    }
}
