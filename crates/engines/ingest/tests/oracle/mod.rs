//! The slow, obvious parser of spot lines: what the fast one must agree with. It shares nothing
//! with it, allocates freely, and says each rule of docs/formats/spot-archives.md once, in order.
//!
//! 1. A line ends at a line feed or at the end of the input. One carriage return before that is not
//!    part of it. A line with nothing in it is blank: skipped and counted.
//! 2. A line of more than 65,536 bytes without its end is bad.
//! 3. Commas separate fields. A backslash is removed and the byte behind it taken as it is, in
//!    quotes or out of them. A field whose first byte is a quote ends at the next lone quote, and
//!    two quotes inside stand for one; what follows must be a comma or the end of the line.
//!    Elsewhere a quote is an ordinary byte. A line that ends inside quotes is bad; a backslash at
//!    its end is an ordinary byte.
//! 4. A line has 15 fields.
//! 5. Integers are 1 to 20 digits, perhaps behind a `-`, and fit their columns; field 13 fits 64
//!    bits.
//! 6. Text is UTF-8.

#![allow(
    dead_code,
    reason = "each test that includes this module uses another part of it"
)]

use md5::{Digest, Md5};

pub const LINE_BYTES_MAX: usize = 65_536;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// From 1, blank lines counted.
    pub line: u64,
    pub reason: Reason,
    /// The line without its line end.
    pub raw: Vec<u8>,
}

/// In the order in which they are looked for; fields from left to right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    LongLine,
    Quote,
    FieldCount,
    Number,
    Utf8,
}

impl Reason {
    pub fn name(self) -> &'static str {
        match self {
            Reason::LongLine => "long-line",
            Reason::Quote => "quote",
            Reason::FieldCount => "field-count",
            Reason::Number => "number",
            Reason::Utf8 => "utf8",
        }
    }
}

pub fn parse(bytes: &[u8]) -> (Vec<Row>, Vec<BadRow>) {
    let parsed = parse_lines(bytes);
    (
        parsed.rows.into_iter().map(|(_, row)| row).collect(),
        parsed.bad,
    )
}

pub struct Parsed {
    /// With the line each came from.
    pub rows: Vec<(u64, Row)>,
    pub bad: Vec<BadRow>,
    /// Line numbers.
    pub blank: Vec<u64>,
}

