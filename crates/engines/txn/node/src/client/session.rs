//! The connections of one client thread: one to each thread of the engine, made when it is first
//! needed.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
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

/// Idle passes between two readings of the clock.
const PASSES_PER_READING: u32 = 16;
/// The longest single sleep.
const SLEEP: Duration = Duration::from_millis(50);

/// Counts the sessions of one client that wait at the same time, so that not too many of them spin.
pub(crate) struct SpinLimit {
    waiting: AtomicUsize,
    /// So many may spin: all processors but one, which the engine may need.
    most: usize,
}

impl SpinLimit {
    pub fn new() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self {
            waiting: AtomicUsize::new(0),
            most: processors - 1,
        }
    }

    /// Whether a thread that spins takes a processor from one that has something to do.
    fn is_exceeded(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > self.most
    }
}

/// The connections of one thread, used for one thing at a time.
pub(crate) struct Session {
    connector: Arc<Connector>,
    spin_limit: Arc<SpinLimit>,
    reactor: Reactor,
    map: Arc<ClusterMap>,
    /// To all threads of all processes, in the order of the processes.
    ports: Vec<Option<PortId>>,
    /// The index in `ports` at which each process begins.
    starts: Vec<usize>,
    inbox: Inbox,
    created: Instant,
    scratch: Vec<u8>,
    tickets: u64,
    /// The index in `ports` of the thread that was sent to last. It is asked for timestamps.
    last: usize,
    /// Connections that have ended so far.
    pub losses: u64,
    /// A wait has ended because of a descriptor of the caller.
    is_woken: bool,
}

#[derive(Default)]
struct Inbox {
    /// With the partition that each is from.
    messages: VecDeque<(u32, Message)>,
    figures: Option<String>,
    /// The last refusal of the engine, or an error for a frame that is not one of an engine.
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
                let text = format!("the engine sent verb {verb}, which is not known");
                self.refused = Some(Error::new(Code::Damaged, text));
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

impl Session {
    /// A session without connections.
    pub fn new(
        connector: Arc<Connector>,
        map: Arc<ClusterMap>,
        spin_limit: Arc<SpinLimit>,
        spin: Duration,
    ) -> Result<Self> {
        let (mut starts, mut count) = (Vec::new(), 0);
        for process in &map.processes {
            starts.push(count);
            // One that is not known yet has an entry all the same: connecting to it is an error
            // that says so.
            count += process.threads.max(1) as usize;
        }
        let options = ReactorOptions {
            port: port_options(),
            spin,
            most_rings: 0,
            ..Default::default()
        };
        Ok(Self {
            connector,
            spin_limit,
            reactor: Reactor::new(options).map_err(from_net)?,
            ports: vec![None; count],
            starts,
            map,
            inbox: Inbox::default(),
            created: Instant::now(),
            scratch: Vec::new(),
            tickets: 0,
            last: 0,
            losses: 0,
            is_woken: false,
        })
    }

    /// Nanoseconds since the session was created.
    pub fn now(&self) -> u64 {
        self.created.elapsed().as_nanos() as u64
    }

    /// A number for a request that this session has not used before.
    pub fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// The connection to a partition's thread, if there is one now.
    pub fn port_for(&self, partition: u32) -> Option<PortId> {
        self.ports[self.index(partition)]
    }

    /// The index in `ports` of a partition's thread.
    fn index(&self, partition: u32) -> usize {
        match self.starts.len() {
            1 => partition as usize % self.ports.len(),
            of => {
                let (process, thread) = self
                    .map
                    .home(partition)
                    .unwrap_or((partition as usize % of, 0));
                self.starts[process] + thread
            }
        }
    }

    pub fn is_open(&self, port: PortId) -> bool {
        self.reactor.port(port).is_some()
    }

    /// The connection to the thread at an index in `ports`, made if there is none.
    fn connected(&mut self, index: usize) -> Result<PortId> {
        if let Some(port) = self.ports[index] {
            if self.is_open(port) {
                return Ok(port);
            }
            self.ports[index] = None;
        }
        let process = self.starts.partition_point(|start| *start <= index) - 1;
        let thread = index - self.starts[process];
        let (port, welcome) = self.connector.connect(process, thread)?;
        self.check(process, &welcome)?;
        let id = self.reactor.attach(port).map_err(from_net)?;
        self.ports[index] = Some(id);
        Ok(id)
    }

    /// Refuses an engine that has been started again with another number of threads or partitions:
    /// this session would send to threads that do not host the partitions.
    fn check(&self, process: usize, welcome: &Welcome) -> Result<()> {
        let is_same = welcome.cores == self.map.processes[process].threads;
        if is_same && welcome.partitions == self.map.partitions {
            Ok(())
        } else {
            Err(unavailable(
                "the engine has been started in another way: open it again",
            ))
        }
    }

    /// Requests a timestamp from the thread of the first of these partitions. Returns true if that
    /// thread hosts all of them and issues the timestamp itself. Operations on them can then follow
    /// at once, without a timestamp: they arrive behind the request on the same connection, and the
    /// thread fills it in.
    pub fn request_timestamp(
        &mut self,
        ticket: u64,
        mut partitions: impl Iterator<Item = u32>,
    ) -> Result<bool> {
        if let Some(first) = partitions.next() {
            self.last = self.index(first);
        }
        let index = self.last;
        self.send(ORACLE, &Message::TakeTimestamps { ticket, count: 1 })?;
        // With several processes the oracle is elsewhere, and the thread only passes the request
        // on.
        Ok(self.starts.len() == 1 && partitions.all(|partition| self.index(partition) == index))
    }

