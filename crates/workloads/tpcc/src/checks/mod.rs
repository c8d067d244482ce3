//! Checks whether the database is what the transactions should have made of it: all twelve
//! consistency conditions of clause 3.3.2; atomicity of Payment (clause 3.2.2); and a checksum, to
//! compare databases.
//!
//! The database must be at rest: nothing else may run meanwhile.

mod atomicity;
mod checksum;
mod conditions;
mod gather;

pub use atomicity::atomicity;
pub use checksum::{Checksum, checksum, rows};
pub use conditions::{Violation, consistency};
