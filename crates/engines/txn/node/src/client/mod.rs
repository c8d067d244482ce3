//! Clients of an engine, in this process or behind an address.
//!
//! | file | what |
//! |---|---|
//! | `reach` | how connections are made |
//! | `session` | one thread's connections to all threads of the engine |
//! | `node` | the database: routing, tables, one-shots |
//! | `transaction`, `pipeline` | interactive transactions; many one-shots at once |
//! | `backup` | asking a server for one |

mod backup;
mod node;
mod pipeline;
mod reach;
mod session;
mod transaction;

pub use backup::backup;
pub(crate) use node::Node;
pub(crate) use reach::Reach;
