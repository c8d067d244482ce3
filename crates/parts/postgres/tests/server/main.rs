//! Against the real server: it is started, killed, replicated and asked.
#![expect(
    clippy::unwrap_used,
    reason = "the functions around the tests fail the test"
)]

mod cluster;
mod guarded;
mod kills;
mod place;
mod replication;
mod settings;
mod tls;
