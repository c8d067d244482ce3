//! Whole clusters of partitions in one thread, from one seed.

mod against_model;
mod client;
mod cluster;
mod judge;
mod random_runs;
mod refusals;
