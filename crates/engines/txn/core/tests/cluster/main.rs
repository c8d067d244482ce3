//! Whole clusters of partitions in one thread, from one seed.

mod client;
mod cluster;
mod judge;
mod random_runs;
