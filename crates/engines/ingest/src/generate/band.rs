//! The bands of the archive: where their WSPR window is, and how much of the traffic they carry.

/// One amateur band.
#[derive(Debug)]
pub(super) struct Band {
    /// The lab's code of the band (research notes, 17-column contract), for example 107 for 20 m.
    pub(super) code: i32,
    /// Field 13 of the archive: whole MHz, 0 for medium and -1 for long wave.
    pub(super) mhz: i16,
    /// Lower edge of the 200 Hz window in Hz: the usual dial frequency plus 1400.
    pub(super) window_hz: u64,
    /// Share of all spots; the shares sum to 1 within a rounding.
    pub(super) share: f64,
}

const fn band(code: i32, mhz: i16, window_hz: u64, share: f64) -> Band {
    Band {
        code,
        mhz,
        window_hz,
        share,
    }
}

/// All bands that the archive has, long waves first.
pub(super) const BANDS: [Band; 20] = [
    band(100, -1, 137_400, 0.002),
    band(101, 0, 475_600, 0.008),
    band(102, 1, 1_838_000, 0.022),
    band(103, 3, 3_570_000, 0.092),
    band(104, 5, 5_288_600, 0.010),
    band(105, 7, 7_040_000, 0.248),
    band(106, 10, 10_140_100, 0.178),
    band(107, 14, 14_097_000, 0.272),
    band(108, 18, 18_106_000, 0.045),
    band(109, 21, 21_096_000, 0.048),
    band(110, 24, 24_926_000, 0.014),
    band(111, 28, 28_126_000, 0.052),
    band(200, 50, 50_294_400, 0.0065),
    band(201, 70, 70_092_400, 0.0005),
    band(202, 144, 144_490_400, 0.0012),
    band(203, 222, 222_281_400, 0.00005),
    band(300, 432, 432_301_400, 0.0005),
    band(301, 902, 902_001_400, 0.00005),
    band(302, 1296, 1_296_501_400, 0.00015),
    band(303, 2304, 2_304_001_400, 0.00005),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_make_a_whole() {
        let sum: f64 = BANDS.iter().map(|b| b.share).sum();
        assert!((sum - 1.0).abs() < 1e-3, "{sum}");
    }

    #[test]
    fn whole_mhz_follow_the_window() {
        for band in BANDS.iter().filter(|b| b.mhz > 0) {
            assert_eq!(i64::from(band.mhz), (band.window_hz / 1_000_000) as i64);
        }
    }
}
