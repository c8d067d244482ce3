//! Errors of the crates below as errors of transactions.

use std::fmt::Display;

use dyno_net::NetError;
use dyno_txn_api::{Code, Error};
use dyno_txn_log::LogError;

/// The error of an engine that cannot start or cannot go on. Trying again later may help.
pub(crate) fn unavailable(text: impl Display) -> Error {
    Error::new(Code::Unavailable, text)
}

/// The error of a caller that asks for something impossible. Trying again does not help.
pub(crate) fn bad_argument(text: impl Display) -> Error {
    Error::new(Code::BadArgument, text)
}

pub(crate) fn from_log(error: LogError) -> Error {
    let code = match error {
        LogError::Damaged { .. } | LogError::NoManifest { .. } => Code::Damaged,
        LogError::NewerVersion { .. } => Code::NewerVersion,
        LogError::Occupied { .. } | LogError::Settings { .. } => Code::BadArgument,
        _ => Code::Unavailable,
    };
    Error::new(code, error)
}

pub(crate) fn from_net(error: NetError) -> Error {
    unavailable(error)
}
