//! Positions that Maidenhead grids name, and paths between two of them on a sphere.

/// Mean radius of the Earth in km. A path on the ellipsoid differs from one on this sphere by half
/// a percent at most, which is less than the size of the grids that the path is between.
pub const EARTH_RADIUS_KM: f64 = 6371.0;

/// A point on the sphere, with the sines and cosines of its angles, which computing a path needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Position {
    latitude_deg: f64,
    longitude_deg: f64,
    /// Sine and cosine.
    latitude: (f64, f64),
    longitude: (f64, f64),
}

/// A path from a sender to a receiver along the great circle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// Length in km, not rounded. It may be wrong by a part of a metre, which is most for points
    /// that are close together or opposite each other.
    pub distance_km: f64,
    /// Direction at the sender, from north over east; at least 0 and below 360. It means nothing
    /// if the points are the same or opposite each other.
    pub azimuth_deg: f64,
}

impl Position {
    /// The point at these degrees, north and east positive.
    pub fn from_degrees(latitude_deg: f64, longitude_deg: f64) -> Position {
        Position {
            latitude_deg,
            longitude_deg,
            // Rust's own libm, so that all machines round alike.
            latitude: libm::sincos(latitude_deg.to_radians()),
            longitude: libm::sincos(longitude_deg.to_radians()),
        }
    }

    /// The middle of the cell that a grid of 4, 6, 8 or 10 characters names, in any case. `None`
    /// for any other text; a field of 2 characters is refused too, because it is 2,000 km wide.
    pub fn from_grid(grid: &str) -> Option<Position> {
        let pairs = grid.as_bytes();
        if !(4..=10).contains(&pairs.len()) || !pairs.len().is_multiple_of(2) {
            return None;
        }
        // Counted in cells of the current level from the south pole and from 180 degrees west, so
        // that all sums are of integers and the division at the end is the one rounding.
        let (mut north, mut east, mut cells) = (0_u32, 0_u32, 1_u32);
        for (level, pair) in pairs.chunks_exact(2).enumerate() {
            let base = match level {
                0 => 18,
                level if level % 2 == 1 => 10,
                _ => 24,
            };
            east = east * base + symbol(pair[0], base)?;
            north = north * base + symbol(pair[1], base)?;
            cells *= base;
        }
        let middle = |cell: u32, whole_deg: f64| {
            (f64::from(cell) + 0.5) * whole_deg / f64::from(cells) - whole_deg / 2.0
        };
        Some(Position::from_degrees(
            middle(north, 180.0),
            middle(east, 360.0),
        ))
    }

    /// Degrees, north positive.
    pub fn latitude_deg(&self) -> f64 {
        self.latitude_deg
    }

    /// Degrees, east positive.
    pub fn longitude_deg(&self) -> f64 {
        self.longitude_deg
    }

    /// The path from here to there (haversine).
    pub fn path_to(&self, there: &Position) -> Path {
        let (sin_a, cos_a) = self.latitude;
        let (sin_b, cos_b) = there.latitude;
        let cos_turn = self.longitude.1 * there.longitude.1 + self.longitude.0 * there.longitude.0;
        let sin_turn = there.longitude.0 * self.longitude.1 - there.longitude.1 * self.longitude.0;
        // Rounding can push the value slightly out of 0 to 1, where the arc sine is not a number.
        let half_chord_squared = (1.0 - (sin_a * sin_b + cos_a * cos_b * cos_turn)) / 2.0;
        let angle = 2.0 * libm::asin(half_chord_squared.clamp(0.0, 1.0).sqrt());
        let bearing =
            libm::atan2(sin_turn * cos_b, cos_a * sin_b - sin_a * cos_b * cos_turn).to_degrees();
        Path {
            distance_km: angle * EARTH_RADIUS_KM,
            // A tiny negative angle is rounded up to a whole turn.
            azimuth_deg: Some(bearing.rem_euclid(360.0))
                .filter(|degrees| *degrees < 360.0)
                .unwrap_or(0.0),
        }
    }
}

