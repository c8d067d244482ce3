//! The errors of a pager: of its snapshot, and of each virtual machine that comes to it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use dyno_io::IoError;
use dyno_pages::StoreError;
use dyno_pages_hold::HoldError;
use dyno_pages_region::RegionError;

/// Why a snapshot cannot be served, or a virtual machine is refused.
#[derive(Debug, thiserror::Error)]
pub enum PagerError {
    /// The connection ended before a byte came, as that of a program that only looks whether the
    /// pager listens.
    #[error("nothing was sent")]
    Nothing,
    /// The message is not what a VMM sends.
    #[error("the message is not an array of memory regions: {0}")]
    Message(String),
    /// The message has no end within the bytes that a layout can take.
    #[error("the message has more than {most} bytes")]
    TooLong {
        /// The most bytes of a message.
        most: usize,
    },
    /// The message was not complete in time.
    #[error("the message was not complete within {0:?}")]
    Slow(Duration),
    /// The connection ended within the message.
    #[error("the connection ended after {bytes} bytes, within the message")]
    Ended {
        /// Bytes of the message that came.
        bytes: usize,
    },
    /// The message came without the descriptor by which faults are served.
    #[error("no descriptor came with the message")]
    NoDescriptor,
    /// The number of regions is not one that is served.
    #[error("{regions} regions of memory: 1 to {most} can be served")]
    Regions {
        /// The number of the message.
        regions: usize,
        /// The most that are served.
        most: usize,
    },
    /// One region cannot be served.
    #[error("region {region}: {why}")]
    Region {
        /// Its position in the message, from 0.
        region: usize,
        /// What is wrong with it.
        why: String,
    },
    /// As many virtual machines are served as can be.
    #[error("{most} virtual machines are served already")]
    Full {
        /// The most that are served at once.
        most: usize,
    },
    /// The descriptor is not one that faults can be served by.
    #[error(transparent)]
    Descriptor(#[from] RegionError),
    /// The snapshot file cannot be served.
    #[error("{path}: {why}")]
    Snapshot {
        /// The file that was to be served.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// What a holder gave back is not what a pager gave it.
    #[error("the holder's {name}: {why}")]
    Held {
        /// The name under which it is held.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// The store of the snapshot's pages failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The holder does not answer, or refuses.
    #[error(transparent)]
    Hold(#[from] HoldError),
    /// The file of the working set cannot be written.
    #[error(transparent)]
    File(#[from] IoError),
    /// Another call to the operating system failed.
    #[error("cannot {what}: {source}")]
    System {
        /// The action that failed, as it stands in the message.
        what: &'static str,
        /// The error number of the system.
        source: io::Error,
    },
}

impl PagerError {
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System {
            what,
            source: source.into(),
        }
    }
}
