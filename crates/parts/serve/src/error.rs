//! Errors of a listener, and what to do about each. No variant holds a token or a key.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why metrics, a token, TLS or a listener cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Every client that reaches this address could use it: give it a token, or listen on loopback.
    #[error(
        "refusing to listen on {address} without a token, because others than this machine reach it: \
         give it a token, or listen on 127.0.0.1"
    )]
    Unguarded {
        /// The address that was requested.
        address: SocketAddr,
    },
    /// The system refused the address: choose another one, or end the program that has it.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address that was requested.
        address: SocketAddr,
        /// The error that the operating system returned.
        source: io::Error,
    },
    /// A token that is too short or malformed: make another one, for example with 'openssl rand
    /// -hex 32'.
    #[error("the token {from} cannot be used: {reason}")]
    Token {
        /// The source of the token, such as `in FILE`.
        from: String,
        /// What is wrong with the token, the file or the metric.
        reason: String,
    },
    /// A certificate or key that cannot be used.
    #[error("cannot use {path} for TLS: {reason}")]
    Tls {
        /// The PEM file that cannot be used.
        path: PathBuf,
        /// What is wrong with the token, the file or the metric.
        reason: String,
    },
    /// A metric that Prometheus would not accept, or that contradicts one that is registered.
    #[error("metric {name:?}: {reason}")]
    Metric {
        /// The name of the metric.
        name: String,
        /// What is wrong with the token, the file or the metric.
        reason: String,
    },
    /// A thread could not be started.
    #[error("cannot start the thread of {address}: {source}")]
    Thread {
        /// The address of the listener.
        address: SocketAddr,
        /// The error that the operating system returned.
        source: io::Error,
    },
}
