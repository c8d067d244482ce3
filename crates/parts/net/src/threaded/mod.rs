//! The half of the crate that waits: blocking calls, and threads for each connection.
//!
//! What it is for: programs that want answers in any order from any thread, and whose requests take
//! longer than a switch between threads. A [`Service`] may wait while it handles a request, and
//! that is how back-pressure reaches its client. The messages of `dyno pubsub` travel this way.
//!
//! - [`Caller`] is a client that many threads share. It has one thread that writes and one that
//!   reads, which calls back with each answer.
//! - [`Server`] accepts connections. A client that has not said who it is has one thread, and is
//!   under tight limits of time and room; an admitted one has a thread that reads and one that
//!   writes.
//! - [`Outbox`] is the queue between the threads that have something to send and the one that
//!   writes.
//!
//! How it differs from the polled half ([`crate::Port`], [`crate::Client`], [`crate::Reactor`]):
//! there one thread owns all its connections, never waits in a call of the system while there is
//! work, takes no locks, and can move to shared-memory rings. It answers in microseconds, but a
//! handler that waits stops every connection of its thread. Here each frame costs a wake-up of a
//! thread or two, and only sockets and TLS carry frames.
//!
//! Both halves speak the same frames ([`crate::Decoder`], [`crate::encode`]) over the same sockets
//! ([`crate::Stream`], [`crate::Listener`]), and end connections for the same reasons
//! ([`crate::Closed`]), so a client of one half can talk to a server of the other.

mod accept;
mod call;
mod connection;
mod connections;
mod outbox;
mod pending;
mod serve;
mod writer;

pub use call::{Answer, CallOptions, Caller};
pub use outbox::Outbox;
pub use serve::{Connection, ServeCounts, ServeOptions, Server, Service};
pub use writer::write_parts;
