//! Columns to the pages of one row group.

use dyno_formats::parquet_write::{Bounds, Column, Dictionary, Field, Logical};

use crate::contract::{FIELDS, MODE, band_of};
use crate::scan::{Columns, Strings};

/// The fields of the table's Parquet files, in the order of the contract.
pub(super) fn fields() -> Vec<Field> {
    let integer = |name, bits, signed| Field {
        name,
        logical: Logical::Integer { bits, signed },
    };
    let text = |name| Field {
        name,
        logical: Logical::Text,
    };
    vec![
        integer("id", 64, false),
        Field {
            name: "timestamp",
            logical: Logical::TimestampMillis,
        },
        text("reporter"),
        text("reporter_grid"),
        integer("snr", 8, true),
        integer("frequency", 64, false),
        text("callsign"),
        text("grid"),
        integer("power", 8, true),
        integer("drift", 8, true),
        integer("distance", 32, false),
        integer("azimuth", 16, false),
        integer("band", 32, true),
        text("mode"),
        text("version"),
        integer("code", 8, false),
        integer("column_count", 8, false),
    ]
}

/// Encodes row groups, one after the other, in memory that it keeps.
#[derive(Default)]
pub(super) struct Encoder {
    columns: Vec<Column>,
    wide: Vec<i64>,
    codes: Vec<u32>,
    small: SmallIntegers,
}

impl Encoder {
    /// Encodes the rows of `rows` as the next row group.
    pub(super) fn encode(&mut self, rows: &Columns) -> &[Column] {
        self.columns.resize_with(fields().len(), Column::default);
        let Encoder {
            columns,
            wide,
            codes,
            small,
        } = self;
        let [
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
            band,
            mode,
            version,
            code,
            column_count,
        ] = columns.as_mut_slice()
        else {
            unreachable!("the contract has 17 columns");
        };
        let dictionaries = &rows.dictionaries;

        wide.clear();
        wide.extend(rows.id.iter().map(|&id| id as i64));
        id.delta(wide, wide_bounds(rows.id.iter().copied()));
        wide.clear();
        wide.extend(
            rows.timestamp
                .iter()
                .map(|&seconds| i64::from(seconds) * 1000),
        );
        timestamp.delta(
            wide,
            wide_bounds(rows.timestamp.iter().map(|&s| u64::from(s) * 1000)),
        );

        strings(reporter, &dictionaries.reporter, &rows.reporter);
        strings(
            reporter_grid,
            &dictionaries.reporter_grid,
            &rows.reporter_grid,
        );
        strings(callsign, &dictionaries.callsign, &rows.callsign);
        strings(grid, &dictionaries.grid, &rows.grid);
        strings(version, &dictionaries.version, &rows.version);

        small.encode(snr, rows.snr.iter().map(|&v| i32::from(v)));
        small.encode(power, rows.power.iter().map(|&v| i32::from(v)));
        small.encode(drift, rows.drift.iter().map(|&v| i32::from(v)));
        small.encode(distance, rows.distance.iter().map(|&v| v as i32));
        small.encode(azimuth, rows.azimuth.iter().map(|&v| i32::from(v)));
        small.encode(code, rows.code.iter().map(|&v| i32::from(v)));

        let hertz = dictionaries.frequency.values();
        let plain: Vec<u8> = hertz.iter().flat_map(|hz| hz.to_le_bytes()).collect();
        let bounds = wide_bounds(hertz.iter().copied()).map(|bounds| Bounds {
            exact: false,
            ..bounds
        });
        frequency.dictionary(
            Dictionary {
                plain: &plain,
                values: hertz.len(),
            },
            &rows.frequency,
            bounds,
        );
        // The band follows from the frequency, so each distinct frequency is looked up once.
        let bands: Vec<i32> = hertz.iter().map(|&hz| band_of(hz)).collect();
        small.encode(
            band,
            rows.frequency.iter().map(|&code| bands[code as usize]),
        );

        codes.clear();
        codes.resize(rows.len(), 0);
        let mut only = (MODE.len() as u32).to_le_bytes().to_vec();
        only.extend_from_slice(MODE.as_bytes());
        let bounds = Bounds {
            min: MODE.into(),
            max: MODE.into(),
            exact: true,
        };
        mode.dictionary(
            Dictionary {
                plain: &only,
                values: 1,
            },
            codes,
            Some(bounds),
        );
        let only = (FIELDS as i32).to_le_bytes();
        let bounds = Bounds {
            min: only.to_vec(),
            max: only.to_vec(),
            exact: true,
        };
        column_count.dictionary(
            Dictionary {
                plain: &only,
                values: 1,
            },
            codes,
            Some(bounds),
        );
        columns
    }
}

