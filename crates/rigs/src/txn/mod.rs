//! Transactions: opens databases of every engine, runs their servers as processes, and has K2's
//! workloads.

mod calls;
mod k2;
mod open;
mod servers;

pub(crate) use calls::{rpc, transport};
pub use dyno_txn_node::{
    Durability, OpenOptions, Role, ServeOptions, Server, Share, restore, serve,
};
pub use dyno_txn_postgres::Isolation;
pub(crate) use k2::{K2Error, k2};
pub use open::{OpenHow, backup, open, procedures};
pub use servers::{DynoProcesses, DynoServer, EtcdNodes};
