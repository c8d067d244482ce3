//! Polled connections over every transport, and peers that misbehave or die.

mod dead_peer;
mod misbehaviour;
mod polled;
mod shared;
mod tls;
mod transports;
mod unadmitted;

use dyno_net::{ClientOptions, Head, PortOptions};

fn unix() -> (String, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    (
        format!("unix:{}", folder.path().join("s").display()),
        folder,
    )
}

fn options(ring: bool) -> ClientOptions {
    ClientOptions {
        port: PortOptions {
            ring,
            ..PortOptions::default()
        },
        ..ClientOptions::default()
    }
}

fn head(verb: u8, request: u32) -> Head {
    Head {
        verb,
        flags: 0,
        request,
    }
}
