//! Encodes rows of the feeds other than WSPR as blocks: a column for each field, after one that
//! names the archive.

use std::borrow::Cow;
use std::ops::Range;

use dyno_codec::clickhouse::FrameWriter;
use dyno_ingest::scan::BadRow;
use dyno_ingest_feeds::{self as feeds, Field, Kind, Layout, Rows, Values};

use crate::native::{self, Encode, Texts, Words, gather};
use crate::order::{Order, Ranks, bits};
use crate::schema::{Column, Text};

/// Encodes rows of one archive, and reuses its memory for each chunk.
pub(crate) struct FeedRows {
    layout: Layout,
    archive: String,
    order: Order,
    ranks: Ranks,
    texts: Texts,
}

impl FeedRows {
    /// Makes an encoder whose `archive` column has this identity in every row.
    pub fn new(layout: Layout, archive: &str) -> FeedRows {
        FeedRows {
            layout,
            archive: archive.to_owned(),
            order: Order::default(),
            ranks: Ranks::default(),
            texts: Texts::default(),
        }
    }

    /// A number for each row that compares as the table's key does. The key ends before the first
    /// column whose numbers no longer fit, and the server sorts what is left.
    fn keys(&mut self, rows: &Rows) -> Vec<u64> {
        let mut keys = vec![0u64; rows.len()];
        let mut room = u64::BITS;
        for name in self.layout.order {
            let found = rows.columns().find(|(field, _)| field.name == *name);
            let Some((field, column)) = found else { break };
            let Some((ranks, bits)) = self.ranks_of(field, column, rows.len()) else {
                break;
            };
            if bits > room {
                break;
            }
            room -= bits;
            for (key, rank) in keys.iter_mut().zip(ranks) {
                // A column may need all 64 bits; then no other column precedes it, and there is
                // nothing to shift.
                *key = key.checked_shl(bits).unwrap_or(0) | rank;
            }
        }
        keys
    }

    /// A rank for each row by one column, and how many bits the ranks need. A missing value counts
    /// as zero or as the empty string, as in the table's key.
    fn ranks_of(
        &mut self,
        field: &Field,
        column: &feeds::Column,
        rows: usize,
    ) -> Option<(Vec<u64>, u32)> {
        match &column.values {
            Values::Integers(_) => {
                let values = integers(field, column);
                let (least, most) = values
                    .iter()
                    .fold((i64::MAX, i64::MIN), |(a, b), &v| (a.min(v), b.max(v)));
                let rank = |value: i64| value.wrapping_sub(least) as u64;
                let bits = u64::BITS - rank(most.max(least)).leading_zeros();
                Some((values.iter().map(|&value| rank(value)).collect(), bits))
            }
            Values::Words { codes, words } => {
                self.ranks.update(words);
                let ranks = &self.ranks.ranks;
                let rank = |place: Option<usize>| {
                    place.map_or(0, |at| u64::from(ranks[codes[at] as usize]) + 1)
                };
                let of_rows = places(field, column, rows).map(rank).collect();
                Some((of_rows, bits(ranks.len() as u64 + 1)))
            }
            Values::Texts { .. } => None,
        }
    }
}

impl Encode for FeedRows {
    type Rows = Rows;

