//! Polled connections over every carrier, and peers that misbehave or die.

mod carriers;
mod dead_peer;
mod misbehaviour;
mod polled;
mod shared;
mod tls;
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
