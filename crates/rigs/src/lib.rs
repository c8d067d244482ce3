//! Bolts each engine to the lab: one file per engine turns it into workloads of suites.
//!
//! A rig runs inside a child process of the runner. It reads the case's parameters, runs the
//! engine as its public command would, and answers through `dyno_suite::protocol`.

#[macro_use]
extern crate dyno_messages;

mod chain;
mod clickhouse;
mod error;
mod ingest;
mod llm;
mod pages;
mod params;
mod pubsub;
mod query;
mod sql;
pub mod tpcc;
mod tpch;
pub mod txn;
mod used;
mod windows;

use dyno_suite::protocol::{Reply, Request, VersionReply};

pub use clickhouse::server_checksum;
pub use error::RigError;
pub use params::Params;
pub use sql::{needs_sql, sql_engine, table_checksum};
pub use windows::Windows;

/// Changes when data that an earlier program prepared must be made anew.
pub const DATA_VERSION: &str = "1";

/// Why a peer that needs no installation cannot take part on this machine; nothing where it can.
pub fn peer_missing(peer: &str) -> Option<String> {
    pubsub::peer_missing(peer)
        .or_else(|| clickhouse::peer_missing(peer))
        .or_else(|| txn::peer_missing(peer))
        .or_else(|| pages::peer_missing(peer))
}

/// Runs the workload of a request and answers with the line to print. `speak_as` is the peer whose protocol to speak, for
/// peers that are protocols and no programs of their own.
///
/// # Errors
/// See [`RigError`]; the caller prints it on stderr and exits with another code than 0.
pub fn answer(request: &Request, speak_as: Option<&str>) -> Result<String, RigError> {
    let mut params = Params::new(&request.params);
    let scratch = &request.scratch;
    let reply: Reply = match request.workload.as_str() {
        "version" => {
            return Ok(serde_json::to_string(&VersionReply {
                version: match speak_as {
                    Some(peer) => peer_version(peer)?.to_string(),
                    None => env!("CARGO_PKG_VERSION").to_string(),
                },
                data_version: DATA_VERSION.to_string(),
            })?);
        }
        "ingest-gen" => ingest::generate(&mut params, scratch)?,
        "ingest-parquet" => ingest::parquet(&mut params, scratch)?,
        "ingest-next" => ingest::next(&mut params, scratch)?,
        "ingest-load" => ingest::load(&mut params, scratch)?,
        "clickhouse-load" => clickhouse::load(&mut params, scratch, speak_as)?,
        "chain" => chain::chain(&mut params, request)?,
        "query-prepare" => query::prepare(&mut params, scratch)?,
        "query-top-ten" => query::top_ten(&mut params)?,
        "query-spots" => query::spots(&mut params)?,
        "llm-beside" => llm::beside(&mut params, request)?,
        "tpch-write" => tpch::write(&mut params, request)?,
        "pubsub-flow" => pubsub::flow(&mut params, request, speak_as)?,
        "pubsub-queue" => pubsub::queue(&mut params, request, speak_as)?,
        "pubsub-capacity" => pubsub::capacity(&mut params, request, speak_as)?,
        "pubsub-commits" => pubsub::commits(&mut params, request, speak_as)?,
        "txn-rpc" => txn::rpc(&mut params, request)?,
        "txn-transport" => txn::transport(&mut params, request)?,
        "txn-k2" => txn::k2(&mut params, request, speak_as)?,
        "tpcc-run" => tpcc::run(&mut params, request, speak_as)?,
        "pages-corpus" => pages::corpus(&mut params, request)?,
        "pages-codec" => pages::codec(&mut params, request)?,
        "pages-store" => pages::store(&mut params, request, speak_as)?,
        "pages-device" => pages::device(&mut params, request, speak_as)?,
        "pages-fault" => pages::fault(&mut params, request)?,
        "pages-space" => pages::space(&mut params, request, speak_as)?,
        other => return Err(RigError::Unknown(other.to_string())),
    };
    params.finish()?;
    Ok(serde_json::to_string(&reply)?)
}

/// The version of a peer that is a protocol, or a server that a rig starts.
fn peer_version(peer: &str) -> Result<&'static str, RigError> {
    if peer == clickhouse::PEER {
        return Ok(clickhouse::PEER_VERSION);
    }
    if pages::PEERS.contains(&peer) {
        return Ok(pages::PEER_VERSION);
    }
    pubsub::peer_version(peer).or_else(|_| txn::peer_version(peer))
}
