//! One connection for many threads, without threads of its own: one of the threads that wait for
//! answers polls the connection for all, and hands that duty on when its own answer has come. It
//! spins for a while, then sleeps.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use crate::client::Answered;
use crate::port::sleep::wait_one;
use crate::{Address, Answer, Client, ClientOptions, Frame, NetError, Transport};

/// The longest single sleep, so that deadlines are checked.
const MOST_SLEEP: Duration = Duration::from_millis(50);
/// How often a waiting thread looks for its own answer before it reads the clock.
const LOOKS: u32 = 64;

/// A connection that many threads use; clones share it. It is polled by a thread that waits for an
/// answer, so a [`Ticket`] that no thread waits for is answered only while others wait.
#[derive(Debug, Clone)]
pub struct SharedClient(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Whether a thread polls for all. It changes under the lock, and is read without it by threads
    /// that spin.
    led: AtomicBool,
    /// Threads that want the lock in order to send; the polling thread lets them go first.
    senders: AtomicUsize,
    /// A duplicate of the client's descriptor, so that a thread can sleep on it without the lock.
    descriptor: OwnedFd,
    transport: Transport,
    address: String,
    answer_wait: Option<Duration>,
    spin: Duration,
}

#[derive(Debug)]
struct State {
    client: Client,
    waiting: HashMap<u64, Arc<PendingReply>>,
    last: u64,
}

/// Where one answer arrives, and the thread that waits for it.
#[derive(Debug, Default)]
struct PendingReply {
    done: AtomicBool,
    state: Mutex<ReplyState>,
}

#[derive(Debug, Default)]
struct ReplyState {
    answer: Option<Answer>,
    /// The thread that sleeps until its answer has come, or until it has to poll itself.
    sleeper: Option<Thread>,
}

/// One request under way; waiting for it is optional.
#[derive(Debug)]
pub struct Ticket {
    shared: Arc<Shared>,
    reply: Arc<PendingReply>,
}

impl SharedClient {
    /// Connects, and moves to a ring if the server offers one ([`crate::Port::connect`]).
    pub fn connect(address: &Address, options: &ClientOptions) -> Result<SharedClient, NetError> {
        SharedClient::over(Client::connect(address, options)?, options)
    }

    /// Shares a client that has nothing under way.
    pub fn over(client: Client, options: &ClientOptions) -> Result<SharedClient, NetError> {
        let descriptor = client
            .descriptor()
            .try_clone_to_owned()
            .map_err(|error| NetError::io("share the connection to", client.address(), error))?;
        Ok(SharedClient(Arc::new(Shared {
            descriptor,
            transport: client.transport().clone(),
            address: client.address().to_owned(),
            answer_wait: options.answer_wait,
            spin: options.spin,
            state: Mutex::new(State {
                client,
                waiting: HashMap::new(),
                last: 0,
            }),
            led: AtomicBool::new(false),
            senders: AtomicUsize::new(0),
        })))
    }

    /// What the connection travels on, and why.
    pub fn transport(&self) -> &Transport {
        &self.0.transport
    }

    /// The server's address, for messages.
    pub fn address(&self) -> &str {
        &self.0.address
    }

    /// Requests that wait for their answers now.
    pub fn unanswered(&self) -> usize {
        self.0.lock().client.unanswered()
    }

    /// Why the connection has ended; `None` while it lives.
    pub fn ended(&self) -> Option<NetError> {
        self.0.lock().client.ended().cloned()
    }

    /// Sends a request and returns. With the window full it waits for room, at most as long as for
    /// an answer.
    pub fn begin(&self, verb: u8, flags: u8, body: &[&[u8]]) -> Result<Ticket, NetError> {
        let began = Instant::now();
        loop {
            let full = match self.0.try_begin(verb, flags, body) {
                Err(full @ (NetError::Full { .. } | NetError::Send { .. })) => full,
                done => {
                    return done.map(|reply| Ticket {
                        shared: Arc::clone(&self.0),
                        reply,
                    });
                }
            };
            if self
                .0
                .answer_wait
                .is_some_and(|wait| began.elapsed() >= wait)
            {
                return Err(full);
            }
            self.0.make_room();
        }
    }

    /// Sends a request and waits for the answer.
    pub fn call(&self, verb: u8, flags: u8, body: &[&[u8]]) -> Answer {
        self.begin(verb, flags, body)?.wait()
    }
}

impl Ticket {
    /// Whether the answer has come, so that [`Ticket::wait`] returns at once.
    pub fn is_done(&self) -> bool {
        self.reply.done.load(Ordering::Acquire)
    }

    /// Waits for the answer, and polls for all threads if no other thread does.
    pub fn wait(self) -> Answer {
        loop {
            if self.is_done() {
                let answer = self.reply.lock().answer.take();
                return answer.unwrap_or_else(|| {
                    Err(NetError::Closed {
                        address: self.shared.address.clone(),
                    })
                });
            }
            if self.shared.lead() {
                self.shared.poll_until_done(&self.reply)
            } else {
                self.follow()
            }
        }
    }

