//! Collects the live feed of PSK Reporter: every message of an MQTT broker, unchanged, in hourly
//! files that [`dyno_ingest_feeds::psk`] loads.
//!
//! With QoS 0 a broker sends each message only once, so as little as possible happens between the
//! socket and the file: a message gets its time of arrival, and is written as a line of JSON with
//! its topic and raw text. Events of the connection become lines, too, and gaps in the numbers of
//! messages are counted. A file appears under its name when its hour is over and it is compressed.
//! Until then it is plain lines, of which a killed process loses at most those of the last second.
//!
//! The crate implements the part of MQTT 3.1.1 that a subscriber needs, over TCP or TLS, with QoS 0
//! only.

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
