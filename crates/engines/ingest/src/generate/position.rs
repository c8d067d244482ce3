//! The position of a station, and paths between two of them as archives have them.

use crate::position::Position;

/// A station's grid, and the middle of its cell.
#[derive(Debug, Clone)]
pub(super) struct StationPosition {
    /// 4 or 6 characters, for example `JN58` or `JN58td`.
    pub(super) grid: Box<str>,
    middle: Position,
}

/// A path from a sender to a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Path {
    /// Great-circle length, rounded.
    pub(super) distance_km: u32,
    /// Direction at the sender, 0 to 359 degrees from north over east.
    pub(super) azimuth_deg: u16,
}

impl StationPosition {
    /// The grid cell around a point in degrees (north and east positive), named with 4 or 6
    /// characters; the place is the middle of the named cell, as receivers compute it.
    pub(super) fn around(latitude: f64, longitude: f64, long: bool) -> StationPosition {
        // At the pole itself the row would be behind the last one, so the latitude stays below it.
        let north = (latitude.clamp(-89.9, 89.9) + 90.0) * 24.0;
        let east = ((longitude + 180.0).rem_euclid(360.0)) * 12.0;
        // Subsquares are 1/24 degree high and 1/12 wide; a square holds 24 x 24, a field 240 x 240.
        let (n, e) = (north as u32, east as u32);
        let letter = |base: u8, value: u32| char::from(base + value as u8);
        let mut grid = String::with_capacity(6);
        grid.push(letter(b'A', e / 240));
        grid.push(letter(b'A', n / 240));
        grid.push(letter(b'0', e / 24 % 10));
        grid.push(letter(b'0', n / 24 % 10));
        let (middle_n, middle_e) = if long {
            grid.push(letter(b'a', e % 24));
            grid.push(letter(b'a', n % 24));
            (f64::from(n) + 0.5, f64::from(e) + 0.5)
        } else {
            (f64::from(n / 24 * 24 + 12), f64::from(e / 24 * 24 + 12))
        };
        StationPosition {
            grid: grid.into(),
            middle: Position::from_degrees(middle_n / 24.0 - 90.0, middle_e / 12.0 - 180.0),
        }
    }

    /// The path from here to there, rounded as receivers publish it.
    pub(super) fn path_to(&self, there: &StationPosition) -> Path {
        let path = self.middle.path_to(&there.middle);
        Path {
            distance_km: (path.distance_km + 0.5) as u32,
            azimuth_deg: (path.azimuth_deg + 0.5) as u16 % 360,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_name_known_towns() {
        let munich = StationPosition::around(48.14666, 11.60833, true);
        assert_eq!(&*munich.grid, "JN58td");
        assert_eq!(
            &*StationPosition::around(41.714775, -72.727260, false).grid,
            "FN31"
        );
        assert_eq!(
            &*StationPosition::around(-34.91, -56.21166, true).grid,
            "GF15vc"
        );
    }

    #[test]
    fn paths_agree_with_the_textbook() {
        let here = StationPosition::around(48.14666, 11.60833, true);
        let there = StationPosition::around(41.714775, -72.727260, true);
        let way = here.path_to(&there);
        // By the spherical formula with unrounded positions: 6336.9 km, 297.6 degrees.
        assert!((6330..=6341).contains(&way.distance_km), "{way:?}");
        assert!((297..=298).contains(&way.azimuth_deg), "{way:?}");
        assert_eq!(
            here.path_to(&here),
            Path {
                distance_km: 0,
                azimuth_deg: 0
            }
        );
    }
}
