//! An answer that comes later, from another thread.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// How often a waiting caller is asked whether it still wants to wait.
const ASK: Duration = Duration::from_millis(250);

/// Where an answer goes.
#[derive(Debug)]
pub struct Reply<T>(SyncSender<T>);

/// Where an answer comes from.
#[derive(Debug)]
pub struct Awaited<T>(Receiver<T>);

/// Both ends of one answer.
pub fn reply<T>() -> (Reply<T>, Awaited<T>) {
    let (sender, receiver) = sync_channel(1);
    (Reply(sender), Awaited(receiver))
}

impl<T> Reply<T> {
    /// Answers. A caller that has gone does not need the answer.
    pub fn send(self, answer: T) {
        let _ = self.0.try_send(answer);
    }
}

impl<T> Awaited<T> {
    /// Waits for the answer for as long as `still` holds; `None` if it does not any more, or the
    /// other end was dropped.
    pub fn wait(self, still: impl Fn() -> bool) -> Option<T> {
        loop {
            match self.0.recv_timeout(ASK) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Timeout) if still() => {}
                Err(_) => return None,
            }
        }
    }
}
