//! The running transaction engine.

mod directory;
mod engine;
mod error;
mod hello;
mod options;

pub use options::{Durability, OpenOptions};

mod backup;
pub use backup::restore;
