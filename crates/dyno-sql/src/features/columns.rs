//! The columns of a training set, and how they follow from a spot.

use std::f64::consts::TAU;
use std::sync::Arc;

use anyhow::{Context, Result};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Int8Array, Int32Array, PrimitiveArray, StringViewArray,
    TimestampMillisecondArray,
};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, Int8Type, Int32Type, Schema, SchemaRef, TimeUnit,
    TimestampMillisecondType, UInt64Type,
};
use datafusion::arrow::record_batch::RecordBatch;
use dyno_ingest::position::{Path, Position};
use serde::Serialize;

use super::solar::{DailyIndices, INDICES};

const DAY_MS: i64 = 86_400_000;
/// Mean length of a year of the calendar. With it the season of a date differs by less than a day
/// from year to year, and does not jump on 31 December of a leap year.
const YEAR_DAYS: f64 = 365.2425;

/// Columns that are computed from time and grids, in order.
const COMPUTED: [&str; 10] = [
    "time_of_day_sin",
    "time_of_day_cos",
    "time_of_year_sin",
    "time_of_year_cos",
    "sender_latitude_deg",
    "sender_longitude_deg",
    "receiver_latitude_deg",
    "receiver_longitude_deg",
    PATH_COLUMNS[0],
    PATH_COLUMNS[1],
];

/// Those of [`COMPUTED`] that follow from both grids.
pub(super) const PATH_COLUMNS: [&str; 2] = ["distance_km", "azimuth_deg"];

/// Spots that have no place in a training set.
#[derive(Debug, Default, Serialize)]
pub struct LeftOut {
    /// How many there are.
    pub rows: u64,
    /// The first of them.
    pub first: Option<BadGrid>,
}

/// A text in the place of a grid.
#[derive(Debug, Serialize)]
pub struct BadGrid {
    /// The spot that has it.
    pub id: u64,
    /// `sender` or `receiver`.
    pub station: &'static str,
    /// The text; empty if the spot has none.
    pub grid: String,
}

/// Turns spots into rows of a training set.
pub(super) struct Training {
    schema: SchemaRef,
    indices: Option<DailyIndices>,
}

/// What became of spots.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) spots: u64,
    pub(super) rows: u64,
    pub(super) rows_without_indices: u64,
    pub(super) left_out: LeftOut,
}

/// The columns of one batch of spots.
struct Spots<'a> {
    id: &'a PrimitiveArray<UInt64Type>,
    time_ms: &'a TimestampMillisecondArray,
    grid: &'a StringViewArray,
    reporter_grid: &'a StringViewArray,
    band: &'a Int32Array,
    power: &'a Int8Array,
    snr: &'a Int8Array,
}

/// The rows of one batch, by column.
#[derive(Default)]
struct Rows {
    time_ms: Vec<i64>,
    computed: [Vec<f32>; COMPUTED.len()],
    band: Vec<i32>,
    power: Vec<i8>,
    indices: [Vec<Option<f32>>; INDICES.len()],
    snr: Vec<i8>,
}

