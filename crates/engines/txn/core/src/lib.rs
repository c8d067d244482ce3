//! placeholder
pub mod message;
pub mod placement;
pub mod record;
pub mod planted;
pub mod oracle;
mod coordinator;
mod effects;
mod merge;
mod outcomes;
mod partition;
mod reads;
mod schema;
mod store;
mod wire;
pub use coordinator::{Coordinator, Event, Sends};
pub use effects::{Effects, Records, Position};
pub use partition::{Partition, Config, Counters, Stamps, Checkpoint};
pub use schema::Schema;