fn wide_bounds(values: impl Iterator<Item = u64>) -> Option<Bounds> {
    let (mut min, mut max, mut any) = (u64::MAX, 0, false);
    for value in values {
        min = min.min(value);
        max = max.max(value);
        any = true;
    }
    any.then(|| Bounds {
        min: min.to_le_bytes().into(),
        max: max.to_le_bytes().into(),
        exact: true,
    })
}

/// The dictionary goes out whole, also what only earlier row groups used: so codes stay the same
/// within a file and a reader can aggregate by them.
fn strings(column: &mut Column, strings: &Strings, codes: &[u32]) {
    let (least, greatest) = strings.bounds();
    let bounds = Bounds {
        min: least.into(),
        max: greatest.into(),
        exact: false,
    };
    let dictionary = Dictionary {
        plain: strings.plain(),
        values: strings.len(),
    };
    column.dictionary(dictionary, codes, (!strings.is_empty()).then_some(bounds));
}

/// Integers of a small range: codes by a look-up table, in the order of the values.
#[derive(Default)]
struct SmallIntegers {
    codes: Vec<u32>,
    table: Vec<u32>,
    plain: Vec<u8>,
}

impl SmallIntegers {
    /// Beyond this range the values are stored as they are.
    const RANGE: i64 = 1 << 16;

    fn encode(&mut self, column: &mut Column, values: impl Iterator<Item = i32> + Clone) {
        const ABSENT: u32 = 0;
        const PRESENT: u32 = 1;
        let (min, max) = values
            .clone()
            .fold((i32::MAX, i32::MIN), |(min, max), value| {
                (min.min(value), max.max(value))
            });
        let bounds = (min <= max).then(|| Bounds {
            min: min.to_le_bytes().into(),
            max: max.to_le_bytes().into(),
            exact: true,
        });
        let range = i64::from(max) - i64::from(min) + 1;
        if range > Self::RANGE {
            let values: Vec<i32> = values.collect();
            column.plain_i32(&values, ordered_bounds(bounds, min));
            return;
        }
        self.table.clear();
        self.table.resize(range.max(0) as usize, ABSENT);
        values
            .clone()
            .for_each(|value| self.table[value.wrapping_sub(min) as usize] = PRESENT);
        self.plain.clear();
        let mut distinct = 0;
        for (offset, slot) in self.table.iter_mut().enumerate() {
            if *slot == PRESENT {
                self.plain
                    .extend_from_slice(&(min + offset as i32).to_le_bytes());
                *slot = distinct;
                distinct += 1;
            }
        }
        self.codes.clear();
        self.codes
            .extend(values.map(|value| self.table[value.wrapping_sub(min) as usize]));
        let dictionary = Dictionary {
            plain: &self.plain,
            values: distinct as usize,
        };
        column.dictionary(dictionary, &self.codes, ordered_bounds(bounds, min));
    }
}

/// No bounds where an unsigned value was so large that it looks negative here.
fn ordered_bounds(bounds: Option<Bounds>, min: i32) -> Option<Bounds> {
    bounds.filter(|_| min >= -128)
}
