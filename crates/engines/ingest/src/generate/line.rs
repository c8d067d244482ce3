//! Formats a spot as its line of the archive.

use super::traffic::Spot;

/// Appends the 15 fields and a line feed.
pub(super) fn append(line: &mut Vec<u8>, spot: &Spot<'_>) {
    append_number(line, spot.id);
    line.push(b',');
    append_number(line, u64::from(spot.time_s));
    line.push(b',');
    line.extend_from_slice(spot.receiver.call.as_bytes());
    line.push(b',');
    line.extend_from_slice(spot.receiver.position.grid.as_bytes());
    line.push(b',');
    append_signed(line, i64::from(spot.snr_db));
    line.push(b',');
    append_mhz(line, spot.frequency_tenth_hz, spot.has_seventh_decimal());
    line.push(b',');
    line.extend_from_slice(spot.sender.call.as_bytes());
    line.push(b',');
    line.extend_from_slice(spot.sender.position.grid.as_bytes());
    line.push(b',');
    append_signed(line, i64::from(spot.sender.power_dbm));
    line.push(b',');
    append_signed(line, i64::from(spot.drift_hz));
    line.push(b',');
    append_number(line, u64::from(spot.path.distance_km));
    line.push(b',');
    append_number(line, u64::from(spot.path.azimuth_deg));
    line.push(b',');
    append_signed(line, i64::from(spot.band.mhz));
    line.push(b',');
    line.extend_from_slice(spot.version.as_bytes());
    line.push(b',');
    append_number(line, u64::from(spot.code));
    line.push(b'\n');
}

/// The frequency in Hz that the line's text stands for, rounded half up.
pub(super) fn stored_hz(spot: &Spot<'_>) -> u64 {
    if spot.has_seventh_decimal() {
        (spot.frequency_tenth_hz + 5) / 10
    } else {
        spot.frequency_tenth_hz / 10
    }
}

fn append_mhz(line: &mut Vec<u8>, tenth_hz: u64, seventh_decimal: bool) {
    append_number(line, tenth_hz / 10_000_000);
    line.push(b'.');
    let decimals = if seventh_decimal { 7 } else { 6 };
    let mut fraction = tenth_hz % 10_000_000 / if seventh_decimal { 1 } else { 10 };
    let start = line.len();
    line.resize(start + decimals, b'0');
    for digit in line[start..].iter_mut().rev() {
        *digit = b'0' + (fraction % 10) as u8;
        fraction /= 10;
    }
}

fn append_signed(line: &mut Vec<u8>, value: i64) {
    if value < 0 {
        line.push(b'-');
    }
    append_number(line, value.unsigned_abs());
}

fn append_number(line: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0u8; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[first..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_like_the_archive() {
        let text = |append: &dyn Fn(&mut Vec<u8>)| {
            let mut line = Vec::new();
            append(&mut line);
            String::from_utf8(line).unwrap()
        };
        assert_eq!(text(&|l| append_mhz(l, 140_970_375, false)), "14.097037");
        assert_eq!(text(&|l| append_mhz(l, 140_970_375, true)), "14.0970375");
        assert_eq!(text(&|l| append_mhz(l, 1_374_000, false)), "0.137400");
        assert_eq!(text(&|l| append_signed(l, -21)), "-21");
        assert_eq!(text(&|l| append_number(l, 0)), "0");
        assert_eq!(text(&|l| append_number(l, u64::MAX)), u64::MAX.to_string());
    }
}
