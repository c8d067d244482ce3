//! Many connections polled by one thread, as an engine with a thread for each core needs them:
//! without locks, without a thread for each connection, and without wake-ups while there is work.
//!
//! Rings are read in every pass. A few sockets are read in every pass too; with more of them epoll
//! says which to read. A thread with nothing to do spins for a while and then sleeps in epoll over
//! all sockets; its rings say in their memory that it sleeps, and their peers then send a byte to
//! wake it.

mod handler;
mod memory_limit;
mod ring_listener;
mod unadmitted;
mod waker;
mod watched;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

pub use handler::{Handler, PortId, ReactorOptions};
use ring_listener::RingListener;
use unadmitted::Unadmitted;
pub use waker::Waker;

use crate::discovery::{self, ANSWER, DISCOVER, FIRST_RESERVED};
use crate::port::sleep::{Epoll, Interest};
use crate::port::{CoarseInstant, coarse_now};
use crate::{Address, Closed, Head, Listener, NetError, Outbound, Port, SendError, Transport};

/// Up to this many sockets are read in every pass: a read that finds nothing costs less than asking
/// epoll about each.
const DIRECT: usize = 4;
/// While sockets are read directly, epoll is asked once in this many passes, for new connections
/// and peers that are gone.
const PASSES: u32 = 64;
/// Idle passes between two reads of the clock.
const LOOKS: u32 = 16;
/// The most connections that one pass accepts, so that a flood of them does not stop the others.
const ACCEPTS: usize = 64;
/// How long nothing is accepted after the system has refused, mostly for want of descriptors.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest single sleep, so that deadlines are checked.
const MOST_SLEEP: Duration = Duration::from_millis(100);

/// Keys in epoll that do not belong to a connection.
const WAKER: u64 = u64::MAX;
const RING_LISTENER: u64 = u64::MAX - 1;
const LISTENER: u64 = u64::MAX - 2;
const WATCHED: u64 = u64::MAX - 3;

const READS: Interest = Interest {
    read: true,
    write: false,
};
const NOTHING: Interest = Interest {
    read: false,
    write: false,
};

#[derive(Debug)]
struct Slot {
    generation: u32,
    live: Option<Live>,
}

#[derive(Debug)]
struct Live {
    port: Port,
    /// Whether epoll has reported an event.
    ready: bool,
    /// `Some` until the handler knows of the connection.
    unopened: Option<Box<Newcomer>>,
    /// Whether the handler has admitted the client, or this end has made the connection.
    admitted: bool,
    /// The handler has ended it, and what it answered is still being written.
    draining: bool,
    /// The events that epoll watches it for now.
    interest: Interest,
    /// What it adds to [`Reactor::held_bytes`].
    held_bytes: usize,
}

#[derive(Debug)]
struct Newcomer {
    peer: String,
    transport: Transport,
}

/// The connections of one thread.
#[derive(Debug)]
pub struct Reactor {
    options: ReactorOptions,
    epoll: Epoll,
    listeners: Vec<Listener>,
    ring_listener: Option<RingListener>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    sockets: usize,
    rings: usize,
    refused: u64,
    unadmitted: Unadmitted,
    /// Bytes that the buffers of all connections hold; see `memory_limit`.
    held_bytes: usize,
    passes: u32,
    /// Whether there may be a connection to accept.
    may_accept: bool,
    paused: Option<CoarseInstant>,
    waker: Waker,
    keys: Vec<u64>,
    idle_since: Option<Instant>,
    watched_is_ready: bool,
}

impl Reactor {
    /// Makes a reactor without connections or listeners.
    pub fn new(options: ReactorOptions) -> Result<Reactor, NetError> {
        let failed = |error| NetError::io("begin to poll for", "connections", error);
        let epoll = Epoll::new().map_err(failed)?;
        let waker = Waker::new().map_err(failed)?;
        epoll
            .add(waker.descriptor(), WAKER, READS)
            .map_err(failed)?;
        Ok(Reactor {
            options,
            epoll,
            listeners: Vec::new(),
            ring_listener: None,
            slots: Vec::new(),
            free: Vec::new(),
            sockets: 0,
            rings: 0,
            refused: 0,
            unadmitted: Unadmitted::default(),
            held_bytes: 0,
            passes: 0,
            may_accept: false,
            paused: None,
            waker,
            keys: Vec::new(),
            idle_since: None,
            watched_is_ready: false,
        })
    }

