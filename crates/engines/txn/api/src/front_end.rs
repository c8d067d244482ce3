//! Servers of another protocol that an engine can run on a thread of its own.

use std::os::fd::BorrowedFd;

use crate::{Committed, Pipeline, Result};

/// What a step of a [`FrontEnd`] has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing to do.
    Idle,
    /// Something, and perhaps there is more.
    Busy,
    /// It has ended, and is to be dropped.
    Over,
}

/// A server whose clients' requests become one-shot transactions. It has sockets of its own, and
/// never waits: the thread that runs it waits for its descriptor and for answers of the engine at
/// once. That may be a thread of the engine itself ([`Database::host`](crate::Database::host)),
/// which spares each request and each answer the way to another thread.
pub trait FrontEnd: Send {
    /// A descriptor that is readable while a step would find something to do; most often one of
    /// epoll.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Reads what clients have sent, and submits it. It is called at least ten times a second,
    /// whatever the descriptor says.
    fn step(&mut self, pipeline: &mut dyn Pipeline) -> Step;

    /// Takes the engine's answer to the request that was submitted with this ticket.
    fn answered(&mut self, pipeline: &mut dyn Pipeline, ticket: u64, answer: Result<Committed>);
}