    /// Waits while another thread polls: spins until the answer has come, then sleeps until it is
    /// woken.
    fn follow(&self) {
        let began = Instant::now();
        while began.elapsed() < self.shared.spin {
            for _ in 0..LOOKS {
                if self.is_done() || !self.shared.led.load(Ordering::Relaxed) {
                    return;
                }
                std::hint::spin_loop();
            }
        }
        {
            // The polling thread hands its duty on under this lock, so either it sees this sleeper,
            // or the sleeper sees that no thread polls.
            let _state = self.shared.lock();
            if !self.shared.led.load(Ordering::Relaxed) {
                return;
            }
            let mut state = self.reply.lock();
            if state.answer.is_some() {
                return;
            }
            state.sleeper = Some(thread::current());
        }
        thread::park_timeout(MOST_SLEEP);
        self.reply.lock().sleeper = None;
    }
}

impl Shared {
    fn try_begin(
        &self,
        verb: u8,
        flags: u8,
        body: &[&[u8]],
    ) -> Result<Arc<PendingReply>, NetError> {
        self.senders.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        self.senders.fetch_sub(1, Ordering::Relaxed);
        let State {
            client,
            waiting,
            last,
            ..
        } = &mut *state;
        *last += 1;
        client.send(verb, flags, body, *last)?;
        let reply = Arc::new(PendingReply::default());
        waiting.insert(*last, Arc::clone(&reply));
        if client.flush().is_err() {
            // This reply gets the reason, as do those of all waiting threads.
            state.poll();
        }
        Ok(reply)
    }

    /// Becomes the polling thread. Returns false if another thread is.
    fn lead(&self) -> bool {
        let _state = self.lock();
        !self.led.swap(true, Ordering::Relaxed)
    }

    /// Polls for all threads until this answer has come, then hands the duty on.
    fn poll_until_done(&self, reply: &PendingReply) {
        let began = Instant::now();
        loop {
            let mut state = self.lock();
            state.poll();
            if reply.done.load(Ordering::Acquire) {
                return self.hand_on(&state);
            }
            if began.elapsed() < self.spin {
                drop(state);
                self.let_senders_go_first();
                continue;
            }
            self.sleep(state);
        }
    }

    /// A thread that releases a lock and takes it again at once gets it before the threads that
    /// wait for it are awake. So the polling thread pauses until the senders have had it.
    fn let_senders_go_first(&self) {
        for _ in 0..LOOKS {
            std::hint::spin_loop();
            if self.senders.load(Ordering::Relaxed) == 0 {
                return;
            }
        }
        thread::yield_now();
    }

    /// Sleeps without the lock, so that others can send meanwhile.
    fn sleep<'a>(&'a self, mut state: MutexGuard<'a, State>) {
        if state.client.ended().is_none() && state.client.announce_sleep() {
            let interest = state.client.interest();
            drop(state);
            // A wait that fails is only a short one: the polling thread looks again.
            let _ = wait_one(self.descriptor.as_fd(), interest, MOST_SLEEP);
            state = self.lock();
        }
        state.client.woke();
    }

    /// For a thread that cannot send: polls once if no thread does, or yields to the one that does.
    fn make_room(&self) {
        if self.lead() {
            let mut state = self.lock();
            if state.poll() == 0 {
                self.sleep(state);
                state = self.lock();
            }
            self.hand_on(&state);
        } else {
            thread::yield_now();
        }
    }

    /// Stops polling, and wakes a sleeping thread to go on with it.
    fn hand_on(&self, state: &State) {
        self.led.store(false, Ordering::Relaxed);
        for reply in state.waiting.values() {
            if let Some(sleeper) = reply.lock().sleeper.take() {
                sleeper.unpark();
                return;
            }
        }
    }

    /// A panic cannot leave the state inconsistent, because no code under this lock panics in the
    /// middle of a change.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    /// Delivers the answers that have come.
    fn poll(&mut self) -> usize {
        let waiting = &mut self.waiting;
        let polled = self.client.poll(|Answered { token, result }| {
            if let Some(reply) = waiting.remove(&token) {
                reply.fill(result.map(|frame| Frame {
                    head: frame.head,
                    body: Bytes::copy_from_slice(frame.body),
                }));
            }
        });
        // The end of the connection was delivered to every waiting reply.
        polled.unwrap_or(0)
    }
}

impl PendingReply {
    fn fill(&self, answer: Answer) {
        let mut state = self.lock();
        state.answer = Some(answer);
        self.done.store(true, Ordering::Release);
        if let Some(sleeper) = state.sleeper.take() {
            sleeper.unpark();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReplyState> {
        self.state.lock()
    }
}
