//! The positions at which reading can begin.

use crate::error::{Error, Result};

/// A position in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// The first record that is still there.
    #[default]
    Earliest,
    /// Behind the last record, so only later ones are read.
    Latest,
    /// The same offset in each partition; beyond the end it is refused.
    Offset(i64),
    /// The first row that was appended at this time or later, microseconds since 1970.
    TimeUs(i64),
}

impl Start {
    /// The form that the SQL functions take: `earliest`, `latest`, `offset:N`, `time:MICROSECONDS`.
    pub fn text(self) -> String {
        match self {
            Start::Earliest => "earliest".to_owned(),
            Start::Latest => "latest".to_owned(),
            Start::Offset(offset) => format!("offset:{offset}"),
            Start::TimeUs(time_us) => format!("time:{time_us}"),
        }
    }

    /// Reads [`Self::text`].
    ///
    /// # Errors
    /// `bad-argument`.
    pub fn parse(text: &str) -> Result<Start> {
        let number = |prefix| text.strip_prefix(prefix).and_then(|n: &str| n.parse().ok());
        match text {
            "earliest" => Ok(Start::Earliest),
            "latest" => Ok(Start::Latest),
            _ => number("offset:")
                .map(Start::Offset)
                .or_else(|| number("time:").map(Start::TimeUs))
                .ok_or_else(|| {
                    let known = "earliest, latest, offset:N, time:MICROSECONDS";
                    Error::bad_argument(format_args!("start {text:?} is not one of {known}"))
                }),
        }
    }
}
