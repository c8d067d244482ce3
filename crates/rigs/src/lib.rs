//! Connects each engine to the lab: one module per engine turns it into workloads of suites.
//!
//! A rig runs inside a child process of the runner. It reads the case's parameters, runs the
//! engine as its public command would, and answers through `dyno_suite::protocol`.

#[macro_use]
extern crate dyno_messages;

mod capacity;
mod chain;
mod clickhouse;
mod error;
mod feeds;
mod ingest;
mod kafka;
mod llm;
mod missing;
mod pages;
mod params;
mod peers;
mod pipeline;
mod process;
mod pubsub;
mod quantiles;
mod query;
mod resp;
mod sage;
mod sql;
mod strays;
pub mod tpcc;
mod tpch;
pub mod txn;
mod used;
mod windows;
mod workloads;
mod zipf;

use dyno_suite::protocol::{Request, VersionReply};

pub use clickhouse::server_checksum;
pub use error::RigError;
pub use missing::workload_missing;
pub use params::Params;
pub use peers::missing as peer_missing;
pub(crate) use sql::feed_checksum;
pub use sql::{needs_sql, sql_engine, table_checksum};
pub use strays::{MEMORY, memory_scratch, remove_strays};
pub use windows::Windows;

/// Increment it when data that an earlier program prepared must be made anew.
pub const DATA_VERSION: &str = "1";

/// The engine that a workload measures, under the name of its command.
pub fn engine_of(workload: &str) -> &str {
    let family = workload.split('-').next().unwrap_or(workload);
    match family {
        // Loading, queries in SQL and in plain words, training, and the whole way from a topic to a
        // table.
        "chain" | "clickhouse" | "llm" | "query" | "sage" => "ingest",
        "kafka" => "pubsub",
        "resp" | "tpcc" => "txn",
        other => other,
    }
}

/// Runs the workload of a request and returns the line to print. `speak_as` names the peer to stand
/// in for, where a peer is a protocol or a server that a rig starts.
///
/// # Errors
/// See [`RigError`]; the caller prints it on stderr and exits with another code than 0.
pub fn answer(request: &Request, speak_as: Option<&str>) -> Result<String, RigError> {
    if request.workload == "version" {
        return Ok(serde_json::to_string(&VersionReply {
            version: match speak_as {
                Some(peer) => peers::find(peer)?.version.to_string(),
                None => env!("CARGO_PKG_VERSION").to_string(),
            },
            data_version: DATA_VERSION.to_string(),
        })?);
    }
    let mut params = Params::new(&request.params);
    let reply = (workloads::find(&request.workload)?.run)(&mut params, request, speak_as)?;
    params.finish()?;
    Ok(serde_json::to_string(&reply)?)
}
