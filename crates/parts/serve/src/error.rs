//! What can go wrong with a listener. No variant holds a token or a key.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A failed set-up of metrics, token, TLS or listener.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Anybody could use it: give a token, or listen on loopback.
    #[error(
        "refusing to listen on {address} without a token, because others than this machine reach it: \
         give it a token, or listen on 127.0.0.1"
    )]
    Unguarded {
        /// What was asked for.
        address: SocketAddr,
    },
    /// The address is not to be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// What was asked for.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// A token that guards nothing: make a longer one, as by 'openssl rand -hex 32'.
    #[error("the token {from} cannot be used: {reason}")]
    Token {
        /// Where it came from.
        from: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A certificate or key that cannot be used.
    #[error("cannot use {path} for TLS: {reason}")]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A metric that Prometheus would not understand, or that contradicts one that is there.
    #[error("metric {name:?}: {reason}")]
    Metric {
        /// Its name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A thread could not be started.
    #[error("cannot start the thread of {address}: {source}")]
    Thread {
        /// The listener.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
}
