//! The fast client: one connection, many requests under way, one thread. It polls for answers and
//! sleeps only after it has spun for a while.

use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use crate::port::{CoarseInstant, coarse_now};
use crate::{Address, Closed, FrameRef, Head, NetError, Port, PortOptions, SendError, Transport};

/// How often deadlines are checked: a late answer may be reported this much later.
const TICK: Duration = Duration::from_millis(20);

/// Polls between two reads of the clock, which costs as much as a look at a ring.
const LOOKS: u32 = 16;

/// The limits of a client.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The limits of its connection.
    pub port: PortOptions,
    /// Requests under way at most; a further one is refused.
    pub window: usize,
    /// How long one request may wait for its answer; `None` waits as long as the connection lives.
    pub answer_wait: Option<Duration>,
    /// How long to spin for an answer before sleeping.
    pub spin: Duration,
}

impl Default for ClientOptions {
    fn default() -> ClientOptions {
        ClientOptions {
            port: PortOptions::default(),
            window: 1024,
            answer_wait: Some(Duration::from_secs(60)),
            spin: Duration::from_micros(100),
        }
    }
}

/// The outcome of one request.
#[derive(Debug)]
pub struct Answered<'a> {
    /// The token that the request was sent with.
    pub token: u64,
    /// The answer, or the reason why none came.
    pub result: Result<FrameRef<'a>, NetError>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    request: u32,
    token: u64,
    until: Option<CoarseInstant>,
}

/// Requests under way, by id. A request's slot is the remainder of its id by the number of slots,
/// which is at least twice the number of requests; an id is used again only after four billion
/// others.
#[derive(Debug)]
struct Window {
    places: Vec<Option<Entry>>,
    last: u32,
    count: usize,
    most: usize,
}

impl Window {
    fn new(most: usize) -> Window {
        Window {
            places: vec![None; (2 * most.max(1)).next_power_of_two()],
            last: 0,
            count: 0,
            most,
        }
    }

    /// Enters a request and returns its id. The caller has checked that there is room.
    fn add(&mut self, token: u64, until: Option<CoarseInstant>) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            let at = self.place(self.last);
            if self.places[at].is_none() {
                let request = self.last;
                self.places[at] = Some(Entry {
                    request,
                    token,
                    until,
                });
                self.count += 1;
                return request;
            }
        }
    }

    fn remove(&mut self, request: u32) -> Option<Entry> {
        let at = self.place(request);
        let found = self.places[at].take_if(|entry| entry.request == request);
        self.count -= usize::from(found.is_some());
        found
    }

    fn place(&self, request: u32) -> usize {
        request as usize & (self.places.len() - 1)
    }

    /// Removes every entry that `leaves` selects, and returns their tokens.
    fn drain(&mut self, leaves: impl Fn(&Entry) -> bool) -> Vec<u64> {
        let mut tokens = Vec::new();
        for place in &mut self.places {
            if let Some(entry) = place.take_if(|entry| leaves(entry)) {
                self.count -= 1;
                tokens.push(entry.token);
            }
        }
        tokens
    }
}

/// A connection to a server, used by one thread. A dead connection stays dead: whether to connect
/// again is for the user to decide, because only the user knows what to do about requests whose
/// outcome is unknown.
#[derive(Debug)]
pub struct Client {
    port: Port,
    address: String,
    window: Window,
    answer_wait: Option<Duration>,
    spin: Duration,
    /// When deadlines are checked again.
    next_check: CoarseInstant,
    dead: Option<NetError>,
}

impl Client {
    /// Connects, and moves to a ring if the server offers one ([`Port::connect`]).
    pub fn connect(address: &Address, options: &ClientOptions) -> Result<Client, NetError> {
        let port = Port::connect(address, &options.port)?;
        Ok(Client::over(port, options))
    }

    /// Makes a client of a connection that exists already.
    pub fn over(port: Port, options: &ClientOptions) -> Client {
        Client {
            address: port.peer().to_owned(),
            port,
            window: Window::new(options.window),
            answer_wait: options.answer_wait,
            spin: options.spin,
            next_check: coarse_now().after(TICK),
            dead: None,
        }
    }

    /// What the connection travels on, and why.
    pub fn transport(&self) -> &Transport {
        self.port.transport()
    }

    /// The server's address, for messages.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Requests that wait for their answers now.
    pub fn unanswered(&self) -> usize {
        self.window.count
    }

    /// Why the connection has ended; `None` while it lives.
    pub fn ended(&self) -> Option<&NetError> {
        self.dead.as_ref()
    }

    /// Sends a request and returns: the frame goes out with the next [`Client::flush`] or
    /// [`Client::poll`]. `token` comes back with the answer. It never waits: a full window is
    /// [`NetError::Full`], and a server that reads too slowly is [`NetError::Send`]; in both cases
    /// nothing was sent.
    pub fn send(
        &mut self,
        verb: u8,
        flags: u8,
        body: &[&[u8]],
        token: u64,
    ) -> Result<(), NetError> {
        if let Some(dead) = &self.dead {
            return Err(dead.clone());
        }
        if self.window.count >= self.window.most {
            return Err(NetError::Full {
                address: self.address.clone(),
                window: self.window.most,
            });
        }
        let until = self.answer_wait.map(|wait| coarse_now().after(wait));
        let request = self.window.add(token, until);
        let head = Head {
            verb,
            flags,
            request,
        };
        self.port.send(head, body).map_err(|source| {
            self.window.remove(request);
            let address = self.address.clone();
            match source {
                SendError::Ended => NetError::Closed { address },
                SendError::Frame(source) => NetError::Frame { address, source },
                full => NetError::Send {
                    address,
                    source: full,
                },
            }
        })
    }

