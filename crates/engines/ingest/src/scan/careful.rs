//! Parses one line at a time by all rules, and gives a reason for every refusal.
//!
//! A field may be quoted (RFC 4180, doubled quotes inside). A backslash escapes the character after
//! it, as in months before 2012.

use std::borrow::Cow;

use super::block::MAX_LINE;
use crate::contract::FIELDS;

/// A row as the archive has it, without the columns that the table derives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Number of the spot, unique in the feed.
    pub id: u64,
    /// Start of the transmission in Unix seconds.
    pub timestamp: u32,
    /// Callsign of the receiving station.
    pub reporter: String,
    /// Maidenhead grid of the receiver.
    pub reporter_grid: String,
    /// Signal-to-noise ratio in dB.
    pub snr: i8,
    /// Frequency in Hz, rounded half up.
    pub frequency: u64,
    /// Callsign of the sending station.
    pub callsign: String,
    /// Maidenhead grid of the sender.
    pub grid: String,
    /// Announced power in dBm.
    pub power: i8,
    /// Frequency drift in Hz per minute.
    pub drift: i8,
    /// Length of the path in km.
    pub distance: u32,
    /// Direction in degrees, from north over east.
    pub azimuth: u16,
    /// Version of the receiving software; empty if not reported.
    pub version: String,
    /// 0 for a plausible spot.
    pub code: u8,
}

/// Parses one line without its line feed; `None` for a blank one.
///
/// # Errors
/// Why it is not a row, in a sentence that names the field.
pub fn parse_line(line: &[u8]) -> Result<Option<Row>, String> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        return Ok(None);
    }
    if line.len() > MAX_LINE {
        return Err(format!("the line has more than {MAX_LINE} bytes"));
    }
    let fields = split(line)?;
    if fields.len() != FIELDS {
        return Err(format!("it has {} fields, not {FIELDS}", fields.len()));
    }
    let text = |i: usize, name| text(&fields[i], i, name);
    let _band: i64 = integer(&fields[12], 12, "band")?;
    Ok(Some(Row {
        id: integer(&fields[0], 0, "id")?,
        timestamp: integer(&fields[1], 1, "time")?,
        reporter: text(2, "reporter")?,
        reporter_grid: text(3, "reporter grid")?,
        snr: integer(&fields[4], 4, "SNR")?,
        frequency: frequency(&fields[5])?,
        callsign: text(6, "callsign")?,
        grid: text(7, "grid")?,
        power: integer(&fields[8], 8, "power")?,
        drift: integer(&fields[9], 9, "drift")?,
        distance: integer(&fields[10], 10, "distance")?,
        azimuth: integer(&fields[11], 11, "azimuth")?,
        version: text(13, "version")?,
        code: if fields[14].is_empty() {
            0
        } else {
            integer(&fields[14], 14, "code")?
        },
    }))
}

/// Splits at commas that are neither quoted nor escaped, and removes quotes and escapes.
fn split(line: &[u8]) -> Result<Vec<Cow<'_, [u8]>>, String> {
    // Most lines that come here are odd in another way, and their fields need no copy.
    if !line.iter().any(|byte| matches!(byte, b'"' | b'\\')) {
        return Ok(line
            .split(|&byte| byte == b',')
            .map(Cow::Borrowed)
            .collect());
    }
    let mut fields = Vec::with_capacity(FIELDS);
    let mut at = 0;
    loop {
        let (field, end) = field_at(line, at, fields.len())?;
        fields.push(Cow::Owned(field));
        if end == line.len() {
            return Ok(fields);
        }
        at = end + 1;
    }
}

/// The field that begins at `at`, and the position of its comma or of the line's end.
fn field_at(line: &[u8], mut at: usize, number: usize) -> Result<(Vec<u8>, usize), String> {
    let mut field = Vec::new();
    let quoted = line.get(at) == Some(&b'"');
    at += usize::from(quoted);
    loop {
        match (line.get(at), line.get(at + 1)) {
            (Some(b'\\'), Some(&escaped)) => {
                field.push(escaped);
                at += 2;
            }
            (Some(b'"'), Some(b'"')) if quoted => {
                field.push(b'"');
                at += 2;
            }
            (Some(b'"'), None | Some(b',')) if quoted => return Ok((field, at + 1)),
            (Some(b'"'), Some(_)) if quoted => {
                return Err(format!(
                    "field {}: text follows its closing quote",
                    number + 1
                ));
            }
            (Some(b','), _) if !quoted => return Ok((field, at)),
            (Some(&byte), _) => {
                field.push(byte);
                at += 1;
            }
            (None, _) if quoted => {
                return Err(format!("field {}: its quote is never closed", number + 1));
            }
            (None, _) => return Ok((field, at)),
        }
    }
}

fn shown(field: &[u8]) -> String {
    let mut shown: String = String::from_utf8_lossy(field).chars().take(40).collect();
    if shown.len() < field.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

fn text(field: &[u8], i: usize, name: &str) -> Result<String, String> {
    match std::str::from_utf8(field) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(format!(
            "field {} ({name}): {} is not UTF-8",
            i + 1,
            shown(field)
        )),
    }
}

/// A decimal integer: digits, with a minus sign if the type has negative numbers.
fn integer<T: TryFrom<i128>>(field: &[u8], i: usize, name: &str) -> Result<T, String> {
    // Twenty digits fit into 128 bits, so the sum cannot overflow, and the conversion to the type
    // alone decides about the range.
    let digits = field.strip_prefix(b"-").unwrap_or(field);
    let number = (!digits.is_empty()
        && digits.len() <= 20
        && digits.iter().all(u8::is_ascii_digit))
    .then(|| {
        digits
            .iter()
            .fold(0i128, |sum, digit| sum * 10 + i128::from(digit - b'0'))
    });
    number
        .map(|number| {
            if digits.len() < field.len() {
                -number
            } else {
                number
            }
        })
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| {
            let kind = std::any::type_name::<T>();
            format!(
                "field {} ({name}): {} is not an integer of type {kind}",
                i + 1,
                shown(field)
            )
        })
}

/// Megahertz in decimal as Hz, rounded half up.
fn frequency(field: &[u8]) -> Result<u64, String> {
    let refused = || {
        format!(
            "field 6 (frequency): {} is not a number of MHz",
            shown(field)
        )
    };
    let mut parts = field.splitn(2, |&byte| byte == b'.');
    let whole = parts.next().unwrap_or_default();
    let fraction = parts.next();
    let digits = |part: &[u8], most| {
        !part.is_empty() && part.len() <= most && part.iter().all(u8::is_ascii_digit)
    };
    if !digits(whole, 12) || fraction.is_some_and(|fraction| !digits(fraction, 9)) {
        return Err(refused());
    }
    let number = |part: &[u8]| {
        part.iter()
            .fold(0u64, |sum, &d| sum * 10 + u64::from(d - b'0'))
    };
    let fraction = fraction.unwrap_or_default();
    // With 12 digits before the dot and 9 after it, all products stay below 2^64.
    let thousandths = number(fraction) * 10u64.pow(9 - fraction.len() as u32);
    Ok(number(whole) * 1_000_000 + (thousandths + 500) / 1000)
}
