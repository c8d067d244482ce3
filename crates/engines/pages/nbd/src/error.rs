//! What can go wrong with a server.

use std::io;

use dyno_net::NetError;

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum NbdError {
    /// The address is taken, or cannot be listened at.
    #[error(transparent)]
    Net(#[from] NetError),
    /// Others than this machine's processes could reach it, and nothing asks who they are: check
    /// clients' certificates, listen on loopback or a Unix socket, or say that everybody may come.
    #[error(
        "{address} is reached from other machines, and nothing asks who comes: check clients' \
         certificates, or listen on loopback or a Unix socket"
    )]
    Unguarded {
        /// The address.
        address: String,
    },
    /// TLS is for TCP; the file's permissions guard a Unix socket.
    #[error("{address} is a Unix socket, on which TLS is not spoken")]
    TlsOnUnix {
        /// The address.
        address: String,
    },
    /// Exports that clients could not tell apart, or could not ask for.
    #[error("export {name:?}: {reason}")]
    Export {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}
