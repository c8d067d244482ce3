//! Why a broker cannot start, and the errors that it answers clients with.

use dyno_net::NetError;
use dyno_pubsub::wire::Failed;
use dyno_pubsub::{Code, Error, Retry, TopicPartition};

/// The reason why a broker cannot start.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// The broker cannot listen at an address.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The database cannot be reached, or has no log in it.
    #[error(transparent)]
    Log(#[from] Error),
    /// An option cannot work.
    #[error("{option}: {reason}")]
    Option {
        /// The name of the option.
        option: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// The request is wrong: sending it again is of no use.
pub fn bad(text: impl std::fmt::Display) -> Error {
    Error::new(Code::BadArgument, text)
}

/// Another broker has the partition, or none has it yet: ask for metadata and send it again.
pub fn not_mine(key: TopicPartition) -> Error {
    let text = format_args!("{key} is not with this broker");
    Error::with_retry(Code::Fenced, Retry::Safe, text)
}

/// The broker is stopping, and nothing was done.
pub fn stopping() -> Error {
    Error::new(Code::ServerLost, "the broker is stopping")
}

/// The answer that carries an error.
pub fn failed(error: &Error) -> Failed {
    Failed {
        code: error.code().to_owned(),
        retry: match error.retry() {
            Retry::Safe => 0,
            Retry::Never => 1,
            Retry::Unknown => 2,
        },
        text: error.text().to_owned(),
    }
}
