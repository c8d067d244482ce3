//! The stored form of a run: one directory of plain files.
//!
//! `run.json` holds what was planned and where it ran ([`Run`]), `samples.ndjson` one line per
//! invocation ([`Sample`]), `*.hdr` the latency histograms that samples name. Only this crate
//! reads and writes these files; FORMAT.md at the top of the tree describes them for others.

mod schema;

pub use schema::{
    Answer, Arm, Better, CasePlan, Limit, Machine, MachineCheck, Outcome, Plan, Program, Run,
    SCHEMA_VERSION, Sample, SeedFigure, Size, SystemVersion, Table, TableRow, Usage,
};
