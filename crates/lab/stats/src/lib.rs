//! Statistics of repeated measurements, from plain slices of numbers.
//!
//! What it is: the few estimators that the lab's rules need ([`median`], [`quantile`],
//! [`median_interval`], [`compare`], [`noise_band`], [`holm`], [`effective_sample_size`],
//! [`trend`]), each with the definition it follows. What it is not: a general statistics library,
//! and it knows nothing of runs, records or files. It depends on nothing, and every random choice
//! comes from a seed in the call, so equal input gives equal output.

mod bootstrap;
mod compare;
mod error;
mod independence;
mod modes;
mod multiple;
mod noise;
mod outliers;
mod random;
mod sign_flip;
mod steady;
mod summary;

pub use bootstrap::{BOOTSTRAP_RESAMPLES, Interval, median_interval};
pub use compare::{Better, Block, CompareOptions, Comparison, Verdict, compare};
pub use error::StatsError;
pub use independence::{BatchMeans, autocorrelation, batch_means, effective_sample_size};
pub use modes::{TwoModes, two_modes};
pub use multiple::holm;
pub use noise::{NoiseBand, noise_band};
pub use outliers::{Fences, modified_z_scores, outliers_by_modified_z, tukey_fences};
pub use random::Random;
pub use steady::{Steadiness, SteadyOptions, Trend, steady_from, trend};
pub use summary::{Summary, coefficient_of_variation, mean, median, quantile, summary, variance};
