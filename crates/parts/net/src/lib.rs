//! Requests and answers in frames, over shared-memory rings, Unix sockets, TCP and TLS.
//!
//! What it is: one frame of a 16-byte header and a body ([`Decoder`], [`encode`]; the layout is in
//! docs/formats/frames.md), the sockets that carry it ([`Address`], [`Listener`], [`Stream`]), and
//! two ways to use them, which speak the same bytes:
//!
//! - *Threaded*: blocking calls, and threads for each connection. A [`Caller`] has many requests
//!   under way on one connection, and a [`Server`] may wait while it handles one. It suits services
//!   whose requests take long or wait for each other, such as the message broker.
//! - *Polled*: one thread owns its connections, never blocks while there is work, and takes no
//!   locks. A [`Port`] is one connection, a [`Client`] adds requests and deadlines, a
//!   [`SharedClient`] lets many threads use one, and a [`Reactor`] serves many connections. Peers
//!   on one host move to shared-memory rings ([`ring`]) by themselves. It suits engines with a
//!   thread for each core, where an answer takes microseconds, such as the transaction engine.
//!
//! What it is not: a meaning of any verb; that belongs to its users. Everything that waits or holds
//! bytes is bounded, and a peer that is dead or lies ends its own connection only.

mod address;
mod client;
mod closed;
mod discovery;
mod error;
pub mod exchange;
mod frame;
mod port;
mod reactor;
pub mod ring;
mod share;
mod shared;
mod threaded;
mod tls;
mod transport;
mod unix;

pub use address::Address;
pub use client::{Answered, Client, ClientOptions};
pub use closed::Closed;
pub use discovery::FIRST_RESERVED;
pub use error::{FrameError, NetError};
pub use frame::{Decoder, Frame, HEADER_BYTES, Head, MAGIC, VERSION, encode, header};
pub use port::{FrameRef, Outbound, Port, PortOptions, SendError, Transport, TransportKind};
pub use reactor::{Handler, PortId, Reactor, ReactorOptions, Waker};
pub use rustls;
pub use share::{Charge, Share, carried};
pub use shared::{SharedClient, Ticket};
pub use threaded::{
    Answer, CallOptions, Caller, Connection, Outbox, ServeCounts, ServeOptions, Server, Service,
    write_parts,
};
pub use transport::{Listener, Stream};
pub use unix::BoundListener;