/// The value of one character of a grid: a digit in base 10, a letter in any other.
fn symbol(character: u8, base: u32) -> Option<u32> {
    let value = match base {
        10 => character.checked_sub(b'0')?,
        _ => character.to_ascii_uppercase().checked_sub(b'A')?,
    };
    let value = u32::from(value);
    (value < base).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(found: f64, expected: f64, within: f64) {
        assert!(
            (found - expected).abs() <= within,
            "{found}, not {expected}"
        );
    }

    #[test]
    fn grids_are_where_their_stations_are() {
        // Stations whose grid and position are published; the point lies within the cell.
        for (grid, latitude_deg, longitude_deg) in [
            ("FN31pr", 41.714_775, -72.727_260),
            ("JN58td", 48.146_66, 11.608_33),
            ("GF15vc", -34.91, -56.211_66),
            ("FM18lw", 38.92, -77.065),
            ("RE78ir", -41.283_33, 174.745),
        ] {
            let middle = Position::from_grid(grid).expect(grid);
            close(middle.latitude_deg(), latitude_deg, 0.5 / 24.0);
            close(middle.longitude_deg(), longitude_deg, 0.5 / 12.0);
            let lower = Position::from_grid(&grid.to_lowercase());
            assert_eq!(lower, Some(middle), "{grid}");
        }
    }

    #[test]
    fn each_pair_of_characters_narrows_the_cell() {
        let middle = |grid: &str| {
            let position = Position::from_grid(grid).expect(grid);
            (position.latitude_deg(), position.longitude_deg())
        };
        assert_eq!(middle("JJ00"), (0.5, 1.0));
        assert_eq!(middle("AA00"), (-89.5, -179.0));
        assert_eq!(middle("RR99"), (89.5, 179.0));
        let (latitude_deg, longitude_deg) = middle("JJ00aa");
        close(latitude_deg, 1.0 / 48.0, 1e-12);
        close(longitude_deg, 1.0 / 24.0, 1e-12);
        let (latitude_deg, longitude_deg) = middle("JJ00aa00");
        close(latitude_deg, 1.0 / 480.0, 1e-12);
        close(longitude_deg, 1.0 / 240.0, 1e-12);
        let (latitude_deg, longitude_deg) = middle("JJ00aa00aa");
        close(latitude_deg, 1.0 / 11_520.0, 1e-12);
        close(longitude_deg, 1.0 / 5_760.0, 1e-12);
    }

    #[test]
    fn a_text_that_is_not_a_grid_has_no_position() {
        for text in [
            "",
            "J",
            "JN",
            "JN5",
            "JN58t",
            "JN58td7",
            "SN58",
            "JS58",
            "58JN",
            "JN58yd",
            "JN58tz",
            "JN58 td",
            "JN5_",
            "J\u{e9}8",
            "JN58td12ab34",
            "JNA8",
            "JN58td1a",
        ] {
            assert_eq!(Position::from_grid(text), None, "{text:?}");
        }
    }

    /// Distances and courses that others have published, for a sphere of this radius.
    #[test]
    fn paths_are_as_long_as_published() {
        let path =
            |(a, b), (c, d)| Position::from_degrees(a, b).path_to(&Position::from_degrees(c, d));
        // Rosetta Code, "Haversine formula": Nashville to Los Angeles, for 6371 km.
        let found = path((36.12, -86.67), (33.94, -118.40));
        close(found.distance_km, 2_886.444_442_837_98, 1e-6);
        // Ed Williams, "Aviation Formulary": Los Angeles to New York, in radians.
        let degrees = |d: f64, m: f64| d + m / 60.0;
        let (los_angeles, new_york) = (
            (degrees(33.0, 57.0), -degrees(118.0, 24.0)),
            (degrees(40.0, 38.0), -degrees(73.0, 47.0)),
        );
        let found = path(los_angeles, new_york);
        close(found.distance_km / EARTH_RADIUS_KM, 0.623_585, 1e-6);
        close(found.azimuth_deg.to_radians(), 1.150_035, 1e-5);
        // Chris Veness, "Movable Type Scripts": Land's End to John o'Groats.
        let degrees = |d: f64, m: f64, s: f64| d + m / 60.0 + s / 3_600.0;
        let found = path(
            (degrees(50.0, 3.0, 59.0), -degrees(5.0, 42.0, 53.0)),
            (degrees(58.0, 38.0, 38.0), -degrees(3.0, 4.0, 12.0)),
        );
        close(found.distance_km, 968.9, 0.05);
        close(found.azimuth_deg, degrees(9.0, 7.0, 11.0), 1.0 / 3_600.0);
        // A quarter of the equator, and half of a meridian.
        let found = path((0.0, 10.0), (0.0, 100.0));
        close(
            found.distance_km,
            EARTH_RADIUS_KM * std::f64::consts::FRAC_PI_2,
            1e-6,
        );
        close(found.azimuth_deg, 90.0, 1e-9);
        let found = path((0.0, 0.0), (-90.0, 0.0));
        close(found.azimuth_deg, 180.0, 1e-9);
    }

    type Vector = [f64; 3];

    fn dot(a: Vector, b: Vector) -> f64 {
        (0..3).map(|i| a[i] * b[i]).sum()
    }

    fn cross(a: Vector, b: Vector) -> Vector {
        [
            a[1] * b[2] - a[2] * b[1],
            a[2] * b[0] - a[0] * b[2],
            a[0] * b[1] - a[1] * b[0],
        ]
    }

    /// From the centre of a unit sphere; z points north.
    fn vector(latitude_deg: f64, longitude_deg: f64) -> Vector {
        let (latitude, longitude) = (latitude_deg.to_radians(), longitude_deg.to_radians());
        let ring = latitude.cos();
        [
            ring * longitude.cos(),
            ring * longitude.sin(),
            latitude.sin(),
        ]
    }

    proptest! {
        /// Vectors in space instead of formulas on the sphere: the angle between two of them, and
        /// the part of the second that lies in the plane of the first one's north and east.
        #[test]
        fn paths_agree_with_vectors_in_space(
            a in -89.5..89.5_f64, b in -180.0..180.0_f64,
            c in -89.5..89.5_f64, d in -180.0..180.0_f64,
        ) {
            let (here, there) = (vector(a, b), vector(c, d));
            let across = cross(here, there);
            let angle = dot(across, across).sqrt().atan2(dot(here, there));
            let found = Position::from_degrees(a, b).path_to(&Position::from_degrees(c, d));
            prop_assert!((found.distance_km - angle * EARTH_RADIUS_KM).abs() < 3e-4);
            // Close to the same or the opposite point the direction has no digits that mean much.
            if angle.sin() > 1e-3 {
                let east = cross([0.0, 0.0, 1.0], here);
                let north = cross(here, east);
                let expected = dot(there, east).atan2(dot(there, north)).to_degrees();
                let apart = (found.azimuth_deg - expected + 540.0).rem_euclid(360.0) - 180.0;
                prop_assert!(apart.abs() < 1e-6, "{} and {expected}", found.azimuth_deg);
            }
            prop_assert!((0.0..360.0).contains(&found.azimuth_deg));
        }

        /// A grid is taken apart here as its definition reads: each pair of characters divides the
        /// cell that the pairs before it named.
        #[test]
        fn grids_agree_with_their_definition(grid in "[A-R]{2}[0-9]{2}([A-Xa-x]{2}([0-9]{2})?)?") {
            let (mut south, mut west) = (-90.0, -180.0);
            let (mut high, mut wide) = (180.0, 360.0);
            for (pair, parts) in grid.as_bytes().chunks(2).zip([18.0, 10.0, 24.0, 10.0]) {
                high /= parts;
                wide /= parts;
                let first = if parts == 10.0 { b'0' } else { b'A' };
                let steps = |c: u8| f64::from(c.to_ascii_uppercase() - first);
                west += steps(pair[0]) * wide;
                south += steps(pair[1]) * high;
            }
            let found = Position::from_grid(&grid).expect("a grid");
            prop_assert!((found.latitude_deg() - (south + high / 2.0)).abs() < 1e-9);
            prop_assert!((found.longitude_deg() - (west + wide / 2.0)).abs() < 1e-9);
        }
    }
}