    fn sorted(
        &mut self,
        rows: &Rows,
        columns: &[Column],
        aside: &mut dyn FnMut(BadRow<'_>),
    ) -> Vec<u32> {
        let keys = self.keys(rows);
        let mut order = self.order.by(keys.into_iter()).to_vec();
        // The first column names the archive. The others are those of the feed, in its order.
        for (column, (field, values)) in columns[1..].iter().zip(rows.columns()) {
            if field.kind != Kind::Moment || !column.is_time() {
                continue;
            }
            let times_ms = integers(field, values);
            order.retain(|&row| {
                let time_ms = times_ms[row as usize];
                let good = second(time_ms).is_some();
                if !good {
                    // The line number is no longer known here.
                    aside(BadRow {
                        line: 0,
                        reason: format!(
                            "column {} is {} and its value {time_ms} ms from 1970 is not a second of the years \
                             1970 to 2106",
                            column.name, column.kind
                        ),
                        raw: row_text(rows, row as usize).as_bytes(),
                    });
                }
                good
            });
        }
        order
    }

    /// All rows go together, because an archive is one partition.
    fn pieces(&self, _rows: &Rows, order: &[u32]) -> Vec<Range<usize>> {
        let whole = std::iter::once(0..order.len());
        whole.filter(|piece| !piece.is_empty()).collect()
    }

    fn block(&mut self, rows: &Rows, order: &[u32], columns: &[Column], out: &mut FrameWriter) {
        native::begin(out, columns.len(), order.len());
        let (archive, columns) = columns.split_first().expect("the archive comes first");
        native::column(out, archive.name, &archive.kind);
        native::constant(Text::Plain, self.archive.as_bytes(), order.len(), out);
        for (column, (field, values)) in columns.iter().zip(rows.columns()) {
            native::column(out, column.name, &column.kind);
            // A dictionary has an entry for a missing value. Other types first list which values
            // are missing.
            if column.nullable && column.text != Some(Text::Coded) {
                gather(order, out, |row| [u8::from(!values.present[row as usize])]);
            }
            match (&values.values, column.text) {
                (Values::Integers(_), _) => {
                    numbers(column, field.kind, &integers(field, values), order, out);
                }
                (Values::Words { codes, words }, text) => {
                    // A missing value gets a code of its own, behind those of the dictionary.
                    let list: Vec<&[u8]> = words.iter().chain([&b""[..]]).collect();
                    let nothing = words.len() as u32;
                    let codes: Vec<u32> = places(field, values, rows.len())
                        .map(|at| at.map_or(nothing, |at| codes[at]))
                        .collect();
                    let words = Words {
                        words: &list,
                        codes: &codes,
                        nothing: field.nullable.then_some(nothing),
                    };
                    let text = text.unwrap_or(Text::Plain);
                    self.texts.write(text, &words, order, out);
                }
                (Values::Texts { offsets, bytes }, _) => {
                    let places: Vec<Option<usize>> = places(field, values, rows.len()).collect();
                    for &row in order {
                        native::string(out, text_at(offsets, bytes, places[row as usize]));
                    }
                }
            }
        }
    }
}

/// For each row the index of its value among those that are present.
fn places<'a>(
    field: &Field,
    column: &'a feeds::Column,
    rows: usize,
) -> impl Iterator<Item = Option<usize>> + 'a {
    let nullable = field.nullable;
    let mut next = 0;
    (0..rows).map(move |row| {
        let here = !nullable || column.present[row];
        let place = next;
        next += usize::from(here);
        here.then_some(place)
    })
}

/// The integers of a column, one for each row; 0 if a value is missing.
fn integers<'a>(field: &Field, column: &'a feeds::Column) -> Cow<'a, [i64]> {
    let Values::Integers(values) = &column.values else {
        return Cow::Borrowed(&[]);
    };
    if field.nullable {
        places(field, column, column.present.len())
            .map(|at| at.map_or(0, |at| values[at]))
            .collect()
    } else {
        Cow::Borrowed(values)
    }
}

fn numbers(column: &Column, kind: Kind, values: &[i64], order: &[u32], out: &mut FrameWriter) {
    let value = |row: u32| values[row as usize];
    match kind {
        Kind::Integer { bits: 8, .. } => gather(order, out, |row| [value(row) as u8]),
        Kind::Integer { bits: 16, .. } => {
            gather(order, out, |row| (value(row) as u16).to_le_bytes());
        }
        Kind::Integer { bits: 32, .. } => {
            gather(order, out, |row| (value(row) as u32).to_le_bytes());
        }
        Kind::Moment if column.is_time() => {
            gather(order, out, |row| {
                second(value(row)).unwrap_or(0).to_le_bytes()
            });
        }
        _ => gather(order, out, |row| value(row).to_le_bytes()),
    }
}