impl Training {
    /// With `indices` a row has the columns of the solar indices, too.
    pub(super) fn new(indices: Option<DailyIndices>) -> Training {
        Training {
            schema: schema(indices.is_some()),
            indices,
        }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows of a batch of spots, in its order. What became of the spots is added to `counts`.
    ///
    /// # Errors
    /// A column is missing or has another type than a table of spots has.
    pub(super) fn convert(&self, batch: &RecordBatch, counts: &mut Counts) -> Result<RecordBatch> {
        let spots = Spots::from_batch(batch)?;
        let mut rows = Rows::default();
        // Spots are sorted by their time, and thousands share a period of two minutes.
        let mut angles_at = None;
        for at in 0..batch.num_rows() {
            let (sender, receiver) = (spots.grid.value(at), spots.reporter_grid.value(at));
            let ends = (Position::from_grid(sender), Position::from_grid(receiver));
            let (Some(from), Some(to)) = ends else {
                let (station, grid) = match ends.0 {
                    None => ("sender", sender),
                    Some(_) => ("receiver", receiver),
                };
                counts.left_out.count(spots.id.value(at), station, grid);
                continue;
            };
            let time_ms = spots.time_ms.value(at);
            rows.time_ms.push(time_ms);
            let angles = match angles_at {
                Some((of_ms, angles)) if of_ms == time_ms => angles,
                _ => angles_of(time_ms),
            };
            angles_at = Some((time_ms, angles));
            let computed = angles.into_iter().chain(geometry_of(&from, &to));
            for (column, value) in rows.computed.iter_mut().zip(computed) {
                column.push(value);
            }
            rows.band.push(spots.band.value(at));
            rows.power.push(spots.power.value(at));
            rows.snr.push(spots.snr.value(at));
            if let Some(indices) = &self.indices {
                let of_day = indices.of_day(time_ms.div_euclid(DAY_MS));
                counts.rows_without_indices += u64::from(of_day.iter().all(Option::is_none));
                for (column, value) in rows.indices.iter_mut().zip(of_day) {
                    column.push(value);
                }
            }
        }
        counts.spots += batch.num_rows() as u64;
        counts.rows += rows.snr.len() as u64;
        rows.into_batch(&self.schema)
    }
}

impl Counts {
    /// Adds what was counted of the spots that follow.
    pub(super) fn add(&mut self, later: Counts) {
        self.spots += later.spots;
        self.rows += later.rows;
        self.rows_without_indices += later.rows_without_indices;
        self.left_out.rows += later.left_out.rows;
        if self.left_out.first.is_none() {
            self.left_out.first = later.left_out.first;
        }
    }
}

impl LeftOut {
    fn count(&mut self, id: u64, station: &'static str, grid: &str) {
        self.rows += 1;
        if self.first.is_none() {
            let grid = grid.to_owned();
            self.first = Some(BadGrid { id, station, grid });
        }
    }
}

impl<'a> Spots<'a> {
    fn from_batch(batch: &'a RecordBatch) -> Result<Spots<'a>> {
        Ok(Spots {
            id: numbers(batch, "id")?,
            time_ms: numbers::<TimestampMillisecondType>(batch, "timestamp")?,
            grid: texts(batch, "grid")?,
            reporter_grid: texts(batch, "reporter_grid")?,
            band: numbers::<Int32Type>(batch, "band")?,
            power: numbers::<Int8Type>(batch, "power")?,
            snr: numbers::<Int8Type>(batch, "snr")?,
        })
    }
}

impl Rows {
    fn into_batch(self, schema: &SchemaRef) -> Result<RecordBatch> {
        let times = TimestampMillisecondArray::from(self.time_ms).with_timezone("UTC");
        let mut columns: Vec<ArrayRef> = vec![Arc::new(times)];
        for values in self.computed {
            columns.push(Arc::new(Float32Array::from(values)));
        }
        columns.push(Arc::new(Int32Array::from(self.band)));
        columns.push(Arc::new(Int8Array::from(self.power)));
        // A schema without indices ends with the target right behind the power.
        if schema.fields().len() > columns.len() + 1 {
            for values in self.indices {
                columns.push(Arc::new(Float32Array::from(values)));
            }
        }
        columns.push(Arc::new(Int8Array::from(self.snr)));
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }
}

/// The time comes first, so that a set can be split by it, and what is to be predicted last.
fn schema(with_indices: bool) -> SchemaRef {
    let moment = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    let mut fields = vec![Field::new("timestamp", moment, false)];
    fields.extend(COMPUTED.map(|name| Field::new(name, DataType::Float32, false)));
    fields.push(Field::new("band", DataType::Int32, false));
    fields.push(Field::new("power_dbm", DataType::Int8, false));
    if with_indices {
        fields.extend(INDICES.map(|(name, _)| Field::new(name, DataType::Float32, true)));
    }
    fields.push(Field::new("snr_db", DataType::Int8, false));
    Arc::new(Schema::new(fields))
}

/// The first four values of [`COMPUTED`].
fn angles_of(time_ms: i64) -> [f32; 4] {
    let days = time_ms as f64 / DAY_MS as f64;
    let (day_sin, day_cos) = (days.rem_euclid(1.0) * TAU).sin_cos();
    let (year_sin, year_cos) = (days.rem_euclid(YEAR_DAYS) / YEAR_DAYS * TAU).sin_cos();
    [day_sin, day_cos, year_sin, year_cos].map(|value| value as f32)
}

/// The other values of [`COMPUTED`]. The azimuth is the sender's, from north over east.
fn geometry_of(from: &Position, to: &Position) -> [f32; 6] {
    // Two stations in one cell have the same position. There is no path between them, and rounding
    // would give it some direction.
    let path = if from == to {
        Path {
            distance_km: 0.0,
            azimuth_deg: 0.0,
        }
    } else {
        from.path_to(to)
    };
    // The closest single to 359.999999 is a whole turn.
    let azimuth_deg = match path.azimuth_deg as f32 {
        turned if turned >= 360.0 => 0.0,
        degrees => degrees,
    };
    [
        from.latitude_deg() as f32,
        from.longitude_deg() as f32,
        to.latitude_deg() as f32,
        to.longitude_deg() as f32,
        path.distance_km as f32,
        azimuth_deg,
    ]
}

fn numbers<'a, T: ArrowPrimitiveType>(
    batch: &'a RecordBatch,
    name: &str,
) -> Result<&'a PrimitiveArray<T>> {
    let column = column(batch, name)?;
    column
        .as_primitive_opt::<T>()
        .with_context(|| wrong(name, column))
}

