//! The errors of starting a server.

use std::io;

use dyno_net::NetError;

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum NbdError {
    /// The address is in use, or cannot be listened at.
    #[error(transparent)]
    Net(#[from] NetError),
    /// Other machines can reach the address, and the server would not ask who connects: check
    /// clients' certificates, listen on loopback or a Unix socket, or set
    /// [`crate::Options::open_to_all`].
    #[error(
        "{address} can be reached from other machines, and clients are not authenticated: check \
         clients' certificates, or listen on loopback or a Unix socket"
    )]
    Unguarded {
        /// The address as it was requested.
        address: String,
    },
    /// TLS is for TCP; a Unix socket is protected by the permissions of its file.
    #[error("{address} is a Unix socket, on which TLS is not spoken")]
    TlsOnUnix {
        /// The address as it was requested.
        address: String,
    },
    /// The exports have equal names, or names that clients could not ask for.
    #[error("export {name:?}: {reason}")]
    Export {
        /// The name of the export that is at fault.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The system cannot start a thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}
