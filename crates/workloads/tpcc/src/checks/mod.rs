//! Is the database what the transactions should have made of it? The consistency conditions of
//! clause 3.3.2, all twelve; atomicity of Payment (clause 3.2.2); and a checksum, to compare
//! databases.
//!
//! Conditions are of a database at rest: nothing else may run meanwhile.

mod atomicity;
mod checksum;
mod conditions;
mod gather;

pub use atomicity::atomicity;
pub use checksum::{Checksum, checksum, rows};
pub use conditions::{Violation, consistency};
