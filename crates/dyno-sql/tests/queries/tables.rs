//! Makes tables in the form of `dyno ingest load`, with the Parquet writer of arrow-rs.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, Int8Array, Int32Array, RecordBatch, StringArray, TimestampMillisecondArray,
    UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, Encoding};
use datafusion::parquet::file::properties::WriterProperties;
use dyno_ingest::table::{DataFile, SourceIdentity, Staged, TableWriter, WSPR};

/// The columns of a spot that tests vary; the others follow from these.
#[derive(Debug, Clone)]
pub struct Spot {
    pub id: u64,
    pub callsign: String,
    pub snr: i8,
    pub distance: u32,
    pub frequency: u64,
    pub power: i8,
}

/// How a file is written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Form {
    /// Picks compression and the encoding of integer columns.
    pub choice: usize,
    /// Rows of a data page, 0 for the writer's default.
    pub page_rows: usize,
    /// The time of the spot with the number 0, in milliseconds; 0 for an evening in 2023.
    pub start_ms: i64,
}

/// Opens a table to write to it. A program that another thread starts has this process's lock for
/// the moment between its fork and its exec, so a lock that is held is tried for again.
fn open(directory: &Path) -> TableWriter {
    for _ in 0..200 {
        if let Ok(writer) = TableWriter::open(directory) {
            return writer;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    TableWriter::open(directory).unwrap()
}

/// Commits a table in `directory`: a list of files, each a list of row groups.
pub fn write(directory: &Path, files: &[Vec<Vec<Spot>>], form: Form) {
    let mut writer = open(directory);
    for (index, row_groups) in files.iter().enumerate() {
        let archive = format!("wspr/{index}");
        let path = writer.staging_name("data", &archive, "parquet");
        write_file(&directory.join(&path), row_groups, form);
        let rows = row_groups.iter().map(|rows| rows.len() as u64).sum();
        let bytes = directory.join(&path).metadata().unwrap().len();
        let file = DataFile {
            path,
            rows,
            bytes,
            time_min_s: 0,
            time_max_s: 0,
        };
        writer.commit(staged(archive, vec![file], rows)).unwrap();
    }
    if files.is_empty() {
        writer
            .commit(staged("wspr/none".to_owned(), Vec::new(), 0))
            .unwrap();
    }
}

fn staged(archive: String, files: Vec<DataFile>, rows: u64) -> Staged {
    let source = SourceIdentity {
        path: archive.clone(),
        bytes: 0,
        hash: String::new(),
    };
    Staged {
        feed: WSPR.to_owned(),
        archive,
        source,
        files,
        rows,
        bad_rows: 0,
        quarantine: None,
    }
}

fn write_file(path: &Path, row_groups: &[Vec<Spot>], form: Form) {
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::LZ4_RAW,
        Compression::SNAPPY,
    ];
    let mut properties = WriterProperties::builder()
        .set_compression(codecs[form.choice % 3])
        .set_write_batch_size(32);
    if form.page_rows > 0 {
        properties = properties.set_data_page_row_count_limit(form.page_rows);
    }
    let coded = (form.choice / 3).is_multiple_of(2);
    let plain = [Encoding::PLAIN, Encoding::DELTA_BINARY_PACKED][form.choice / 6 % 2];
    for name in ["id", "snr", "distance", "frequency", "power"] {
        properties = properties
            .set_column_dictionary_enabled(name.into(), coded)
            .set_column_encoding(name.into(), plain);
    }
    let empty = batch(&[], form);
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, empty.schema(), Some(properties.build())).unwrap();
    for rows in row_groups {
        writer.write(&batch(rows, form)).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
}

/// A column with what `value` says of each spot.
fn each<A, T>(spots: &[Spot], value: impl Fn(&Spot) -> T) -> ArrayRef
where
    A: Array + FromIterator<Option<T>> + 'static,
{
    Arc::new(spots.iter().map(|spot| Some(value(spot))).collect::<A>())
}

fn batch(spots: &[Spot], form: Form) -> RecordBatch {
    let text = |value: &str| each::<StringArray, _>(spots, |_| value.to_owned());
    let start_ms = match form.start_ms {
        0 => 1_700_000_000_000,
        start_ms => start_ms,
    };
    let times = spots
        .iter()
        .map(|spot| Some(start_ms + spot.id as i64 % 1000 * 120_000));
    let times = times
        .collect::<TimestampMillisecondArray>()
        .with_timezone("UTC");
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", each::<UInt64Array, _>(spots, |s| s.id)),
        ("timestamp", Arc::new(times)),
        (
            "reporter",
            each::<StringArray, _>(spots, |s| format!("DK{}UG", s.id % 37)),
        ),
        (
            "reporter_grid",
            each::<StringArray, _>(spots, |s| format!("JN{:02}cm", s.id % 11)),
        ),
        ("snr", each::<Int8Array, _>(spots, |s| s.snr)),
        ("frequency", each::<UInt64Array, _>(spots, |s| s.frequency)),
        (
            "callsign",
            each::<StringArray, _>(spots, |s| s.callsign.clone()),
        ),
        ("grid", each::<StringArray, _>(spots, grid)),
        ("power", each::<Int8Array, _>(spots, |s| s.power)),
        (
            "drift",
            each::<Int8Array, _>(spots, |s| (s.id % 9) as i8 - 4),
        ),
        ("distance", each::<UInt32Array, _>(spots, |s| s.distance)),
        ("azimuth", each::<UInt16Array, _>(spots, |_| 300)),
        ("band", each::<Int32Array, _>(spots, band)),
        ("mode", text("WSPR")),
        ("version", text("2.6.1")),
        ("code", each::<UInt8Array, _>(spots, |_| 0)),
        ("column_count", each::<UInt8Array, _>(spots, |_| 15)),
    ];
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), false))
        .collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

/// Some spots have no grid, some four characters of it.
fn grid(spot: &Spot) -> String {
    match spot.id % 5 {
        0 => String::new(),
        1 => format!("IO{:02}", spot.id % 70),
        _ => format!("FN{:02}xy", spot.id % 70),
    }
}

fn band(spot: &Spot) -> i32 {
    if spot.id.is_multiple_of(2) { 107 } else { 106 }
}

/// A spot with little in it.
pub fn spot(id: u64, callsign: &str, snr: i8) -> Spot {
    Spot {
        id,
        callsign: callsign.to_owned(),
        snr,
        distance: 100 * id as u32,
        frequency: 14_097_037,
        power: 23,
    }
}
