//! The bands of the archive: where their WSPR window is, and what share of the traffic they carry.

/// One amateur band.
#[derive(Debug)]
pub(super) struct Band {
    /// Field 13 of the archive: whole MHz, 0 for medium and -1 for long wave.
    pub(super) mhz: i16,
    /// Lower edge of the 200 Hz window in Hz: the usual dial frequency plus 1400.
    pub(super) window_hz: u64,
    /// Share of all spots; the shares sum to 1 within a rounding.
    pub(super) share: f64,
}

const fn band(mhz: i16, window_hz: u64, share: f64) -> Band {
    Band {
        mhz,
        window_hz,
        share,
    }
}

/// All bands that the archive has, long waves first.
pub(super) const BANDS: [Band; 20] = [
    band(-1, 137_400, 0.002),
    band(0, 475_600, 0.008),
    band(1, 1_838_000, 0.022),
    band(3, 3_570_000, 0.092),
    band(5, 5_288_600, 0.010),
    band(7, 7_040_000, 0.248),
    band(10, 10_140_100, 0.178),
    band(14, 14_097_000, 0.272),
    band(18, 18_106_000, 0.045),
    band(21, 21_096_000, 0.048),
    band(24, 24_926_000, 0.014),
    band(28, 28_126_000, 0.052),
    band(50, 50_294_400, 0.0065),
    band(70, 70_092_400, 0.0005),
    band(144, 144_490_400, 0.0012),
    band(222, 222_281_400, 0.00005),
    band(432, 432_301_400, 0.0005),
    band(902, 902_001_400, 0.00005),
    band(1296, 1_296_501_400, 0.00015),
    band(2304, 2_304_001_400, 0.00005),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::band_of;

    #[test]
    fn shares_make_a_whole() {
        let sum: f64 = BANDS.iter().map(|b| b.share).sum();
        assert!((sum - 1.0).abs() < 1e-3, "{sum}");
    }

    #[test]
    fn every_window_lies_in_a_band_of_its_own() {
        let mut codes: Vec<i32> = BANDS.iter().map(|b| band_of(b.window_hz)).collect();
        assert!(
            BANDS
                .iter()
                .all(|b| band_of(b.window_hz) == band_of(b.window_hz + 200))
        );
        assert!(!codes.contains(&0));
        codes.dedup();
        assert_eq!(codes.len(), BANDS.len());
    }

    #[test]
    fn whole_mhz_follow_the_window() {
        for band in BANDS.iter().filter(|b| b.mhz > 0) {
            assert_eq!(i64::from(band.mhz), (band.window_hz / 1_000_000) as i64);
        }
    }
}
