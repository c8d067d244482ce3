//! The kinds of sinks, and their names on the command line.

use std::fmt;
use std::str::FromStr;

use crate::error::IoError;

/// A kind of sink, as a command's `--sink` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SinkKind {
    /// The fastest kind that the target supports: uring, else direct, else std.
    #[default]
    Auto,
    /// A file through the page cache.
    Std,
    /// A file past the page cache, one block at a time.
    Direct,
    /// A file past the page cache, a few blocks at a time.
    Uring,
    /// Nowhere: the bytes are counted and dropped.
    Null,
    /// Standard output, as one stream of bytes.
    Stdout,
}

impl SinkKind {
    /// Every kind, in the order of the help text.
    pub const ALL: [Self; 6] = [
        Self::Auto,
        Self::Std,
        Self::Direct,
        Self::Uring,
        Self::Null,
        Self::Stdout,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Std => "std",
            Self::Direct => "direct",
            Self::Uring => "uring",
            Self::Null => "null",
            Self::Stdout => "stdout",
        }
    }
}

impl fmt::Display for SinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SinkKind {
    type Err = IoError;

    fn from_str(name: &str) -> Result<Self, IoError> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| IoError::UnknownSink {
            name: name.to_owned(),
        })
    }
}
