//! Whole clusters of partitions in one thread, from one seed.

mod cluster;
mod client;
mod judge;
mod random_runs;
