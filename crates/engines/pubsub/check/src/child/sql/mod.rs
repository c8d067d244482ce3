//! Clients that call the SQL functions, as a program in any language does.

mod consume;
mod link;
mod produce;

pub use consume::consume;
pub use link::Link;
pub use produce::produce;
