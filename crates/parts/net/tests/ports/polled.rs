//! A server for tests: a reactor on a thread of its own, with a handler that does what verbs ask
//! for.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dyno_net::{
    Address, Closed, FrameRef, Handler, Listener, Outbound, PortId, Reactor, ReactorOptions,
    Transport, Waker,
};

pub const ECHO: u8 = 1;
pub const NEVER: u8 = 2;
pub const HANG_UP: u8 = 3;
/// Answered with a megabyte.
pub const LARGE: u8 = 4;

/// The events that a handler was told of, as text.
type EventLog = Arc<Mutex<Vec<String>>>;

#[derive(Default)]
pub struct Verbs {
    events: EventLog,
}

impl Handler for Verbs {
    fn open(&mut self, _: PortId, _: &str, transport: &Transport) {
        self.see(format!("open {}", transport.kind));
    }

    fn frame(&mut self, _: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> ControlFlow<()> {
        let large;
        let body = match frame.head.verb {
            ECHO => frame.body,
            LARGE => {
                large = vec![7; 1 << 20];
                &large[..]
            }
            HANG_UP => return ControlFlow::Break(()),
            _ => return ControlFlow::Continue(()),
        };
        match out.send(frame.head, &[body]) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn close(&mut self, _: PortId, why: Closed) {
        self.see(format!("{why:?}"));
    }
}

impl Verbs {
    fn see(&self, what: String) {
        self.events
            .lock()
            .expect("no test panics with it")
            .push(what);
    }
}

pub struct Polled {
    pub address: Address,
    events: EventLog,
    waker: Waker,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Reactor>>,
}

impl Polled {
    pub fn start(address: &str, options: ReactorOptions) -> Polled {
        let address: Address = address.parse().expect("an address");
        Polled::over(Listener::bind(&address).expect("a free place"), options)
    }

    pub fn over(listener: Listener, options: ReactorOptions) -> Polled {
        let mut reactor = Reactor::new(options).expect("a reactor");
        let address = reactor.listen(listener).expect("a listener");
        let (events, waker) = (EventLog::default(), reactor.waker());
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, mut handler) = (
            Arc::clone(&stop),
            Verbs {
                events: Arc::clone(&events),
            },
        );
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                let count = reactor.poll(&mut handler).expect("a poll");
                reactor
                    .idle(count > 0, Duration::from_secs(9))
                    .expect("a sleep");
            }
            reactor
        });
        Polled {
            address,
            events,
            waker,
            stop,
            thread: Some(thread),
        }
    }

    pub fn saw(&self, what: &str) -> bool {
        let events = self.events.lock().expect("no test panics with it");
        events.iter().any(|event| event.contains(what))
    }

    pub fn stop(&mut self) -> Option<Reactor> {
        self.stop.store(true, Ordering::SeqCst);
        self.waker.wake();
        self.thread
            .take()
            .map(|thread| thread.join().expect("a pass"))
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        drop(self.stop());
    }
}

pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("it did not come about within twenty seconds: {what}");
}