pub fn parse_lines(bytes: &[u8]) -> Parsed {
    let mut parsed = Parsed {
        rows: Vec::new(),
        bad: Vec::new(),
        blank: Vec::new(),
    };
    let mut lines: Vec<&[u8]> = bytes.split(|&b| b == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    for (at, &with_return) in lines.iter().enumerate() {
        let line = at as u64 + 1;
        let raw = with_return.strip_suffix(b"\r").unwrap_or(with_return);
        if raw.is_empty() {
            parsed.blank.push(line);
            continue;
        }
        let result = if raw.len() > LINE_BYTES_MAX {
            Err(Reason::LongLine)
        } else {
            parse_line(raw)
        };
        match result {
            Ok(row) => parsed.rows.push((line, row)),
            Err(reason) => parsed.bad.push(BadRow {
                line,
                reason,
                raw: raw.to_vec(),
            }),
        }
    }
    parsed
}

fn parse_line(line: &[u8]) -> Result<Row, Reason> {
    let fields = split(line)?;
    if fields.len() != 15 {
        return Err(Reason::FieldCount);
    }
    let id = integer(&fields[0], 0, u64::MAX as i128)? as u64;
    let timestamp = integer(&fields[1], 0, u32::MAX as i128)? as u32;
    let reporter = text(&fields[2])?;
    let reporter_grid = text(&fields[3])?;
    let snr = integer(&fields[4], -128, 127)? as i8;
    let frequency = hertz(&fields[5])?;
    let callsign = text(&fields[6])?;
    let grid = text(&fields[7])?;
    let power = integer(&fields[8], -128, 127)? as i8;
    let drift = integer(&fields[9], -128, 127)? as i8;
    let distance = integer(&fields[10], 0, u32::MAX as i128)? as u32;
    let azimuth = integer(&fields[11], 0, u16::MAX as i128)? as u16;
    integer(&fields[12], i64::MIN as i128, i64::MAX as i128)?;
    let version = text(&fields[13])?;
    let code = if fields[14].is_empty() {
        0
    } else {
        integer(&fields[14], 0, 255)? as u8
    };
    Ok(Row {
        id,
        timestamp,
        reporter,
        reporter_grid,
        snr,
        frequency,
        callsign,
        grid,
        power,
        drift,
        distance,
        azimuth,
        band: band(frequency),
        mode: "WSPR".to_owned(),
        version,
        code,
        column_count: 15,
    })
}

fn split(line: &[u8]) -> Result<Vec<Vec<u8>>, Reason> {
    let mut fields = Vec::new();
    let mut at = 0;
    loop {
        let mut field = Vec::new();
        if line.get(at) == Some(&b'"') {
            at += 1;
            loop {
                match (line.get(at), line.get(at + 1)) {
                    (None, _) | (Some(b'\\'), None) => return Err(Reason::Quote),
                    (Some(b'\\'), Some(&next)) => {
                        field.push(next);
                        at += 2;
                    }
                    (Some(b'"'), Some(b'"')) => {
                        field.push(b'"');
                        at += 2;
                    }
                    (Some(b'"'), _) => break,
                    (Some(&byte), _) => {
                        field.push(byte);
                        at += 1;
                    }
                }
            }
            at += 1;
            if at < line.len() && line[at] != b',' {
                return Err(Reason::Quote);
            }
        } else {
            while at < line.len() && line[at] != b',' {
                if line[at] == b'\\' && at + 1 < line.len() {
                    at += 1;
                }
                field.push(line[at]);
                at += 1;
            }
        }
        fields.push(field);
        if at == line.len() {
            return Ok(fields);
        }
        at += 1;
    }
}

fn integer(field: &[u8], low: i128, high: i128) -> Result<i128, Reason> {
    let text = std::str::from_utf8(field).map_err(|_| Reason::Number)?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !(1..=20).contains(&digits.len()) || !digits.chars().all(|c| c.is_ascii_digit()) {
        return Err(Reason::Number);
    }
    let value: i128 = text.parse().map_err(|_| Reason::Number)?;
    if value < low || value > high {
        Err(Reason::Number)
    } else {
        Ok(value)
    }
}

fn text(field: &[u8]) -> Result<String, Reason> {
    String::from_utf8(field.to_vec()).map_err(|_| Reason::Utf8)
}

/// Megahertz in decimals, 1 to 12 digits, and if there is a point 1 to 9 behind it; times 10^6,
/// rounded half up.
fn hertz(field: &[u8]) -> Result<u64, Reason> {
    let text = std::str::from_utf8(field).map_err(|_| Reason::Number)?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits_only = |s: &str| s.chars().all(|c| c.is_ascii_digit());
    if !(1..=12).contains(&whole.len()) || !(1..=9).contains(&fraction.len()) {
        return Err(Reason::Number);
    }
    if !digits_only(whole) || !digits_only(fraction) {
        return Err(Reason::Number);
    }
    let nano: u128 = format!("{whole}{fraction:0<9}")
        .parse()
        .map_err(|_| Reason::Number)?;
    Ok(((nano + 500) / 1000) as u64)
}

/// Edges of the amateur bands in Hz, both inside.
fn band(frequency: u64) -> i32 {
    let edges = [
        (100, 135_700, 137_800),
        (101, 472_000, 479_000),
        (102, 1_800_000, 2_000_000),
        (103, 3_500_000, 4_000_000),
        (104, 5_060_000, 5_450_000),
        (105, 7_000_000, 7_300_000),
        (106, 10_100_000, 10_150_000),
        (107, 14_000_000, 14_350_000),
        (108, 18_068_000, 18_168_000),
        (109, 21_000_000, 21_450_000),
        (110, 24_890_000, 24_990_000),
        (111, 28_000_000, 29_700_000),
        (200, 50_000_000, 54_000_000),
        (201, 70_000_000, 71_000_000),
        (202, 144_000_000, 148_000_000),
        (203, 219_000_000, 225_000_000),
        (300, 420_000_000, 450_000_000),
        (301, 902_000_000, 928_000_000),
        (302, 1_240_000_000, 1_300_000_000),
        (303, 2_300_000_000, 2_450_000_000),
        (400, 3_300_000_000, 3_500_000_000),
        (401, 5_650_000_000, 5_925_000_000),
        (402, 10_000_000_000, 10_500_000_000),
    ];
    for (code, low, high) in edges {
        if frequency >= low && frequency <= high {
            return code;
        }
    }
    0
}

/// The order-independent checksum of a table: per column, the sum over rows of the value times
/// (1 + id mod 65521), modulo 2^64; text counts as the first 8 hex digits of its MD5.
pub fn checksum(rows: &[Row]) -> String {
    let mut sums = [0u64; 17];
    for row in rows {
        let values = [
            row.id,
            u64::from(row.timestamp),
            md5_value(&row.reporter),
            md5_value(&row.reporter_grid),
            row.snr as i64 as u64,
            row.frequency,
            md5_value(&row.callsign),
            md5_value(&row.grid),
            row.power as i64 as u64,
            row.drift as i64 as u64,
            u64::from(row.distance),
            u64::from(row.azimuth),
            row.band as i64 as u64,
            md5_value(&row.mode),
            md5_value(&row.version),
            u64::from(row.code),
            u64::from(row.column_count),
        ];
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = sum.wrapping_add(value.wrapping_mul(1 + row.id % 65_521));
        }
    }
    sums.map(|sum| format!("{sum:016x}")).join("-")
}

fn md5_value(text: &str) -> u64 {
    let digest = Md5::digest(text.as_bytes());
    u64::from(u32::from_be_bytes([
        digest[0], digest[1], digest[2], digest[3],
    ]))
}
