//! Failures of the parts below as failures of transactions.

use std::fmt::Display;

use dyno_net::NetError;
use dyno_txn_api::{Code, Error};
use dyno_txn_log::LogError;

/// The engine cannot go on, or not begin.
pub(crate) fn unavailable(text: impl Display) -> Error {
    Error::new(Code::Unavailable, text)
}

/// What was asked for makes no sense.
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
