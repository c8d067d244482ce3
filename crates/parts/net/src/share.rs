//! A limit on memory that many connections share. Charges are given back when what they stand for
//! is dropped, wherever it was handed to.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex, MutexGuard};

/// How often a waiting caller is asked whether it still wants to wait.
const ASK: Duration = Duration::from_millis(250);

/// One limit. Callers that wait for room get it in the order in which they came, so that a large
/// request is not overtaken by small ones for ever.
pub struct Share {
    limit_bytes: usize,
    state: Mutex<State>,
    freed: Condvar,
    /// Called when room was made, for a user that waits for more than this share.
    on_room: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Debug, Default)]
struct State {
    used_bytes: usize,
    /// Tickets of the waiting callers, the next one first.
    waiting: VecDeque<u64>,
    next_ticket: u64,
    closed: bool,
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share")
            .field("limit_bytes", &self.limit_bytes)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Share {
    /// A limit of `limit_bytes`, of which nothing is used.
    pub fn new(limit_bytes: usize) -> Arc<Share> {
        Arc::new(Share {
            limit_bytes,
            state: Mutex::default(),
            freed: Condvar::new(),
            on_room: OnceLock::new(),
        })
    }

    /// Has `on_room` called after each release, outside the share's lock but under any lock that
    /// the releasing thread holds, so it must not wait for others. Only the first call of this
    /// counts.
    pub fn call_on_room(&self, on_room: impl Fn() + Send + Sync + 'static) {
        // A second registration would be a mistake in the program; the first one stays.
        let _ = self.on_room.set(Box::new(on_room));
    }

    /// The limit that it was made with.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Bytes that are charged now.
    pub fn used_bytes(&self) -> usize {
        self.lock().used_bytes
    }

    /// Whether a caller is waiting for room now.
    pub fn is_contended(&self) -> bool {
        !self.lock().waiting.is_empty()
    }

    /// Charges at once, even beyond the limit: for callers that must not wait, and release other
    /// memory instead.
    pub fn charge(self: &Arc<Share>, bytes: usize) -> Charge {
        self.lock().used_bytes += bytes;
        self.charged(bytes)
    }

    /// Charges if there is room now and no earlier caller waits for it.
    pub fn try_charge(self: &Arc<Share>, bytes: usize) -> Option<Charge> {
        let mut state = self.lock();
        if state.closed || !state.waiting.is_empty() || !self.fits(&state, bytes) {
            return None;
        }
        state.used_bytes += bytes;
        drop(state);
        Some(self.charged(bytes))
    }

    /// Charges once there is room; `None` if there was none within `wait`, or the share is closed.
    pub fn wait_for(self: &Arc<Share>, bytes: usize, wait: Duration) -> Option<Charge> {
        self.wait(bytes, Some(Instant::now() + wait), || true)
    }

    /// Charges once there is room, as long as `still` holds, which is asked now and then; `None` if
    /// it does not hold any more, the share is closed, or `bytes` are more than the limit.
    pub fn wait_while(self: &Arc<Share>, bytes: usize, still: impl Fn() -> bool) -> Option<Charge> {
        self.wait(bytes, None, still)
    }

    fn wait(
        self: &Arc<Share>,
        bytes: usize,
        end: Option<Instant>,
        still: impl Fn() -> bool,
    ) -> Option<Charge> {
        if let Some(charge) = self.try_charge(bytes) {
            return Some(charge);
        }
        let mut state = self.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push_back(ticket);
        // The ticket keeps its place while its owner asks `still`, which happens without the lock
        // because it may take locks of its own.
        let granted = loop {
            let is_first = state.waiting.front() == Some(&ticket);
            if state.closed || bytes > self.limit_bytes {
                break false;
            }
            if is_first && self.fits(&state, bytes) {
                state.used_bytes += bytes;
                break true;
            }
            drop(state);
            let left = end.map_or(ASK, |end| end.saturating_duration_since(Instant::now()));
            let goes_on = still() && !left.is_zero();
            state = self.lock();
            if !goes_on {
                break false;
            }
            // Room that was made while the lock was released would not be announced again, so it is
            // looked for before the wait.
            let now_first = state.waiting.front() == Some(&ticket);
            if !(state.closed || now_first && self.fits(&state, bytes)) {
                self.freed.wait_for(&mut state, left.min(ASK));
            }
        };
        state.waiting.retain(|waits| *waits != ticket);
        let others_wait = !state.waiting.is_empty();
        drop(state);
        if others_wait {
            // The next caller may fit now, whether this one took its room or gave up.
            self.freed.notify_all();
        }
        granted.then(|| self.charged(bytes))
    }

    /// Ends all waiting; nothing is granted any more.
    pub fn close(&self) {
        self.lock().closed = true;
        self.freed.notify_all();
    }

    fn fits(&self, state: &State, bytes: usize) -> bool {
        state.used_bytes.saturating_add(bytes) <= self.limit_bytes
    }

    fn charged(self: &Arc<Share>, bytes: usize) -> Charge {
        Charge {
            share: Arc::clone(self),
            bytes,
        }
    }

    /// A panic cannot leave the state inconsistent, because no code under this lock panics in the
    /// middle of a change.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Bytes of a share that are in use until this is dropped.
#[derive(Debug)]
pub struct Charge {
    share: Arc<Share>,
    bytes: usize,
}

impl Charge {
    /// The number of bytes that it stands for.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives back what exceeds `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        let Some(more) = self.bytes.checked_sub(bytes) else {
            return;
        };
        self.bytes = bytes;
        drop(self.share.charged(more));
    }

