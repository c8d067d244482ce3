//! Spots in Parquet files read and written by arrow-rs.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Int8Array, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Field, Int8Type, Int32Type, Schema, TimeUnit, TimestampMillisecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use dyno_ingest::contract::COLUMNS;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;

use crate::oracle::Row;

/// The rows of one of the table's files, in their order.
pub fn read(path: &Path) -> Vec<Row> {
    let file = File::open(path).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let names: Vec<String> = reader
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    assert_eq!(names, COLUMNS);
    // The columns of an Iceberg table are numbered, and have wider types for the same values.
    let is_numbered = !reader.schema().field(0).metadata().is_empty();
    let own = own_schema();
    if !is_numbered {
        let found = reader
            .schema()
            .fields()
            .iter()
            .map(|field| field.data_type());
        assert!(found.eq(own.fields().iter().map(|field| field.data_type())));
    }
    let mut rows = Vec::new();
    for batch in reader.build().unwrap() {
        let batch = batch.unwrap();
        let columns = batch.columns().iter().zip(own.fields());
        // A value that does not fit is an error here and not a NULL.
        let options = CastOptions {
            safe: false,
            ..CastOptions::default()
        };
        let columns = columns
            .map(|(column, field)| cast_with_options(column, field.data_type(), &options).unwrap());
        let batch = RecordBatch::try_new(Arc::clone(&own), columns.collect());
        append(&mut rows, &batch.unwrap());
    }
    rows
}

/// The columns of a table's files.
fn own_schema() -> Arc<Schema> {
    let kind = |name: &str| match name {
        "id" | "frequency" => DataType::UInt64,
        "timestamp" => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
        "snr" | "power" | "drift" => DataType::Int8,
        "distance" => DataType::UInt32,
        "azimuth" => DataType::UInt16,
        "band" => DataType::Int32,
        "code" | "column_count" => DataType::UInt8,
        _ => DataType::Utf8,
    };
    let field = |name: &str| Field::new(name, kind(name), false);
    Arc::new(Schema::new(COLUMNS.map(field).to_vec()))
}

fn append(rows: &mut Vec<Row>, batch: &RecordBatch) {
    let column = |i: usize| batch.column(i);
    let text = |i: usize, row: usize| column(i).as_string::<i32>().value(row).to_owned();
    let i8_at = |i: usize, row: usize| column(i).as_primitive::<Int8Type>().value(row);
    let u8_at = |i: usize, row: usize| column(i).as_primitive::<UInt8Type>().value(row);
    let u64_at = |i: usize, row: usize| column(i).as_primitive::<UInt64Type>().value(row);
    let times = column(1).as_primitive::<TimestampMillisecondType>();
    for row in 0..batch.num_rows() {
        assert_eq!(times.value(row) % 1000, 0);
        rows.push(Row {
            id: u64_at(0, row),
            timestamp: u32::try_from(times.value(row) / 1000).unwrap(),
            reporter: text(2, row),
            reporter_grid: text(3, row),
            snr: i8_at(4, row),
            frequency: u64_at(5, row),
            callsign: text(6, row),
            grid: text(7, row),
            power: i8_at(8, row),
            drift: i8_at(9, row),
            distance: column(10).as_primitive::<UInt32Type>().value(row),
            azimuth: column(11).as_primitive::<UInt16Type>().value(row),
            band: column(12).as_primitive::<Int32Type>().value(row),
            mode: text(13, row),
            version: text(14, row),
            code: u8_at(15, row),
            column_count: u8_at(16, row),
        });
    }
}

/// A column on its way into a file.
pub type Named = (&'static str, ArrayRef);

/// The rows as columns with another order and other units than the table has, and without those
/// columns that follow from the rest.
pub fn columns(rows: &[Row]) -> Vec<Named> {
    fn all<T>(rows: &[Row], value: impl Fn(&Row) -> T) -> impl Iterator<Item = T> {
        rows.iter().map(value)
    }
    let text = |value: fn(&Row) -> &String| {
        Arc::new(StringArray::from_iter_values(rows.iter().map(value))) as ArrayRef
    };
    let micros = all(rows, |row| i64::from(row.timestamp) * 1_000_000);
    let distance = UInt32Array::from_iter_values(all(rows, |row| row.distance));
    let azimuth = UInt16Array::from_iter_values(all(rows, |row| row.azimuth));
    let frequency = UInt64Array::from_iter_values(all(rows, |row| row.frequency));
    let id = UInt64Array::from_iter_values(all(rows, |row| row.id));
    let snr = Int32Array::from_iter_values(all(rows, |row| i32::from(row.snr)));
    let power = Int8Array::from_iter_values(all(rows, |row| row.power));
    let drift = Int8Array::from_iter_values(all(rows, |row| row.drift));
    let code = UInt8Array::from_iter_values(all(rows, |row| row.code));
    vec![
        ("version", text(|row| &row.version)),
        (
            "timestamp",
            Arc::new(TimestampMicrosecondArray::from_iter_values(micros)),
        ),
        ("id", Arc::new(id)),
        ("reporter", text(|row| &row.reporter)),
        ("reporter_grid", text(|row| &row.reporter_grid)),
        ("callsign", text(|row| &row.callsign)),
        ("grid", text(|row| &row.grid)),
        ("frequency", Arc::new(frequency)),
        ("snr", Arc::new(snr)),
        ("power", Arc::new(power)),
        ("drift", Arc::new(drift)),
        ("distance", Arc::new(distance)),
        ("azimuth", Arc::new(azimuth)),
        ("code", Arc::new(code)),
    ]
}

/// Replaces the column `name`.
pub fn with(mut columns: Vec<Named>, name: &str, array: ArrayRef) -> Vec<Named> {
    let at = columns.iter().position(|column| column.0 == name).unwrap();
    columns[at].1 = array;
    columns
}

/// Writes OPTIONAL columns in several row groups.
pub fn write(path: &Path, columns: Vec<Named>) {
    write_columns(path, columns, true);
}

/// Writes columns that may hold NULL, or that may not, in several row groups.
pub fn write_columns(path: &Path, columns: Vec<Named>, nullable: bool) {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), nullable))
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(schema.clone(), arrays).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(1000))
        .build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}
