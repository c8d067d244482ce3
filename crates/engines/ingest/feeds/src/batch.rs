//! What a feed is told about one archive that it generates, and the lines that it answers with.

use dyno_ingest::generate::Random;

use crate::calendar::Day;

/// How archives are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// A ZIP archive with one file.
    Zip {
        /// What the file's name ends in instead of `zip`.
        extension: &'static str,
    },
    /// A gzip file with one member.
    Gzip,
    /// Uncompressed text.
    Plain,
}

/// The parameters of one archive.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The number of the archive, from 0.
    pub number: u32,
    /// Rows of this archive, as near as the feed's lines allow.
    pub rows: u64,
    /// The day of the first archive.
    pub start: Day,
    /// The seed, which determines its bytes together with the number.
    pub seed: u64,
    /// Share of lines with a planted oddity, 0 to 1.
    pub quirks: f64,
}

impl Batch {
    /// A random stream of this archive; each `purpose` has its own.
    pub fn random(&self, purpose: u64) -> Random {
        Random::keyed(self.seed, &[purpose, u64::from(self.number)])
    }
}

/// A generated line, with what a loader must make of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeLine {
    /// Its bytes without a line feed.
    pub bytes: Vec<u8>,
    /// The number of rows that a loader makes of it.
    pub rows: u32,
    /// Whether it goes into quarantine.
    pub bad: bool,
    /// The oddity planted in it, if any.
    pub quirk: Option<&'static str>,
}

impl MadeLine {
    /// A line that becomes so many rows.
    pub fn new(text: impl Into<Vec<u8>>, rows: u32) -> MadeLine {
        MadeLine {
            bytes: text.into(),
            rows,
            bad: false,
            quirk: None,
        }
    }

    /// The same with an oddity that does not keep it from being taken.
    pub fn odd(self, quirk: &'static str) -> MadeLine {
        MadeLine {
            quirk: Some(quirk),
            ..self
        }
    }

    /// A line that goes into quarantine.
    pub fn bad(text: impl Into<Vec<u8>>, quirk: &'static str) -> MadeLine {
        MadeLine {
            bytes: text.into(),
            rows: 0,
            bad: true,
            quirk: Some(quirk),
        }
    }
}