fn texts<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a StringViewArray> {
    let column = column(batch, name)?;
    column
        .as_string_view_opt()
        .with_context(|| wrong(name, column))
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef> {
    let found = batch.column_by_name(name);
    found.with_context(|| format!("the table of spots has no column {name}"))
}

fn wrong(name: &str, column: &ArrayRef) -> String {
    let kind = column.data_type();
    format!("column {name} of the spots is {kind}, which is not what a table of spots has")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_turns_once_a_day_and_once_a_year() {
        let quarter = |time_ms: i64, first: usize| {
            let values = angles_of(time_ms);
            [values[first], values[first + 1]].map(|value| (value * 1_000.0).round() as i32)
        };
        // 2024-02-29 at 0:00, 6:00, 12:00 and 18:00 UTC.
        let midnight = 1_709_164_800_000;
        assert_eq!(quarter(midnight, 0), [0, 1_000]);
        assert_eq!(quarter(midnight + DAY_MS / 4, 0), [1_000, 0]);
        assert_eq!(quarter(midnight + DAY_MS / 2, 0), [0, -1_000]);
        assert_eq!(quarter(midnight - DAY_MS / 4, 0), [-1_000, 0]);
        // A quarter, a half and a whole year after the begin of 1970, and before it.
        let year_ms = YEAR_DAYS * DAY_MS as f64;
        let of_year = |share: f64| quarter((share * year_ms) as i64, 2);
        assert_eq!(of_year(0.0), [0, 1_000]);
        assert_eq!(of_year(0.25), [1_000, 0]);
        assert_eq!(of_year(54.5), [0, -1_000]);
        assert_eq!(of_year(-0.25), [-1_000, 0]);
    }

    #[test]
    fn a_path_within_a_cell_has_neither_length_nor_direction() {
        for grid in ["JN58", "FN31pr", "AA00", "RR99xx", "GF15vc"] {
            let here = Position::from_grid(grid).unwrap();
            assert_eq!(geometry_of(&here, &here)[4..], [0.0, 0.0], "{grid}");
        }
    }

    #[test]
    fn a_direction_just_left_of_north_is_not_a_whole_turn() {
        let from = Position::from_degrees(-80.0, 0.0);
        let to = Position::from_degrees(80.0, -1e-9);
        assert!(from.path_to(&to).azimuth_deg > 359.999_999);
        assert_eq!(geometry_of(&from, &to)[5], 0.0);
    }
}
