//! Suites: what is measured, in which order, with which peers, and whether the answers agree.
//!
//! A suite is a TOML file ([`Definition`]). [`Planned`] is that file at one size: every cell, its
//! repeats, what it needs and about how long it takes. [`run`] drives a plan: data is prepared,
//! every answer is verified, and only then is anything timed, one child process per invocation,
//! in blocks of randomised and balanced order. Each sample is on disk before the next one starts.
//!
//! The crate measures nothing by itself: children report their own figures through one door
//! ([`protocol`]), the same for our engines and for peers, and `dyno-machine` watches from outside.
//! Clock, executor and progress are handed in, so that a whole run can be tested without waiting.

mod beside;
mod child;
mod clock;
mod cores;
mod data;
mod data_plan;
mod definition;
mod error;
mod estimate;
mod executor;
mod expand;
mod install;
mod invoke;
mod needs;
mod order;
mod peer;
mod plan;
mod profile;
mod progress;
pub mod protocol;
mod runner;
mod sample;
mod scratch;
mod selection;
mod setting;
mod size;
mod stop;
mod substitute;
mod sweep;
mod system;
mod table_rows;
mod target;
mod verify;
mod why;

#[cfg(test)]
mod scheduler_test;

pub use beside::{LoadCommand, RunningLoad};
pub use child::ChildExecutor;
pub use clock::{Clock, SystemClock};
pub use data::Preparer;
pub use data_plan::DataPlan;
pub use definition::{Definition, SizeParams};
pub use error::{Error, nearest};
pub use estimate::CaseEstimate;
pub use executor::{Ended, Executor, Exit, Invocation};
pub use needs::{Needs, Resources, show_bytes};
pub use order::{Slot, blocks};
pub use peer::{Catalogue, Peer, PeerState, peers_root, user_directory};
pub use plan::Planned;
pub use profile::Profiler;
pub use progress::{Event, Observer};
pub use runner::{Setup, Summary, run, whole_blocks};
pub use selection::Selection;
pub use stop::Stop;
pub use system::{DYNO, System};
pub use why::Surroundings;
