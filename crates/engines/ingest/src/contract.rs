//! The columns of the spots table and how they follow from an archive's fields.

/// Names of the table's columns, in order.
pub const COLUMNS: [&str; 17] = [
    "id",
    "timestamp",
    "reporter",
    "reporter_grid",
    "snr",
    "frequency",
    "callsign",
    "grid",
    "power",
    "drift",
    "distance",
    "azimuth",
    "band",
    "mode",
    "version",
    "code",
    "column_count",
];

/// Names of the columns that hold text; the others hold numbers.
pub const TEXT_COLUMNS: [&str; 6] = [
    "reporter",
    "reporter_grid",
    "callsign",
    "grid",
    "mode",
    "version",
];

/// Fields of a row of a WSPR archive.
pub const FIELDS: usize = 15;

/// The `mode` of every row of the WSPR feed; the archive has no field for it.
pub const MODE: &str = "WSPR";

/// Amateur allocations in Hz, both ends included, with the code that the table uses. The codes are
/// the original lab's own, not ADIF values; the edges are the widest of the three ITU regions.
const BANDS: [(u64, u64, i32); 23] = [
    (135_700, 137_800, 100),
    (472_000, 479_000, 101),
    (1_800_000, 2_000_000, 102),
    (3_500_000, 4_000_000, 103),
    (5_060_000, 5_450_000, 104),
    (7_000_000, 7_300_000, 105),
    (10_100_000, 10_150_000, 106),
    (14_000_000, 14_350_000, 107),
    (18_068_000, 18_168_000, 108),
    (21_000_000, 21_450_000, 109),
    (24_890_000, 24_990_000, 110),
    (28_000_000, 29_700_000, 111),
    (50_000_000, 54_000_000, 200),
    (70_000_000, 71_000_000, 201),
    (144_000_000, 148_000_000, 202),
    (219_000_000, 225_000_000, 203),
    (420_000_000, 450_000_000, 300),
    (902_000_000, 928_000_000, 301),
    (1_240_000_000, 1_300_000_000, 302),
    (2_300_000_000, 2_450_000_000, 303),
    (3_300_000_000, 3_500_000_000, 400),
    (5_650_000_000, 5_925_000_000, 401),
    (10_000_000_000, 10_500_000_000, 402),
];

/// Band code of a frequency in Hz, 0 where the table has none.
pub fn band_of(frequency_hz: u64) -> i32 {
    BANDS
        .iter()
        .find(|&&(low, high, _)| (low..=high).contains(&frequency_hz))
        .map_or(0, |&(_, _, code)| code)
}

/// The band table as (lowest Hz, highest Hz, code), for peers that must compute the same.
pub fn bands() -> &'static [(u64, u64, i32)] {
    &BANDS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frequency_falls_into_its_band_or_none() {
        let cases = [
            (136_000, 100),
            (474_200, 101),
            (14_097_037, 107),
            (14_350_000, 107),
            (14_350_001, 0),
            (50_293_000, 200),
            (432_300_000, 300),
            (10_368_200_000, 402),
            (0, 0),
        ];
        for (frequency_hz, code) in cases {
            assert_eq!(band_of(frequency_hz), code, "{frequency_hz} Hz");
        }
    }
}
