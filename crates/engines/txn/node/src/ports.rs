//! The settings that every connection and every reactor of this crate shares.

use std::time::Duration;

use dyno_net::{PortOptions, ReactorOptions};

use crate::hello::{MOST_BODY_BYTES, MOST_HELD_BYTES, MOST_HELLO_BYTES};
use crate::options::OpenOptions;

/// The size of each direction of a ring within the process.
pub(crate) const RING_BYTES: u32 = 2 << 20;

/// Bounds of a connection, the same at both of its ends.
pub(crate) fn port_options() -> PortOptions {
    PortOptions {
        most_body_bytes: MOST_BODY_BYTES,
        outbox_bytes: 8 << 20,
        ..PortOptions::default()
    }
}

/// Those of a connection to another process, with the encryption that the user wants.
pub(crate) fn connect_options(options: &OpenOptions) -> PortOptions {
    PortOptions {
        ring: options.ring,
        tls: options.tls.clone(),
        ..port_options()
    }
}

/// Bounds of a reactor that accepts connections. A peer that has not been authenticated can make it
/// allocate little, because the body of a greeting is bounded separately.
pub(crate) fn reactor_options(spin: Duration) -> ReactorOptions {
    ReactorOptions {
        port: port_options(),
        spin,
        ring_bytes: RING_BYTES,
        most_hello_bytes: MOST_HELLO_BYTES,
        most_held_bytes: MOST_HELD_BYTES,
        ..ReactorOptions::default()
    }
}
