//! A small process that holds open files for others, so that they outlive the process that opened
//! them.
//!
//! What it is: [`Holder`], which listens at a Unix socket and keeps descriptors by name, each with
//! a note of a few bytes; [`Client`], which puts them there and gets them back. A daemon puts the
//! file in memory of its page store there (and its end of a device, such as `/dev/fuse`). If the
//! daemon is killed, the next one finds everything that was replied to. The layout of a message is
//! in docs/formats/holder.md.
//!
//! What it is not: a supervisor. A program that wants a dead daemon started again does so itself,
//! as `dyno pages attach` has its holder do; and when the holder ends, what only it held is gone.
//! It allocates little, never touches the pages, and asks the system to spare it when memory is
//! short. It answers only processes of the same user, and root.

mod client;
mod detached;
mod error;
mod holder;
mod message;
mod rights;

pub use client::{Client, HeldFile, start};
/// Listens at a Unix socket without taking the place of a living listener or of another file.
pub use dyno_net::BoundListener;

pub use detached::{detached, ignore_hang_up};
pub use error::HoldError;
pub use holder::Holder;
pub use message::{MOST_HELD, MOST_NAME_BYTES, MOST_NOTE_BYTES};
/// Bytes with a descriptor, for other protocols that pass one over a Unix socket.
pub use rights::{receive_part, send as send_with_file};
