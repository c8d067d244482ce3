//! Encodes spots of WSPR as blocks: the contract's columns, without the rows that a table's types
//! cannot hold.

use std::ops::Range;

use dyno_codec::clickhouse::FrameWriter;
use dyno_ingest::contract::{FIELDS, MODE, band_of};
use dyno_ingest::scan::{BadRow, Columns, Strings};

use crate::native::{self, Encode, Texts, Words, gather};
use crate::order::{self, Order};
use crate::schema::{Column, Text};

/// Encodes blocks of spots, and reuses its memory.
#[derive(Default)]
pub(crate) struct Spots {
    order: Order,
    texts: Texts,
}

impl Encode for Spots {
    type Rows = Columns;

    fn sorted(
        &mut self,
        rows: &Columns,
        columns: &[Column],
        aside: &mut dyn FnMut(BadRow<'_>),
    ) -> Vec<u32> {
        let mut order = self.order.sorted_rows(rows).to_vec();
        for unfit in unfit(rows, columns) {
            let codes = strings_of(rows, unfit.column).map_or(&[][..], |(_, codes)| codes);
            order.retain(|&row| {
                let good = codes[row as usize] != unfit.code;
                if !good {
                    // The line number is no longer known here, but the spot's ID is unique in the
                    // feed.
                    let id = rows.id[row as usize];
                    aside(BadRow {
                        line: 0,
                        reason: format!("spot {id}: {}", unfit.reason),
                        raw: row_text(rows, row as usize).as_bytes(),
                    });
                }
                good
            });
        }
        order
    }

    fn pieces(&self, rows: &Columns, order: &[u32]) -> Vec<Range<usize>> {
        order::months(order, &rows.timestamp)
    }

    /// Every string must fit its type, which [`unfit`] checks.
    fn block(&mut self, rows: &Columns, order: &[u32], columns: &[Column], out: &mut FrameWriter) {
        native::begin(out, columns.len(), order.len());
        for column in columns {
            native::column(out, column.name, &column.kind);
            match (column.text, strings_of(rows, column.name)) {
                (Some(text), Some((strings, codes))) => {
                    let words: Vec<&[u8]> = strings.iter().collect();
                    let words = Words {
                        words: &words,
                        codes,
                        nothing: None,
                    };
                    self.texts.write(text, &words, order, out);
                }
                // No archive has the mode, because it is the same in all rows.
                (Some(text), None) => native::constant(text, MODE.as_bytes(), order.len(), out),
                (None, _) => number(rows, column.name, order, out),
            }
        }
    }
}

/// The strings and codes of a column, if it has them.
fn strings_of<'a>(rows: &'a Columns, name: &str) -> Option<(&'a Strings, &'a [u32])> {
    let known = &rows.dictionaries;
    Some(match name {
        "reporter" => (&known.reporter, &rows.reporter),
        "reporter_grid" => (&known.reporter_grid, &rows.reporter_grid),
        "callsign" => (&known.callsign, &rows.callsign),
        "grid" => (&known.grid, &rows.grid),
        "version" => (&known.version, &rows.version),
        _ => return None,
    })
}

fn number(rows: &Columns, name: &str, order: &[u32], out: &mut FrameWriter) {
    let hertz = rows.dictionaries.frequency.values();
    match name {
        "id" => gather(order, out, |row| rows.id[row as usize].to_le_bytes()),
        "timestamp" => gather(order, out, |row| rows.timestamp[row as usize].to_le_bytes()),
        "snr" => gather(order, out, |row| rows.snr[row as usize].to_le_bytes()),
        "power" => gather(order, out, |row| rows.power[row as usize].to_le_bytes()),
        "drift" => gather(order, out, |row| rows.drift[row as usize].to_le_bytes()),
        "distance" => gather(order, out, |row| rows.distance[row as usize].to_le_bytes()),
        "azimuth" => gather(order, out, |row| rows.azimuth[row as usize].to_le_bytes()),
        "code" => gather(order, out, |row| [rows.code[row as usize]]),
        "frequency" => gather(order, out, |row| {
            hertz[rows.frequency[row as usize] as usize].to_le_bytes()
        }),
        "band" => {
            // The band follows from the frequency, so each distinct frequency is looked up once.
            let bands: Vec<i32> = hertz.iter().map(|&hz| band_of(hz)).collect();
            gather(order, out, |row| {
                bands[rows.frequency[row as usize] as usize].to_le_bytes()
            });
        }
        "column_count" => gather(order, out, |_row| [FIELDS as u8]),
        other => unreachable!("the contract has no column {other}"),
    }
}

/// A string that a column cannot hold: its column, its code, and why.
struct Unfit {
    column: &'static str,
    code: u32,
    reason: String,
}

/// The strings that do not fit the types of their columns.
fn unfit(rows: &Columns, columns: &[Column]) -> Vec<Unfit> {
    let mut unfit = Vec::new();
    for column in columns {
        let Some((strings, _)) = strings_of(rows, column.name) else {
            continue;
        };
        let Some(Text::Fixed(len)) = column.text else {
            continue;
        };
        for (code, string) in strings.iter().enumerate() {
            let reason = if string.len() > len {
                format!("has {} bytes", string.len())
            } else if string.contains(&0) {
                "holds a NUL, which such a column cannot tell from its filling".to_owned()
            } else {
                continue;
            };
            unfit.push(Unfit {
                column: column.name,
                code: code as u32,
                reason: format!(
                    "column {} is {} and its value {reason}",
                    column.name, column.kind
                ),
            });
        }
    }
    unfit
}

/// The row as text, for a person who reads the quarantine: its fields in the archive's order.
fn row_text(rows: &Columns, row: usize) -> String {
    let text = |name: &str| {
        let found = strings_of(rows, name)
            .and_then(|(strings, codes)| strings.iter().nth(codes[row] as usize));
        String::from_utf8_lossy(found.unwrap_or_default()).into_owned()
    };
    let hertz = rows.dictionaries.frequency.values()[rows.frequency[row] as usize];
    format!(
        "{},{},{},{},{},{}.{:06},{},{},{},{},{},{},,{},{}",
        rows.id[row],
        rows.timestamp[row],
        text("reporter"),
        text("reporter_grid"),
        rows.snr[row],
        hertz / 1_000_000,
        hertz % 1_000_000,
        text("callsign"),
        text("grid"),
        rows.power[row],
        rows.drift[row],
        rows.distance[row],
        rows.azimuth[row],
        text("version"),
        rows.code[row],
    )
}

#[cfg(test)]
mod tests;