    /// Hands on what was sent, as much as possible now.
    pub fn flush(&mut self) -> Result<(), NetError> {
        match self.port.flush() {
            Ok(_) => Ok(()),
            // The requests under way get the reason from the next poll.
            Err(why) => Err(self.die(why)),
        }
    }

    /// Sends what waits, and passes every answer that is there to `on_answer`, once for each
    /// request; also the late ones and, if the connection ends, all that are left. Returns their
    /// number.
    pub fn poll(&mut self, mut on_answer: impl FnMut(Answered<'_>)) -> Result<usize, NetError> {
        if let Some(dead) = self.dead.clone() {
            self.fail_all(&dead, &mut on_answer);
            return Err(dead);
        }
        let window = &mut self.window;
        let mut count = 0;
        let polled = self.port.poll(|frame, _| {
            // A frame without a waiting request is an answer that came after its deadline.
            if let Some(entry) = window.remove(frame.head.request) {
                count += 1;
                on_answer(Answered {
                    token: entry.token,
                    result: Ok(frame),
                });
            }
            ControlFlow::Continue(())
        });
        if let Err(why) = polled {
            let dead = self.die(why);
            self.fail_all(&dead, &mut on_answer);
            return Err(dead);
        }
        if let Some(wait) = self.answer_wait {
            count += self.give_up_late(wait, &mut on_answer);
        }
        Ok(count)
    }

    /// Polls until answers come: spins for a while, then sleeps. Returns 0 if none came within
    /// `wait`.
    pub fn wait(
        &mut self,
        wait: Duration,
        mut on_answer: impl FnMut(Answered<'_>),
    ) -> Result<usize, NetError> {
        let mut began = None;
        loop {
            for _ in 0..LOOKS {
                match self.poll(&mut on_answer)? {
                    0 => std::hint::spin_loop(),
                    count => return Ok(count),
                }
            }
            let waited = began.get_or_insert_with(Instant::now).elapsed();
            if waited >= wait {
                return Ok(0);
            }
            if waited >= self.spin {
                self.sleep(wait - waited)?;
            }
        }
    }

    /// Sends one request and waits; the body of the answer is put into `into`. For a client with
    /// nothing else under way ([`NetError::Full`] otherwise).
    pub fn call(
        &mut self,
        verb: u8,
        flags: u8,
        body: &[&[u8]],
        into: &mut Vec<u8>,
    ) -> Result<Head, NetError> {
        if self.window.count > 0 {
            return Err(NetError::Full {
                address: self.address.clone(),
                window: self.window.count,
            });
        }
        self.send(verb, flags, body, 0)?;
        let mut answer = None;
        while answer.is_none() {
            self.wait(TICK, |answered| {
                answer = Some(answered.result.map(|frame| {
                    into.clear();
                    into.extend_from_slice(frame.body);
                    frame.head
                }));
            })?;
        }
        answer.unwrap_or_else(|| {
            Err(NetError::Closed {
                address: self.address.clone(),
            })
        })
    }

    /// Sleeps until the server has sent something, or takes more; at most `wait`.
    pub fn sleep(&mut self, wait: Duration) -> Result<(), NetError> {
        self.port.sleep(wait).map_err(|why| self.die(why))
    }

    /// For callers that sleep without holding the client: see [`Port::sleep`] for the steps.
    pub(crate) fn announce_sleep(&mut self) -> bool {
        self.dead.is_none() && self.port.announce_sleep().unwrap_or(false)
    }

    pub(crate) fn woke(&mut self) {
        self.port.woke();
        self.port.event();
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.port.descriptor()
    }

    pub(crate) fn interest(&self) -> crate::port::sleep::Interest {
        self.port.interest()
    }

    fn die(&mut self, why: Closed) -> NetError {
        let why = why.into_error(&self.address);
        self.dead.get_or_insert(why).clone()
    }

    fn fail_all(&mut self, dead: &NetError, on_answer: &mut impl FnMut(Answered<'_>)) {
        for token in self.window.drain(|_| true) {
            on_answer(Answered {
                token,
                result: Err(dead.clone()),
            });
        }
    }

    fn give_up_late(&mut self, wait: Duration, on_answer: &mut impl FnMut(Answered<'_>)) -> usize {
        let now = coarse_now();
        if now < self.next_check {
            return 0;
        }
        self.next_check = now.after(TICK);
        let late = self
            .window
            .drain(|entry| entry.until.is_some_and(|until| until <= now));
        for token in &late {
            on_answer(Answered {
                token: *token,
                result: Err(NetError::Late {
                    address: self.address.clone(),
                    wait_ms: wait.as_millis() as u64,
                }),
            });
        }
        late.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_find_their_requests_and_old_ones_find_nothing() {
        let mut window = Window::new(4);
        window.last = u32::MAX - 2;
        let ids: Vec<u32> = (0..4).map(|token| window.add(token, None)).collect();
        assert_eq!(window.count, 4);
        assert_eq!(window.remove(ids[2]).map(|entry| entry.token), Some(2));
        assert!(window.remove(ids[2]).is_none());
        assert!(window.remove(ids[3].wrapping_add(8)).is_none());
        let mut left = window.drain(|_| true);
        left.sort_unstable();
        assert_eq!((left, window.count), (vec![0, 1, 3], 0));
    }
}
