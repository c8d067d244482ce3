//! Collects PSK Reporter's live feed: every message of an MQTT broker, as it came, into files of an
//! hour each that [`dyno_ingest_feeds::psk`] loads.
//!
//! QoS 0 gives no second chance, so nothing stands between the socket and the file: a message is
//! stamped, put into a line of JSON with its topic and raw text, and written. What happens to the
//! connection becomes lines, too, and gaps in the messages' numbers are counted. A file appears
//! under its name when its hour is over and it is compressed; until then it is plain lines, of
//! which a process that is killed leaves all but the last second's.
//!
//! It speaks the part of MQTT 3.1.1 that a subscriber needs, over TCP or TLS: QoS above 0 is not
//! there.

mod broker;
mod collector;
mod error;
mod hours;
mod link;
mod listening;
mod metrics;
pub mod packet;
mod sequence;

pub use broker::Broker;
pub use collector::{Collector, Settings, Summary};
pub use error::CollectError;
pub use hours::Hours;
pub use metrics::Metrics;
pub use sequence::{Account, Sequence};
