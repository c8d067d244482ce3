//! Requests and answers in frames, over Unix sockets and TCP.
//!
//! What it is: one frame of a 16-byte header and a body ([`Decoder`], [`encode`]; the layout is in
//! FORMAT.md), carriers for it, with TLS over TCP where it is wanted ([`Address`], [`Listener`],
//! [`Stream`]), a client with many requests under way on one connection ([`Caller`]), and a server
//! of connections ([`Server`]). Threads and blocking calls. What it is not: a meaning of any verb;
//! that belongs to its users. Everything that waits or holds bytes is bounded, and a peer that is
//! dead or lies ends its own connection only.

mod accept;
mod address;
mod call;
mod carrier;
mod client;
mod connection;
mod connections;
mod discovery;
mod error;
pub mod exchange;
mod frame;
mod outbox;
mod pending;
mod port;
mod reactor;
pub mod ring;
mod serve;
mod share;
mod shared;
mod tls;
mod unix;
mod writer;

pub use address::Address;
pub use call::{Answer, CallOptions, Caller};
pub use carrier::{Listener, Stream};
pub use client::{Answered, Client, ClientOptions};
pub use discovery::FIRST_RESERVED;
pub use error::{FrameError, NetError};
pub use frame::{Decoder, Frame, HEADER_BYTES, Head, MAGIC, VERSION, encode, header};
pub use outbox::Outbox;
pub use port::{Carrier, CarrierKind, FrameRef, Outbound, Port, PortOptions, SendError};
pub use reactor::{Handler, PortId, Reactor, ReactorOptions, Waker};
pub use rustls;
pub use serve::{Closed, Connection, ServeCounts, ServeOptions, Server, Service};
pub use share::{Charge, Share, carried};
pub use shared::{SharedClient, Ticket};
pub use unix::BoundListener;