/// The Unix second of a time, or `None` if a column of seconds cannot hold it.
fn second(time_ms: i64) -> Option<u32> {
    match time_ms % 1000 {
        0 => u32::try_from(time_ms / 1000).ok(),
        _ => None,
    }
}

fn text_at<'a>(offsets: &[u32], bytes: &'a [u8], place: Option<usize>) -> &'a [u8] {
    place.map_or(&[], |at| {
        &bytes[offsets[at] as usize..offsets[at + 1] as usize]
    })
}

/// The row as text, for a person who reads the quarantine: the line itself if the feed keeps it,
/// else its values separated by commas.
fn row_text(rows: &Rows, row: usize) -> String {
    let value = |(field, column): (&Field, &feeds::Column)| {
        let place = places(field, column, row + 1).last().flatten();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match (&column.values, place) {
            (_, None) => String::new(),
            (Values::Integers(values), Some(at)) => values[at].to_string(),
            (Values::Words { codes, words }, Some(at)) => {
                text(words.iter().nth(codes[at] as usize).unwrap_or_default())
            }
            (Values::Texts { offsets, bytes }, place) => text(text_at(offsets, bytes, place)),
        }
    };
    match rows.columns().find(|(field, _)| field.name == "raw") {
        Some(raw) => value(raw),
        None => rows.columns().map(value).collect::<Vec<_>>().join(","),
    }
}

#[cfg(test)]
mod tests {
    use dyno_ingest_feeds::{Cell, named};
    use proptest::prelude::*;

    use super::*;

    /// Time in seconds, band and sender, each `None` if missing.
    type Report = (Option<u32>, Option<i32>, Option<String>);

    fn reports(fields: &'static [Field], reports: &[Report]) -> Rows {
        let mut rows = Rows::new(fields);
        for (second, band, sender) in reports {
            let cell = |field: &Field| match field.name {
                "timestamp" => second.map(|s| i64::from(s) * 1000).into(),
                "band" => (*band).into(),
                "sender" => sender.as_deref().into(),
                _ => Cell::Nothing,
            };
            let cells: Vec<Cell<'_>> = fields.iter().map(cell).collect();
            rows.push(&cells);
        }
        rows
    }

    proptest! {
        #[test]
        fn rows_come_in_the_order_of_the_key_also_where_values_are_missing(
            list in proptest::collection::vec(
                (
                    proptest::option::of(any::<u32>()),
                    proptest::option::of(-5i32..500),
                    proptest::option::of("[A-Z0-9/]{0,9}"),
                ),
                0..200,
            ),
            spread in 0u32..32,
        ) {
            let format = named("psk").and_then(|feed| feed.rows.as_ref()).expect("rows");
            let list: Vec<Report> = list
                .into_iter()
                .map(|(second, band, sender)| (second.map(|s| s >> spread), band, sender))
                .collect();
            let rows = reports(format.fields, &list);
            let sorted = FeedRows::new(format.layout, "psk/a").sorted(&rows, &[archive()], &mut |_| {});
            let mut expected: Vec<u32> = (0..list.len() as u32).collect();
            expected.sort_by_key(|&row| {
                let (second, band, sender) = &list[row as usize];
                (second.unwrap_or(0), band.unwrap_or(0), sender.clone())
            });
            prop_assert_eq!(sorted, expected);
        }
    }

    fn archive() -> Column {
        Column {
            name: "archive",
            kind: "String".to_owned(),
            text: Some(Text::Plain),
            nullable: false,
        }
    }

    #[test]
    fn only_whole_seconds_that_32_bits_hold_are_seconds() {
        for (time_ms, found) in [
            (0, Some(0)),
            (4_294_967_295_000, Some(u32::MAX)),
            (4_294_967_296_000, None),
            (-1000, None),
            (1500, None),
        ] {
            assert_eq!(second(time_ms), found, "{time_ms}");
        }
    }
}
