//! Many connections polled by one thread, as an engine with a thread per core wants them: no locks,
//! no thread per connection, and no wake-up while there is work.
//!
//! Rings are looked at in every pass. A few sockets are read in every pass too; with more of them
//! epoll says which to read. A thread with nothing to do spins for its budget and then sleeps in
//! epoll over all sockets; rings say in their memory that it sleeps, and their peers then send a
//! byte.

mod door;
mod handler;
mod held;
mod unadmitted;
mod waker;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use door::RingDoor;
pub use handler::{Handler, PortId, ReactorOptions};
use unadmitted::Unadmitted;
pub use waker::Waker;

use crate::discovery::{self, ANSWER, DISCOVER, FIRST_RESERVED};
use crate::port::sleep::{Epoll, Interest};
use crate::port::{CoarseInstant, coarse_now};
use crate::{Address, Carrier, Closed, Head, Listener, NetError, Outbound, Port, SendError};

/// As many sockets as this are read in every pass: a read that finds nothing costs less than it
/// would to ask epoll about each.
const DIRECT: usize = 4;
/// Otherwise epoll is asked once in this many passes: for new connections, and peers that are gone.
const PASSES: u32 = 64;
/// Idle passes between two looks at the clock.
const LOOKS: u32 = 16;
/// Connections accepted in one pass at most.
const ACCEPTS: usize = 64;
/// How long nothing is accepted after the system has refused: out of descriptors, mostly.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest single sleep.
const MOST_SLEEP: Duration = Duration::from_millis(100);

/// Keys in epoll that are no connection's.
const WAKER: u64 = u64::MAX;
const DOOR: u64 = u64::MAX - 1;
const LISTENER: u64 = u64::MAX - 2;

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
    /// Epoll has said that there is something.
    ready: bool,
    /// Until the handler knows of it.
    unopened: Option<Box<Newcomer>>,
    /// The handler has admitted the client, or this end has made the connection.
    admitted: bool,
    /// The handler has ended it; what it answered is still being written.
    draining: bool,
    /// What epoll watches it for.
    interest: Interest,
    /// Its share of [`Reactor::held_bytes`].
    held_bytes: usize,
}

#[derive(Debug)]
struct Newcomer {
    peer: String,
    carrier: Carrier,
}

/// Connections of one thread. See the module.
#[derive(Debug)]
pub struct Reactor {
    options: ReactorOptions,
    epoll: Epoll,
    listeners: Vec<Listener>,
    door: Option<RingDoor>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    sockets: usize,
    rings: usize,
    refused: u64,
    unadmitted: Unadmitted,
    /// Bytes that the buffers of all connections hold, see `held`.
    held_bytes: usize,
    passes: u32,
    /// There may be a connection to accept.
    knocking: bool,
    paused: Option<CoarseInstant>,
    waker: Waker,
    keys: Vec<u64>,
    idle_since: Option<Instant>,
}