    /// Turns bytes into shared bytes that carry this charge, which ends with the last of their
    /// clones.
    pub fn onto(self, bytes: Vec<u8>) -> Bytes {
        carried(self, bytes)
    }
}

/// Shared bytes that carry `charge`, whatever its type: it is dropped with the last of their
/// clones.
pub fn carried<C: Send + Sync + 'static>(charge: C, bytes: Vec<u8>) -> Bytes {
    struct Carrying<C> {
        bytes: Vec<u8>,
        _charge: C,
    }
    impl<C> AsRef<[u8]> for Carrying<C> {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }
    Bytes::from_owner(Carrying {
        bytes,
        _charge: charge,
    })
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut state = self.share.lock();
        state.used_bytes -= self.bytes;
        let others_wait = !state.waiting.is_empty();
        drop(state);
        if others_wait {
            self.share.freed.notify_all();
        }
        if let Some(on_room) = self.share.on_room.get() {
            on_room();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_lasts_as_long_as_any_slice_of_its_bytes() {
        let share = Share::new(100);
        let bytes = share.charge(80).onto(vec![0; 80]);
        let slice = bytes.slice(7..9);
        drop(bytes);
        assert_eq!(share.used_bytes(), 80);
        drop(slice);
        assert_eq!(share.used_bytes(), 0);
    }

    #[test]
    fn a_charge_gives_back_what_turned_out_not_to_be_needed() {
        let share = Share::new(100);
        let mut charge = share.charge(80);
        charge.shrink_to(30);
        charge.shrink_to(90);
        assert_eq!((charge.bytes(), share.used_bytes()), (30, 30));
        drop(charge);
        assert_eq!(share.used_bytes(), 0);
    }

    #[test]
    fn a_caller_that_waits_goes_on_when_there_is_room_and_gives_up_when_there_is_none() {
        let share = Share::new(100);
        let held = share.charge(60);
        assert!(share.wait_for(50, Duration::from_millis(5)).is_none());
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| share.wait_for(50, Duration::from_secs(60)).is_some());
            drop(held);
            assert!(waiter.join().unwrap());
        });
        let held = share.charge(100);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| share.wait_for(1, Duration::from_secs(60)).is_some());
            share.close();
            assert!(!waiter.join().unwrap());
        });
        drop(held);
        assert_eq!(share.used_bytes(), 0);
    }

    #[test]
    fn a_small_request_does_not_overtake_a_large_one_that_waits() {
        let share = Share::new(100);
        let held = share.charge(60);
        std::thread::scope(|scope| {
            let large = scope.spawn(|| share.wait_for(80, Duration::from_secs(60)));
            while !share.is_contended() {
                std::thread::yield_now();
            }
            assert!(share.try_charge(10).is_none());
            drop(held);
            assert_eq!(large.join().unwrap().map(|charge| charge.bytes()), Some(80));
        });
        assert!(share.try_charge(10).is_some());
    }

    #[test]
    fn more_than_the_bound_is_never_waited_for() {
        let share = Share::new(100);
        assert!(share.wait_while(101, || true).is_none());
    }
}
