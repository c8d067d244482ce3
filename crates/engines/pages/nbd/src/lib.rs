//! Compressed pages as a network block device: a server of the NBD protocol.
//!
//! What it is: [`Server`], which offers [`Export`]s over TCP, TLS and Unix sockets to any NBD
//! client (qemu, nbdcopy, the kernel's), by the fixed newstyle handshake, with structured replies,
//! many connections to one export, trim, write zeroes, flush and FUA; and [`serve`], the same on
//! anything that reads and writes. The protocol is that of `doc/proto.md` in
//! NetworkBlockDevice/nbd.
//!
//! What it is not: durable. The store lives in memory. A reply, a flush and FUA all promise the
//! same: the bytes are in the store's memory, where every other connection sees them, and where
//! they outlive this process as long as another process holds that memory. None of them is about
//! power. There are no extents to ask for (block status): what is zero is sent as a hole when it is
//! read.

mod connection_state;
mod error;
mod export;
mod handshake;
mod keepalive;
mod option;
mod server;
mod session;
mod transmission;
mod wire;

pub use dyno_net::Address;
pub use error::NbdError;
pub use export::{Export, Exports};
pub use server::{Clients, Options, Server, Tls};
pub use session::{Ended, Figures, Link, serve};
