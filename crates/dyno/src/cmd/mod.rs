//! One file per command, each with one public `run`. No command calls another; `bench` is what the
//! bench commands of the engines share.

pub mod ab;
mod bench;
pub mod beside;
pub mod claims;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod documents;
pub mod history;
pub mod ingest;
pub mod limits;
pub mod lint;
pub mod man;
pub mod pages;
pub mod peers;
pub mod plan;
pub mod pubsub;
pub mod rank;
pub mod report;
pub mod reproduce;
pub mod rig;
pub mod run;
pub mod selfcheck;
pub mod serve;
pub mod site;
pub mod tpcc;
pub mod tpch;
pub mod txn;