    /// Accepts connections from `listener` from now on. Its clients are offered rings, if any are
    /// allowed.
    pub fn listen(&mut self, listener: Listener) -> Result<Address, NetError> {
        let address = listener.address().clone();
        let failed = |error| NetError::io("listen at", &address, error);
        listener.set_nonblocking().map_err(failed)?;
        if self.ring_listener.is_none() && self.options.most_rings > 0 {
            let ring_listener =
                RingListener::open(self.options.port.connect_wait).map_err(failed)?;
            self.epoll
                .add(ring_listener.descriptor(), RING_LISTENER, READS)
                .map_err(failed)?;
            self.ring_listener = Some(ring_listener);
        }
        self.epoll
            .add(listener.descriptor(), LISTENER, READS)
            .map_err(failed)?;
        self.listeners.push(listener);
        Ok(address)
    }

    /// Takes a connection over, from [`Port::connect`] or from another reactor.
    pub fn attach(&mut self, port: Port) -> Result<PortId, NetError> {
        let failed = |error| NetError::io("poll", "a connection", error);
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                live: None,
            });
            self.slots.len() - 1
        });
        let slot = &mut self.slots[index];
        let id = PortId::new(index, slot.generation);
        let interest = port.interest();
        if let Err(error) = self.epoll.add(port.descriptor(), id.0, interest) {
            self.free.push(index);
            return Err(failed(error));
        }
        if port.is_ring() {
            self.rings += 1
        } else {
            self.sockets += 1
        }
        let newcomer = Newcomer {
            peer: port.peer().to_owned(),
            transport: port.transport().clone(),
        };
        slot.live = Some(Live {
            port,
            ready: true,
            unopened: Some(Box::new(newcomer)),
            admitted: true,
            draining: false,
            interest,
            held_bytes: 0,
        });
        self.count_held(index);
        Ok(id)
    }

    /// Gives a connection away, such as to another reactor; `None` if it has ended.
    pub fn detach(&mut self, id: PortId) -> Option<Port> {
        let slot = self.slots.get_mut(id.index())?;
        if slot.generation != id.generation() {
            return None;
        }
        let live = slot.live.take()?;
        self.unadmitted.remove(id);
        self.held_bytes -= live.held_bytes;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.index());
        if live.port.is_ring() {
            self.rings -= 1
        } else {
            self.sockets -= 1
        }
        // If the descriptor is not watched any more, that is what is wanted.
        let _ = self.epoll.remove(live.port.descriptor());
        Some(live.port)
    }

    /// Ends a connection; what waits to be sent is dropped. The handler is not told, because it
    /// asked for this.
    pub fn close(&mut self, id: PortId) {
        drop(self.detach(id));
    }

    /// Sends a frame on a connection; it goes out in the next pass.
    pub fn send(&mut self, id: PortId, head: Head, parts: &[&[u8]]) -> Result<(), SendError> {
        let live = self.live(id).ok_or(SendError::Ended)?;
        let sent = live.port.send(head, parts);
        self.count_held(id.index());
        sent
    }

    /// A connection, to be asked about its transport or its peer.
    pub fn port(&self, id: PortId) -> Option<&Port> {
        let slot = self.slots.get(id.index())?;
        let live = slot.live.as_ref()?;
        (slot.generation == id.generation()).then_some(&live.port)
    }

    /// Connections now: first those on sockets, then those on rings.
    pub fn connections(&self) -> (usize, usize) {
        (self.sockets, self.rings)
    }

    /// Connections that were closed because there were too many, or because their clients were not
    /// admitted in time.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The handle by which other threads wake this reactor.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Does one pass over everything that may have something to do: accepts, reads, passes frames
    /// to `handler`, writes answers. It never waits. Returns the number of frames.
    pub fn poll(&mut self, handler: &mut impl Handler) -> Result<usize, NetError> {
        self.passes = self.passes.wrapping_add(1);
        let direct = self.sockets <= DIRECT;
        if !direct || self.passes.is_multiple_of(PASSES) {
            self.harvest(Duration::ZERO)?;
        }
        if self.may_accept {
            self.accept(handler);
        }
        self.end_late(handler);
        let mut count = 0;
        for index in 0..self.slots.len() {
            let Some(live) = &mut self.slots[index].live else {
                continue;
            };
            if live.draining {
                if live.port.drain() {
                    let id = PortId::new(index, self.slots[index].generation);
                    self.close(id);
                }
            } else if direct || live.ready || live.port.is_ring() || live.port.wants_poll() {
                count += self.poll_one(index, handler);
            }
        }
        self.release_held(handler);
        Ok(count)
    }

    fn poll_one(&mut self, index: usize, handler: &mut impl Handler) -> usize {
        let Slot { generation, live } = &mut self.slots[index];
        let id = PortId::new(index, *generation);
        let Some(live) = live else { return 0 };
        live.ready = false;
        let Live { port, unopened, .. } = live;
        let (ring_listener, free) = (
            &mut self.ring_listener,
            self.rings < self.options.most_rings,
        );
        let result = port.poll(|frame, out| {
            if frame.head.verb >= FIRST_RESERVED {
                return match frame.head.verb {
                    DISCOVER => offer(frame.head, ring_listener.as_mut(), free, out),
                    _ => ControlFlow::Break(()),
                };
            }
            if let Some(newcomer) = unopened.take() {
                handler.open(id, &newcomer.peer, &newcomer.transport);
            }
            handler.frame(id, frame, out)
        });
        let why = match result {
            Ok(count) => {
                if !live.admitted && count > 0 && handler.is_admitted(id) {
                    live.admitted = true;
                    live.port
                        .set_most_body_bytes(self.options.port.most_body_bytes);
                    self.unadmitted.remove(id);
                }
                self.count_held(index);
                return count;
            }
            Err(why) => why,
        };
        let opened = live.unopened.is_none();
        self.unadmitted.remove(id);
        match why {
            // The handler's last answers are still unsent, and the client may be slow to read them:
            // the connection stays until they are written, without being read any more.
            Closed::Service => live.draining = true,
            _ => self.close(id),
        }
        if opened {
            handler.close(id, why);
        }
        0
    }

    /// Asks epoll for events, waiting at most `wait`.
    fn harvest(&mut self, wait: Duration) -> Result<(), NetError> {
        let mut keys = std::mem::take(&mut self.keys);
        let waited = self.epoll.wait(wait, |key| keys.push(key));
        for key in keys.drain(..) {
            match key {
                WAKER => self.waker.clear(),
                WATCHED => self.watched_is_ready = true,
                RING_LISTENER | LISTENER => self.may_accept = true,
                key => {
                    if let Some(live) = self.live(PortId(key)) {
                        live.ready = true;
                        live.port.event();
                    }
                }
            }
        }
        self.keys = keys;
        // A client that has come for a ring and sends nothing has to be given up in time, without
        // an event.
        self.may_accept |= self
            .ring_listener
            .as_ref()
            .is_some_and(RingListener::is_busy);
        if self.paused.is_some_and(|until| until <= coarse_now()) {
            self.watch_listeners(READS);
            self.paused = None;
        }
        waited.map_err(|error| NetError::io("poll", "connections", error))
    }

    fn accept(&mut self, handler: &mut impl Handler) {
        self.may_accept = false;
        let mut accepted = Vec::new();
        // Further clients wait in the system's queue, where they keep their order.
        let room = self
            .unadmitted
            .room(self.options.most_unadmitted, coarse_now());
        let (most, mut failed) = (ACCEPTS.min(room), room == 0);
        for listener in &self.listeners {
            while accepted.len() < most {
                match listener.accept_now() {
                    Ok(Some(one)) => accepted.push(one),
                    Ok(None) => break,
                    Err(_) => {
                        failed = true;
                        break;
                    }
                }
            }
        }
        // More clients may be waiting, so the next pass looks again.
        self.may_accept |= accepted.len() >= most && !failed;
        for (link, peer) in accepted {
            let port = Port::new(link, &self.options.port, peer, "the client came this way");
            self.attach_unadmitted(port, handler);
        }
        let free_rings = self.options.most_rings.saturating_sub(self.rings);
        if let Some(ring_listener) = &mut self.ring_listener {
            let (options, ring_bytes) = (&self.options.port, self.options.ring_bytes);
            let joined =
                ring_listener.join(&self.epoll, RING_LISTENER, options, ring_bytes, free_rings);
            for port in joined {
                self.attach_unadmitted(port, handler);
            }
        }
        if failed {
            self.watch_listeners(NOTHING);
            self.paused = Some(coarse_now().after(PAUSE));
        }
    }

    fn watch_listeners(&self, interest: Interest) {
        for listener in &self.listeners {
            // From a listener that cannot be watched nothing is accepted, which its clients see.
            let _ = self.epoll.change(listener.descriptor(), LISTENER, interest);
        }
    }

    /// Call this after every pass with `busy` set if the pass, or the engine, had anything to do.
    /// If not, it spins for [`ReactorOptions::spin`], then sleeps for at most `wait` (100 ms at
    /// most, for deadlines).
    pub fn idle(&mut self, busy: bool, wait: Duration) -> Result<(), NetError> {
        if busy {
            self.idle_since = None;
            return Ok(());
        }
        let since = match self.idle_since {
            Some(since) => since,
            None => *self.idle_since.insert(Instant::now()),
        };
        std::hint::spin_loop();
        if !self.passes.is_multiple_of(LOOKS) || since.elapsed() < self.options.spin {
            return Ok(());
        }
        self.idle_since = None;
        self.sleep(wait)
    }

    /// Sleeps until a connection or the [`Waker`] has something, at most `wait`.
    pub fn sleep(&mut self, wait: Duration) -> Result<(), NetError> {
        let mut quiet = !self.may_accept;
        for index in 0..self.slots.len() {
            let Slot { generation, live } = &mut self.slots[index];
            let Some(live) = live else { continue };
            let interest = live.port.interest();
            if interest != live.interest {
                let id = PortId::new(index, *generation);
                let changed = self.epoll.change(live.port.descriptor(), id.0, interest);
                changed.map_err(|error| NetError::io("poll", "a connection", error))?;
                live.interest = interest;
            }
            // A ring that has failed is reported by the next pass, so it must not sleep.
            quiet &= live.port.announce_sleep().unwrap_or(false);
        }
        if quiet && self.waker.announce_sleep() {
            self.harvest(wait.min(MOST_SLEEP))?;
        }
        self.waker.woke();
        for slot in &mut self.slots {
            if let Some(live) = &mut slot.live {
                live.port.woke();
            }
        }
        Ok(())
    }

    fn live(&mut self, id: PortId) -> Option<&mut Live> {
        let slot = self.slots.get_mut(id.index())?;
        if slot.generation != id.generation() {
            return None;
        }
        slot.live.as_mut()
    }
}

/// Answers a client that asks for a ring.
fn offer(
    head: Head,
    ring_listener: Option<&mut RingListener>,
    free: bool,
    out: &mut Outbound,
) -> ControlFlow<()> {
    let offer = match ring_listener {
        None => Err("the server offers no rings".to_owned()),
        Some(_) if !free => Err("the server has no ring left".to_owned()),
        Some(ring_listener) => ring_listener
            .offer()
            .map_err(|error| format!("the server cannot offer a ring: {error}")),
    };
    let body = discovery::discover_answer(offer.as_ref().map_err(String::as_str));
    let head = Head {
        flags: head.flags | ANSWER,
        ..head
    };
    match out.send(head, &[&body]) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}
