//! SQL over a spots table and over TPC-H tables, on DataFusion.
//!
//! What it is: the engine behind `dyno ingest query`, `dyno ingest serve`, `dyno ingest features`,
//! `dyno tpch query` and `dyno tpch verify`, in an executable of its own, because it takes several
//! times as long to build as all the rest. It opens one committed snapshot of a spots table, or a
//! directory of TPC-H tables, and answers statements that read. What it is not: a way to change a
//! table.

#[macro_use]
extern crate dyno_messages;

pub mod args;
pub mod cmd;
pub mod coded;
pub mod error_text;
pub mod features;
pub mod feed;
pub mod file;
mod files;
pub mod options;
pub mod output;
pub mod serve;
pub mod session;
pub mod statement;
pub mod tpch;