    /// Sends to a partition, or to the oracle. The message goes out with the next [`Session::wait`]
    /// or [`Session::flush`].
    pub fn send(&mut self, to: u32, message: &Message) -> Result<()> {
        let index = match to {
            ORACLE => self.last,
            partition => self.index(partition),
        };
        self.last = index;
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        message.encode(&mut bytes);
        let head = Head {
            verb: MESSAGE,
            flags: 0,
            request: to,
        };
        let sent = self.send_bytes(index, head, &bytes);
        self.scratch = bytes;
        sent
    }

    fn send_bytes(&mut self, index: usize, head: Head, bytes: &[u8]) -> Result<()> {
        if bytes.len() > MOST_BODY_BYTES {
            let text = format!(
                "a request of {} bytes: it may have {MOST_BODY_BYTES} at most",
                bytes.len()
            );
            return Err(Error::new(Code::TooLarge, text));
        }
        let port = self.connected(index)?;
        loop {
            match self.reactor.send(port, head, &[bytes]) {
                Ok(()) => return Ok(()),
                // This loop ends: the port itself ends a connection whose peer reads nothing for
                // long. Answers are read meanwhile, because an engine that cannot send them stops
                // reading.
                Err(SendError::Full { .. }) => self.poll_once()?,
                Err(error) => return Err(unavailable(format!("the engine: {error}"))),
            }
        }
    }

    fn poll_once(&mut self) -> Result<()> {
        let count = self.reactor.poll(&mut self.inbox).map_err(from_net)?;
        self.reactor.idle(count > 0, SLEEP).map_err(from_net)
    }

    /// Writes what was sent and reads what has arrived, without waiting.
    pub fn flush(&mut self) -> Result<()> {
        self.reactor.poll(&mut self.inbox).map_err(from_net)?;
        self.count_losses();
        Ok(())
    }

    /// Waits until a message has arrived or a connection has ended. Returns false if neither has
    /// happened by `until`, in the nanoseconds of [`Session::now`].
    pub fn wait(&mut self, until: u64) -> Result<bool> {
        self.spin_limit.waiting.fetch_add(1, Ordering::Relaxed);
        let waited = self.wait_counted(until);
        self.spin_limit.waiting.fetch_sub(1, Ordering::Relaxed);
        waited
    }

    fn wait_counted(&mut self, until: u64) -> Result<bool> {
        let losses = self.losses;
        let mut passes = 0u32;
        loop {
            let count = self.reactor.poll(&mut self.inbox).map_err(from_net)?;
            if count > 0 || !self.inbox.messages.is_empty() {
                return Ok(true);
            }
            self.count_losses();
            if self.losses > losses {
                return Ok(true);
            }
            let mut left = SLEEP;
            // Reading the clock costs as much as an idle pass, so it is not read in each.
            if passes.is_multiple_of(PASSES_PER_READING) {
                let now = self.now();
                if now >= until {
                    return Ok(false);
                }
                left = left.min(Duration::from_nanos(until - now));
            }
            passes += 1;
            let idle = if self.spin_limit.is_exceeded() {
                self.reactor.sleep(left)
            } else {
                self.reactor.idle(false, left)
            };
            idle.map_err(from_net)?;
            // It stays readable until the caller has read from it, so nothing is lost if an answer
            // ended this wait first.
            if self.reactor.take_watched() {
                self.is_woken = true;
                return Ok(false);
            }
        }
    }

    /// Has waits end when this descriptor becomes readable.
    pub fn wake_on(&mut self, descriptor: BorrowedFd<'_>) -> Result<()> {
        self.reactor.watch(descriptor).map_err(from_net)
    }

    /// Whether a wait has ended because of that descriptor since the last call.
    pub fn take_woken(&mut self) -> bool {
        std::mem::take(&mut self.is_woken)
    }

    /// Counts connections that have ended since the last time, so that callers see whether one of
    /// theirs may be among them.
    fn count_losses(&mut self) {
        for at in 0..self.ports.len() {
            if self.ports[at].is_some_and(|port| !self.is_open(port)) {
                self.ports[at] = None;
                self.losses += 1;
            }
        }
    }

    /// The next message that has arrived, with the partition that it is from.
    pub fn next(&mut self) -> Option<(u32, Message)> {
        self.inbox.messages.pop_front()
    }

    /// Why the engine refused or ended the last connection, if it said so. Each reason is returned
    /// once.
    pub fn refusal(&mut self) -> Option<Error> {
        self.inbox.refused.take()
    }

    /// The number of processes.
    pub fn processes(&self) -> usize {
        self.starts.len()
    }

    /// Asks a process for its figures: lines `name value`.
    pub fn figures(&mut self, process: usize, wait: Duration) -> Result<String> {
        self.inbox.figures = None;
        let index = self.starts[process];
        let head = Head {
            verb: STATS,
            flags: 0,
            request: 0,
        };
        self.send_bytes(index, head, &[])?;
        let until = self.now() + wait.as_nanos() as u64;
        while self.inbox.figures.is_none() {
            if !self.wait(until)? || self.ports[index].is_none() {
                return Err(unavailable("the engine did not send its figures"));
            }
            self.inbox.messages.clear();
        }
        Ok(self.inbox.figures.take().unwrap_or_default())
    }
}
