//! Encodes columns as the pages of one row group.

use dyno_formats::parquet_write::{self, Bounds, Column, Dictionary, Field, Logical};

use super::directory::RowGroups;
use super::iceberg::Types;
use crate::contract::{COLUMNS, FIELDS, MODE, band_of};
use crate::scan::{Columns, Strings};
use crate::table::WSPR;

/// The fields of the table's Parquet files, in the order of the contract.
fn fields() -> Vec<Field> {
    let integer = |name, bits, signed| Field {
        name,
        logical: Logical::Integer { bits, signed },
        nullable: false,
        id: None,
    };
    let text = |name| Field {
        name,
        logical: Logical::Text,
        nullable: false,
        id: None,
    };
    vec![
        integer("id", 64, false),
        Field {
            name: "timestamp",
            logical: Logical::TimestampMillis,
            nullable: false,
            id: None,
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

/// Encodes one row group after the other, and reuses its memory.
pub(super) struct Encoder {
    types: Types,
    columns: Vec<Column>,
    wide: Vec<i64>,
    codes: Vec<u32>,
    small: SmallIntegers,
}

impl RowGroups for Encoder {
    type Chunk = Columns;

    fn feed(&self) -> &'static str {
        WSPR
    }

    fn fields(&self) -> Vec<Field> {
        self.types.fields(fields())
    }

    fn about(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn encode(&mut self, rows: &Columns) -> Result<&[Column], parquet_write::Error> {
        self.columns.resize_with(COLUMNS.len(), Column::default);
        self.ids_and_times(rows)?;
        self.texts(rows);
        self.small_integers(rows);
        self.frequency_and_band(rows)?;
        self.constants(rows.len());
        Ok(&self.columns)
    }
}

impl Encoder {
    pub(super) fn new(types: Types) -> Encoder {
        Encoder {
            types,
            columns: Vec::new(),
            wide: Vec::new(),
            codes: Vec::new(),
            small: SmallIntegers::default(),
        }
    }

    /// Refuses a number that the type of its column cannot hold.
    fn check(&self, column: &'static str, numbers: &[u64]) -> Result<(), parquet_write::Error> {
        let beyond = |&&number: &&u64| i64::try_from(number).is_err();
        match numbers
            .iter()
            .find(beyond)
            .filter(|_| self.types == Types::Iceberg)
        {
            Some(number) => Err(parquet_write::Error::OutOfRange {
                column,
                value: number.to_string(),
            }),
            None => Ok(()),
        }
    }

    fn ids_and_times(&mut self, rows: &Columns) -> Result<(), parquet_write::Error> {
        self.check("id", &rows.id)?;
        let per_second = 1000 * self.types.per_millisecond();
        let wide = &mut self.wide;
        wide.clear();
        wide.extend(rows.id.iter().map(|&id| id as i64));
        self.columns[at("id")].delta(wide, wide_bounds(rows.id.iter().copied()));
        wide.clear();
        wide.extend(
            rows.timestamp
                .iter()
                .map(|&seconds| i64::from(seconds) * per_second),
        );
        let times = wide.iter().map(|&time| time as u64);
        let bounds = wide_bounds(times);
        self.columns[at("timestamp")].delta(wide, bounds);
        Ok(())
    }

    fn texts(&mut self, rows: &Columns) {
        let known = &rows.dictionaries;
        for (name, dictionary, codes) in [
            ("reporter", &known.reporter, &rows.reporter),
            ("reporter_grid", &known.reporter_grid, &rows.reporter_grid),
            ("callsign", &known.callsign, &rows.callsign),
            ("grid", &known.grid, &rows.grid),
            ("version", &known.version, &rows.version),
        ] {
            encode_strings(&mut self.columns[at(name)], dictionary, codes);
        }
    }

    fn small_integers(&mut self, rows: &Columns) {
        let distances = match self.types {
            Types::Own => Stored::Unsigned,
            Types::Iceberg => Stored::Wide,
        };
        let Encoder { columns, small, .. } = self;
        for (name, values) in [
            ("snr", &rows.snr),
            ("power", &rows.power),
            ("drift", &rows.drift),
        ] {
            let values = values.iter().map(|&v| i32::from(v));
            small.encode(&mut columns[at(name)], values, Stored::Signed);
        }
        let distance = rows.distance.iter().map(|&v| v as i32);
        small.encode(&mut columns[at("distance")], distance, distances);
        let azimuth = rows.azimuth.iter().map(|&v| i32::from(v));
        small.encode(&mut columns[at("azimuth")], azimuth, Stored::Unsigned);
        let code = rows.code.iter().map(|&v| i32::from(v));
        small.encode(&mut columns[at("code")], code, Stored::Unsigned);
    }

    fn frequency_and_band(&mut self, rows: &Columns) -> Result<(), parquet_write::Error> {
        let hertz = rows.dictionaries.frequency.values();
        self.check("frequency", hertz)?;
        let plain: Vec<u8> = hertz.iter().flat_map(|hz| hz.to_le_bytes()).collect();
        // The dictionary may hold frequencies that only earlier row groups used. So the bounds
        // enclose the values of this one but need not occur in it.
        let bounds = wide_bounds(hertz.iter().copied()).map(|bounds| Bounds {
            exact: false,
            ..bounds
        });
        let dictionary = Dictionary {
            plain: &plain,
            values: hertz.len(),
        };
        self.columns[at("frequency")].dictionary(dictionary, &rows.frequency, bounds);
        // The band follows from the frequency, so each distinct frequency is looked up once.
        let bands: Vec<i32> = hertz.iter().map(|&hz| band_of(hz)).collect();
        let of_rows = rows.frequency.iter().map(|&code| bands[code as usize]);
        let band = &mut self.columns[at("band")];
        self.small.encode(band, of_rows, Stored::Signed);
        Ok(())
    }

    /// Encodes the columns that have one value in all rows.
    fn constants(&mut self, rows: usize) {
        self.codes.clear();
        self.codes.resize(rows, 0);
        let fields = (FIELDS as i32).to_le_bytes();
        let mut mode = (MODE.len() as u32).to_le_bytes().to_vec();
        mode.extend_from_slice(MODE.as_bytes());
        for (name, plain, value) in [
            ("mode", &mode[..], MODE.as_bytes()),
            ("column_count", &fields[..], &fields[..]),
        ] {
            let bounds = Bounds {
                min: value.to_vec(),
                max: value.to_vec(),
                exact: true,
            };
            let dictionary = Dictionary { plain, values: 1 };
            self.columns[at(name)].dictionary(dictionary, &self.codes, Some(bounds));
        }
    }
}

/// The index of the column `name` in the contract.
fn at(name: &str) -> usize {
    COLUMNS
        .iter()
        .position(|column| *column == name)
        .expect("only names of the contract are asked for")
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

/// Encodes a column of strings. Writes the whole dictionary, including what only earlier row groups
/// used, so that codes stay the same within a file and a reader can aggregate by them.
pub fn encode_strings(column: &mut Column, strings: &Strings, codes: &[u32]) {
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

/// How the values of a column are stored, and so how a reader orders them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    /// In 32 bits, with a sign.
    Signed,
    /// In 32 bits, without a sign.
    Unsigned,
    /// In 64 bits; they are given like unsigned ones.
    Wide,
}

impl Stored {
    fn plain(self, value: i32, out: &mut Vec<u8>) {
        match self {
            Stored::Signed | Stored::Unsigned => out.extend_from_slice(&value.to_le_bytes()),
            Stored::Wide => out.extend_from_slice(&i64::from(value as u32).to_le_bytes()),
        }
    }

    fn bounds(self, min: i32, max: i32) -> Bounds {
        let mut bounds = Bounds {
            min: Vec::new(),
            max: Vec::new(),
            exact: true,
        };
        self.plain(min, &mut bounds.min);
        self.plain(max, &mut bounds.max);
        bounds
    }
}

/// Integers of a small range, encoded as codes by a look-up table, in the order of the values.
#[derive(Default)]
struct SmallIntegers {
    codes: Vec<u32>,
    table: Vec<u32>,
    plain: Vec<u8>,
}

impl SmallIntegers {
    /// Values of a wider range are stored as they are.
    const RANGE: i64 = 1 << 16;

    fn encode(
        &mut self,
        column: &mut Column,
        values: impl Iterator<Item = i32> + Clone,
        stored: Stored,
    ) {
        const ABSENT: u32 = 0;
        const PRESENT: u32 = 1;
        let (min, max) = values
            .clone()
            .fold((i32::MAX, i32::MIN), |(min, max), value| {
                (min.min(value), max.max(value))
            });
        // Unsigned values that look negative here are not in order, so the column gets no bounds.
        let ordered = min <= max && (stored == Stored::Signed || min >= 0);
        let bounds = ordered.then(|| stored.bounds(min, max));
        let range = i64::from(max) - i64::from(min) + 1;
        if range > Self::RANGE {
            if stored == Stored::Wide {
                let values: Vec<i64> = values.map(|value| i64::from(value as u32)).collect();
                column.delta(&values, bounds);
            } else {
                let values: Vec<i32> = values.collect();
                column.plain_i32(&values, bounds);
            }
            return;
        }
        // One pass marks the values that occur, and the loop below numbers them by size. So the
        // dictionary is sorted without sorting the rows.
        self.table.clear();
        self.table.resize(range.max(0) as usize, ABSENT);
        values
            .clone()
            .for_each(|value| self.table[value.wrapping_sub(min) as usize] = PRESENT);
        self.plain.clear();
        let mut distinct = 0;
        for (offset, slot) in self.table.iter_mut().enumerate() {
            if *slot == PRESENT {
                stored.plain(min + offset as i32, &mut self.plain);
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
        column.dictionary(dictionary, &self.codes, bounds);
    }
}
