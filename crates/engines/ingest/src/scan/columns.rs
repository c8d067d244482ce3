//! The columns of the rows scanned so far.

use super::careful::Row;
use super::dictionary::{Numbers, Strings};

/// Rows by column, strings and frequencies as codes into their dictionaries. `band`, `mode` and
/// `column_count` follow from the rest and are not kept.
#[derive(Default)]
pub struct Columns {
    /// Spot numbers, unique in the feed.
    pub id: Vec<u64>,
    /// Starts of transmissions in Unix seconds.
    pub timestamp: Vec<u32>,
    /// Codes into [`Dictionaries::reporter`].
    pub reporter: Vec<u32>,
    /// Codes into [`Dictionaries::reporter_grid`].
    pub reporter_grid: Vec<u32>,
    /// Signal-to-noise ratios in dB.
    pub snr: Vec<i8>,
    /// Codes into [`Dictionaries::frequency`].
    pub frequency: Vec<u32>,
    /// Codes into [`Dictionaries::callsign`].
    pub callsign: Vec<u32>,
    /// Codes into [`Dictionaries::grid`].
    pub grid: Vec<u32>,
    /// Announced power in dBm.
    pub power: Vec<i8>,
    /// Frequency drift in Hz per minute.
    pub drift: Vec<i8>,
    /// Lengths of paths in km.
    pub distance: Vec<u32>,
    /// Directions in degrees, from north over east.
    pub azimuth: Vec<u16>,
    /// Codes into [`Dictionaries::version`].
    pub version: Vec<u32>,
    /// 0 for a plausible spot.
    pub code: Vec<u8>,
    /// What the codes mean; kept when the rows are cleared, so that codes stay stable.
    pub dictionaries: Dictionaries,
}

/// The dictionaries behind the coded columns.
#[derive(Default)]
pub struct Dictionaries {
    /// Callsigns of receiving stations.
    pub reporter: Strings,
    /// Maidenhead grids of receivers.
    pub reporter_grid: Strings,
    /// Distinct frequencies in Hz.
    pub frequency: Numbers,
    /// Callsigns of sending stations.
    pub callsign: Strings,
    /// Maidenhead grids of senders.
    pub grid: Strings,
    /// Versions of receiving software.
    pub version: Strings,
}

impl Dictionaries {
    /// Bytes of all strings and numbers, as dictionary pages hold them.
    pub fn bytes(&self) -> usize {
        let strings = self.strings().map(|strings| strings.plain().len());
        strings.iter().sum::<usize>() + self.frequency.values().len() * 8
    }

    /// Bytes of memory that the dictionaries use.
    pub fn heap_bytes(&self) -> usize {
        let strings = self.strings().map(Strings::heap_bytes);
        strings.iter().sum::<usize>() + self.frequency.heap_bytes()
    }

    fn strings(&self) -> [&Strings; 5] {
        [
            &self.reporter,
            &self.reporter_grid,
            &self.callsign,
            &self.grid,
            &self.version,
        ]
    }
}

/// Does the same to every column. It is the only place that lists them.
macro_rules! each_column {
    ($columns:expr, $column:ident => $action:expr) => {{
        let Columns {
            id, timestamp, reporter, reporter_grid, snr, frequency, callsign, grid, power, drift,
            distance, azimuth, version, code, dictionaries: _,
        } = $columns;
        each_column!(@ $column => $action; id timestamp reporter reporter_grid snr frequency
            callsign grid power drift distance azimuth version code);
    }};
    (@ $column:ident => $action:expr; $($name:ident)*) => {
        $({ let $column = $name; $action; })*
    };
}

impl Columns {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.id.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// Removes the rows and keeps the dictionaries.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    pub(super) fn truncate(&mut self, rows: usize) {
        each_column!(self, column => column.truncate(rows));
    }

    /// Copies row `from` over row `to`.
    pub(super) fn copy_row(&mut self, from: usize, to: usize) {
        if from != to {
            each_column!(self, column => column[to] = column[from]);
        }
    }

    pub(super) fn push(&mut self, row: &Row) {
        let at = self.len();
        each_column!(&mut *self, column => column.push(Default::default()));
        self.set(at, row);
    }

    pub(super) fn set(&mut self, at: usize, row: &Row) {
        self.id[at] = row.id;
        self.timestamp[at] = row.timestamp;
        self.reporter[at] = self.dictionaries.reporter.code_of(row.reporter.as_bytes());
        self.reporter_grid[at] = self
            .dictionaries
            .reporter_grid
            .code_of(row.reporter_grid.as_bytes());
        self.snr[at] = row.snr;
        self.frequency[at] = self.dictionaries.frequency.code_of(row.frequency);
        self.callsign[at] = self.dictionaries.callsign.code_of(row.callsign.as_bytes());
        self.grid[at] = self.dictionaries.grid.code_of(row.grid.as_bytes());
        self.power[at] = row.power;
        self.drift[at] = row.drift;
        self.distance[at] = row.distance;
        self.azimuth[at] = row.azimuth;
        self.version[at] = self.dictionaries.version.code_of(row.version.as_bytes());
        self.code[at] = row.code;
    }
}
