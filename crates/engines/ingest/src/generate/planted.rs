//! The lines of `wsprspots-YYYY-MM.planted.ndjson`: what a reader must make of each planted line.

use serde::{Deserialize, Serialize};

use super::line::stored_hz;
use super::traffic::Spot;
use crate::contract::{FIELDS, MODE, band_of};

/// An oddity that the generator planted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planted {
    /// Line number in the uncompressed archive, from 1, counting blank lines.
    pub line: u64,
    /// Kebab-case name of the oddity, for example `quoted-call`.
    pub kind: String,
    /// What a loader must do with the line.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What a loader must do with a planted line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// Load it, as this row.
    Kept {
        /// The table's 17 columns of that row.
        row: ExpectedRow,
    },
    /// Put it into quarantine and load the others.
    Bad {
        /// `field-count`, `number`, `quote`, `utf8` or `long-line`.
        reason: String,
    },
    /// Skip it and count it as blank.
    Blank,
    /// Load every row of the archive and name what follows its last gzip member.
    Garbage {
        /// Offset in the file at which the garbage begins.
        offset: u64,
        /// Length of the garbage in bytes.
        bytes: u64,
    },
}

/// A row of the table, as the 17-column contract defines it.
#[allow(
    missing_docs,
    reason = "the contract's column names, defined once in docs/formats/spots-table.md"
)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedRow {
    pub id: u64,
    pub timestamp: u32,
    pub reporter: String,
    pub reporter_grid: String,
    pub snr: i8,
    pub frequency: u64,
    pub callsign: String,
    pub grid: String,
    pub power: i8,
    pub drift: i8,
    pub distance: u32,
    pub azimuth: u16,
    pub band: i32,
    pub mode: String,
    pub version: String,
    pub code: u8,
    pub column_count: u8,
}

impl ExpectedRow {
    /// The row that an ordinary line must give.
    pub(super) fn from_spot(spot: &Spot<'_>) -> ExpectedRow {
        let frequency = stored_hz(spot);
        ExpectedRow {
            id: spot.id,
            timestamp: spot.time_s,
            reporter: spot.receiver.call.to_string(),
            reporter_grid: spot.receiver.position.grid.to_string(),
            snr: spot.snr_db,
            frequency,
            callsign: spot.sender.call.to_string(),
            grid: spot.sender.position.grid.to_string(),
            power: spot.sender.power_dbm,
            drift: spot.drift_hz,
            distance: spot.path.distance_km,
            azimuth: spot.path.azimuth_deg,
            band: band_of(frequency),
            mode: MODE.to_owned(),
            version: spot.version.to_owned(),
            code: spot.code,
            column_count: FIELDS as u8,
        }
    }
}
