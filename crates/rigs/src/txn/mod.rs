//! Transactions: runs servers of every engine as processes, and has K2's workloads.

mod calls;
mod k2;
mod servers;

pub(crate) use calls::{rpc, serve as calls_server, transport};
pub(crate) use k2::{capacity as k2_capacity, k2};
pub use servers::{DynoProcesses, DynoServer, EtcdNodes};
