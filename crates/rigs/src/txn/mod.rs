//! Transactions: how databases of every engine are opened, servers of them as processes, and K2's workloads on
//! them.

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

use crate::RigError;

/// The version of a peer: that of a program as it is installed.
pub(crate) fn peer_version(peer: &str) -> Result<&'static str, RigError> {
    match peer {
        "postgres" | "postgres-serializable" | "etcd" => Ok("as-installed"),
        other => Err(RigError::Peer(other.to_owned())),
    }
}

/// Why a peer that needs no installation cannot take part here.
pub(crate) fn peer_missing(peer: &str) -> Option<String> {
    match peer {
        "postgres" | "postgres-serializable" => crate::pubsub::server_missing(),
        "etcd" => EtcdNodes::missing(),
        _ => None,
    }
}
