//! Clients of an engine, in this process or behind an address.
//!
//! | file | what |
//! |---|---|
//! | `connector` | makes connections |
//! | `session` | one thread's connections to all threads of the engine |
//! | `node` | the database: routing, tables, one-shot transactions |
//! | `transaction`, `pipeline` | interactive transactions; many one-shot transactions at once |

mod connector;
mod node;
mod pipeline;
mod session;
mod transaction;

pub(crate) use connector::Connector;
pub(crate) use node::Node;