impl Reactor {
    /// One without connections.
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
            door: None,
            slots: Vec::new(),
            free: Vec::new(),
            sockets: 0,
            rings: 0,
            refused: 0,
            unadmitted: Unadmitted::default(),
            held_bytes: 0,
            passes: 0,
            knocking: false,
            paused: None,
            waker,
            keys: Vec::new(),
            idle_since: None,
        })
    }

    /// Accepts connections from `listener` from now on. Its clients are offered rings, if any are.
    pub fn listen(&mut self, listener: Listener) -> Result<Address, NetError> {
        let address = listener.address().clone();
        let failed = |error| NetError::io("listen at", &address, error);
        listener.set_nonblocking().map_err(failed)?;
        if self.door.is_none() && self.options.most_rings > 0 {
            let door = RingDoor::open(self.options.port.connect_wait).map_err(failed)?;
            self.epoll
                .add(door.descriptor(), DOOR, READS)
                .map_err(failed)?;
            self.door = Some(door);
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
        match port.is_ring() {
            true => self.rings += 1,
            false => self.sockets += 1,
        }
        let newcomer = Newcomer {
            peer: port.peer().to_owned(),
            carrier: port.carrier().clone(),
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

    /// Gives a connection away, as to another reactor. None: it has ended.
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
        match live.port.is_ring() {
            true => self.rings -= 1,
            false => self.sockets -= 1,
        }
        // A descriptor that is not watched any more is what is wanted.
        let _ = self.epoll.remove(live.port.descriptor());
        Some(live.port)
    }

    /// Ends a connection; what waits to be sent is let go. The handler is not told: it asked for
    /// it.
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

    /// A connection, for what it says of itself.
    pub fn port(&self, id: PortId) -> Option<&Port> {
        let slot = self.slots.get(id.index())?;
        let live = slot.live.as_ref()?;
        (slot.generation == id.generation()).then_some(&live.port)
    }

    /// Connections now: on sockets, and on rings.
    pub fn connections(&self) -> (usize, usize) {
        (self.sockets, self.rings)
    }

    /// Connections that were closed because there were too many, or because their clients were not
    /// admitted in time.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// What wakes this reactor from other threads.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// One pass over everything that may have something: accepts, reads, hands frames to `handler`,
    /// writes answers. It never waits. The answer is the number of frames.
    pub fn poll(&mut self, handler: &mut impl Handler) -> Result<usize, NetError> {
        self.passes = self.passes.wrapping_add(1);
        let direct = self.sockets <= DIRECT;
        if !direct || self.passes.is_multiple_of(PASSES) {
            self.harvest(Duration::ZERO)?;
        }
        if self.knocking {
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
        let (door, free) = (&mut self.door, self.rings < self.options.most_rings);
        let result = port.poll(|frame, out| {
            if frame.head.verb >= FIRST_RESERVED {
                return match frame.head.verb {
                    DISCOVER => offer(frame.head, door.as_mut(), free, out),
                    _ => ControlFlow::Break(()),
                };
            }
            if let Some(newcomer) = unopened.take() {
                handler.open(id, &newcomer.peer, &newcomer.carrier);
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
            Closed::Service => live.draining = true,
            _ => self.close(id),
        }
        if opened {
            handler.close(id, why);
        }
        0
    }

    /// Asks epoll what there is, waiting at most `wait`.
    fn harvest(&mut self, wait: Duration) -> Result<(), NetError> {
        let mut keys = std::mem::take(&mut self.keys);
        let waited = self.epoll.wait(wait, |key| keys.push(key));
        for key in keys.drain(..) {
            match key {
                WAKER => self.waker.clear(),
                DOOR | LISTENER => self.knocking = true,
                key => {
                    if let Some(live) = self.live(PortId(key)) {
                        live.ready = true;
                        live.port.event();
                    }
                }
            }
        }
        self.keys = keys;
        // Who has come for a ring and says nothing is given up in time.
        self.knocking |= self.door.as_ref().is_some_and(RingDoor::is_busy);
        if self.paused.is_some_and(|until| until <= coarse_now()) {
            self.watch_listeners(READS);
            self.paused = None;
        }
        waited.map_err(|error| NetError::io("poll", "connections", error))
    }

    fn accept(&mut self, handler: &mut impl Handler) {
        self.knocking = false;
        let mut accepted = Vec::new();
        // Others wait in the system's queue meanwhile, where they keep their order.
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
        // There may be more: the next pass looks again.
        self.knocking |= accepted.len() >= most && !failed;
        for (link, peer) in accepted {
            let port = Port::new(link, &self.options.port, peer, "the client came this way");
            self.take_in(port, handler);
        }
        let free_rings = self.options.most_rings.saturating_sub(self.rings);
        if let Some(door) = &mut self.door {
            let (options, ring_bytes) = (&self.options.port, self.options.ring_bytes);
            let joined = door.join(&self.epoll, DOOR, options, ring_bytes, free_rings);
            for port in joined {
                self.take_in(port, handler);
            }
        }
        if failed {
            self.watch_listeners(NOTHING);
            self.paused = Some(coarse_now().after(PAUSE));
        }
    }

    fn watch_listeners(&self, interest: Interest) {
        for listener in &self.listeners {
            // A listener that cannot be watched is not accepted from, which its clients see.
            let _ = self.epoll.change(listener.descriptor(), LISTENER, interest);
        }
    }

    /// To be called after every pass, with whether it, or the engine, had anything to do: spins for
    /// the budget of [`ReactorOptions::spin`], then sleeps for at most `wait` (100 ms at most, for
    /// deadlines).
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
        let mut quiet = !self.knocking;
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
            // A failed ring is told of by the next pass.
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
        match slot.generation == id.generation() {
            true => slot.live.as_mut(),
            false => None,
        }
    }
}

/// Answers a client that asks for a ring.
fn offer(
    head: Head,
    door: Option<&mut RingDoor>,
    free: bool,
    out: &mut Outbound,
) -> ControlFlow<()> {
    let offer = match door {
        None => Err("the server offers no rings".to_owned()),
        Some(_) if !free => Err("the server has no ring left".to_owned()),
        Some(door) => door
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
