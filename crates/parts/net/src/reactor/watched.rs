//! A descriptor of the caller that ends a reactor's sleep. A thread that has sockets of its own
//! beside the reactor's connections can then wait for both at once.

use std::os::fd::BorrowedFd;

use super::{READS, Reactor, WATCHED};
use crate::NetError;

impl Reactor {
    /// Ends every sleep from now on when this descriptor becomes readable, until it is closed. It
    /// may be one of epoll. The reactor does not read from it.
    ///
    /// # Errors
    /// If the system cannot watch it, or another one is watched already.
    pub fn watch(&mut self, descriptor: BorrowedFd<'_>) -> Result<(), NetError> {
        self.epoll
            .add(descriptor, WATCHED, READS)
            .map_err(|error| NetError::io("watch", "a descriptor", error))
    }

    /// Whether that descriptor was readable at a sleep, or another look at events, since the last
    /// call.
    pub fn take_watched(&mut self) -> bool {
        std::mem::take(&mut self.watched_is_ready)
    }
}
