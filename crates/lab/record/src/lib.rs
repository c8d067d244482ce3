//! The stored form of a run: one directory of plain files.
//!
//! `run.json` holds what was planned and where it ran ([`Run`]), `samples.ndjson` one line per
//! invocation ([`Sample`]), `*.hdr` the latency histograms that samples name. A `WITHDRAWN.md`
//! beside them ([`Withdrawal`]) says that the figures must not be used any more. A `FIGURES.toml`
//! ([`Figures`]) holds the figures of a report, ours or another author's, for the linter. A history
//! has one line for each run ([`HistoryLine`]), with dated notes ([`Note`]) beside it. Only this
//! crate reads and writes these files; the pages under docs/formats describe them for others.

mod again;
mod error;
mod experiment;
mod figures;
mod figures_file;
mod history;
mod latencies;
mod latest;
mod left_out;
mod migration;
mod pattern;
mod profile;
mod role;
mod run_dir;
mod schema;
mod sensed;
mod store;
mod target;

pub use error::RecordError;
pub use experiment::{Around, Experiment, Gives};
pub use figures::{
    Ceiling, Claim, CodecFigure, Condition, Count, FIGURES_VERSION, Figures, Heading,
    LatencyFigure, Property, PropertyValue, QuotedFigure, SpreadWord, Total, TotalKind,
};
pub use figures_file::{parse_figures, read_figures, write_figures};
pub use history::{
    HISTORY_VERSION, HistoryFigure, HistoryLine, Note, append_history, append_note, read_history,
    read_notes,
};
pub use latencies::{LatencyLog, LatencySpan};
pub use latest::{RunEntry, find_runs, latest_run, list_runs};
pub use left_out::LeftOut;
pub use pattern::matches_pattern;
pub use profile::Profile;
pub use role::Role;
pub use run_dir::{RUN_FILE, RunDir, SAMPLES_FILE, WITHDRAWN_FILE};
pub use schema::{
    Answer, Arm, Better, CasePlan, KEPT_SCHEDULE, Limit, Load, MEASURED_MIN_S, Machine,
    MachineCheck, OURS, Outcome, Plan, Program, Run, SCHEMA_VERSION, STEAL_MAX, Sample, SeedFigure,
    Size, SystemVersion, Table, TableKind, TableRow, Usage, untraceable,
};
pub use sensed::{Sensed, Span};
pub use store::{StoredRun, Warning, Withdrawal};
pub use target::Target;
