//! placeholder
pub mod message;
pub mod placement;
mod reads;
pub mod record;
mod store;
mod wire;
