//! Transactions: how databases of every engine are opened, and servers of them as processes.

mod open;
mod servers;

pub use dyno_txn_node::{Durability, OpenOptions, Role, ServeOptions, Server, restore, serve};
pub use dyno_txn_postgres::Isolation;
pub use open::{OpenHow, open, procedures};
pub use servers::{DynoServer, EtcdNodes};
