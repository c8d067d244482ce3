//! Direct mode: the client speaks SQL with the servers themselves. A consumer reads from a source,
//! and a producer sends by transports.

mod source;
mod transport;

pub(super) use source::open_source;
pub(super) use transport::{Server, Transport, connect};
