//! Statistics of repeated measurements, from plain slices of numbers.
//!
//! What it is: the few estimators that the lab's rules need ([`median`], [`median_interval`],
//! [`compare`], [`compare_runs`], [`noise_band`], [`holm`], [`trend`], [`change_points`]), each
//! with the definition it follows. What it is not: a general statistics library, and it knows
//! nothing of runs, records or files. Every random choice comes from a seed in the call, so equal
//! input gives equal output.

mod bootstrap;
mod change;
mod compare;
mod error;
mod independence;
mod modes;
mod multiple;
mod noise;
mod ranks;
mod simulation;
mod steady;
mod summary;

pub use bootstrap::{Interval, median_interval};
pub use change::{AGREEING_MIN, CHANGES_MAX_RUNS, ChangePoint, change_points};
pub use compare::{BLOCKS_MIN, Better, Block, Comparison, Verdict, compare, compare_runs};
pub use error::StatsError;
pub use multiple::holm;
pub use noise::{NoiseBand, noise_band, noise_between};
pub use simulation::{
    EqualPrograms, Noise, SimulatedRun, VerdictScore, equal_programs, normal, smallest_effect_seen,
    verdict_score,
};
pub use steady::{Steadiness, SteadyOptions, Trend, steady_from, trend};
pub use summary::{coefficient_of_variation, median};
