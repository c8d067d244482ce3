//! Statistics of repeated measurements, from plain slices of numbers.
//!
//! What it is: the few estimators that the lab's rules need ([`median`], [`median_interval`],
//! [`compare`], [`compare_runs`], [`noise_band`], [`holm`], [`trend`]), each with the definition it
//! follows. What it is not: a general statistics library, and it knows nothing of runs, records or
//! files. Every random choice comes from a seed in the call, so equal
//! input gives equal output.

mod bootstrap;
mod compare;
mod error;
mod independence;
mod modes;
mod multiple;
mod noise;
mod ranks;
mod steady;
mod summary;

pub use bootstrap::{Interval, median_interval};
pub use compare::{BLOCKS_MIN, Better, Block, Comparison, Verdict, compare, compare_runs};
pub use error::StatsError;
pub use multiple::holm;
pub use noise::{NoiseBand, noise_band, noise_between};
pub use steady::{Steadiness, SteadyOptions, Trend, steady_from, trend};
pub use summary::{coefficient_of_variation, median};
