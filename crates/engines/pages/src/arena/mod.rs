//! The memory of a store: a file in memory that outlives the process when another process holds it,
//! and the slots in it.

pub mod classes;
pub mod layout;
pub mod memory;
pub mod slots;
