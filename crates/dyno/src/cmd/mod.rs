//! One file per command, each with one public `run`. No command calls another.

pub mod compare;
pub mod completions;
pub mod doctor;
pub mod ingest;
pub mod limits;
pub mod lint;
pub mod man;
pub mod peers;
pub mod plan;
pub mod report;
pub mod rig;
pub mod run;
pub mod tpch;
