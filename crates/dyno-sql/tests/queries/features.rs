//! `dyno-sql features` as people run it, read back by programs that we did not write.

use std::fs::{self, File};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::installed::installed;
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{Float32Type, Int8Type, Int32Type, TimestampMillisecondType};
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use dyno_ingest::generate::{Form, Generator};
use dyno_ingest::load::{Input, LoadReport, Options, Progress};
use dyno_ingest::table::{Catalog, TableWriter};
use dyno_ingest_feeds::named;
use serde_json::Value;

/// Lines as the archive has them, not in the order of time. Two have a grid that is not one.
const LINES: &str = "\
3,1700000240,DK6UG,JN58td,-12,14.097037,W1AW,FN31pr,37,0,6336,53,14,2.6.1,0
1,1700000120,ZL2X,RE78ir,-28,7.040112,CX2AAA,GF15vc,23,-1,10079,216,7,2.6.1,0
9,1700000240,DK6UG,JN58td,3,14.097101,DL1AA,JN58td,20,0,0,0,14,2.6.1,0
5,1700000120,DK6UG,JN58td,-1,14.097101,G8JNJ,,20,0,0,0,14,2.6.1,0
4,1700000360,DK6UG,RR99zz,-2,14.097101,G8JNJ,IO91,20,0,0,0,14,2.6.1,0
2,1700000000,K3X,FM18lw,-20,10.140211,DK6UG,JN58,30,0,6757,297,10,2.6.1,0
";

/// The line of GFZ's table for the day of the spots above.
const INDICES: &str = "# PURPOSE: This file distributes the geomagnetic planetary three-hour index Kp\n\
2023 11 14 33555 33555.5 2595 8  2.667  2.000  2.000  0.667  0.333  0.000  0.333  0.667   12    7    7    3    2    0    2    3     4  63    120.1    117.4 0\n";

fn dyno_sql(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dyno-sql"))
        .args(args)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Makes `out` of `table` and returns what the command printed with `--json`.
fn make(table: &Path, out: &Path, more: &[&str]) -> Value {
    let mut args = vec!["features", text(table), "--out", text(out), "--json"];
    args.extend(more);
    let output = dyno_sql(&args);
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn loaded(report: &LoadReport) {
    assert_eq!(report.failures().count(), 0);
}

fn load_spots(table: &Path, files: Vec<PathBuf>) {
    let inputs = files.into_iter().map(Input::File).collect();
    let options = Options {
        workers: 2,
        max_bad: 1.0,
        ..Options::default()
    };
    let report = dyno_ingest::load::load(inputs, table, &options, &Progress::default()).unwrap();
    loaded(&report);
}

/// A table of the lines above, in two archives.
fn six_spots(folder: &Path) -> PathBuf {
    let table = folder.join("spots");
    let lines: Vec<&str> = LINES.split_inclusive('\n').collect();
    let mut files = Vec::new();
    for (name, lines) in [("late", &lines[..3]), ("early", &lines[3..])] {
        let path = folder.join(format!("{name}.csv"));
        fs::write(&path, lines.concat()).unwrap();
        files.push(path);
    }
    load_spots(&table, files);
    table
}

/// A table of generated spots of two months, some of whose rows have oddities.
fn many_spots(folder: &Path, rows: u64) -> PathBuf {
    let archives = folder.join("archives");
    let generator = Generator {
        rows,
        months: 2,
        quirks: 0.02,
        form: Form::Plain,
        ..Generator::default()
    };
    let go_on = |_: u64| ControlFlow::Continue(());
    generator.write(&archives, 2, &go_on).unwrap();
    let table = folder.join("spots");
    load_spots(&table, csv_files(&archives));
    table
}

fn csv_files(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|end| end == "csv"))
        .collect()
}

/// The set in a Parquet file, by arrow-rs.
fn read_parquet(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = reader.schema().clone();
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    concat_batches(&schema, &batches).unwrap()
}

fn read_stream(bytes: &[u8]) -> RecordBatch {
    let reader = StreamReader::try_new(bytes, None).unwrap();
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    concat_batches(&schema, &batches).unwrap()
}

fn floats(batch: &RecordBatch, name: &str) -> Vec<Option<f32>> {
    let column = batch.column_by_name(name).unwrap();
    column.as_primitive::<Float32Type>().iter().collect()
}

const COLUMNS: [&str; 14] = [
    "timestamp",
    "time_of_day_sin",
    "time_of_day_cos",
    "time_of_year_sin",
    "time_of_year_cos",
    "sender_latitude_deg",
    "sender_longitude_deg",
    "receiver_latitude_deg",
    "receiver_longitude_deg",
    "distance_km",
    "azimuth_deg",
    "band",
    "power_dbm",
    "snr_db",
];

/// What a separate program computed for the grids of the four good lines, with vectors in space,
/// and for 22:13:20, 22:15:20 and twice 22:17:20.
const COMPUTED: [(&str, [f32; 4]); 8] = [
    (
        "sender_latitude_deg",
        [48.5, -34.895_832, 41.729_168, 48.145_832],
    ),
    (
        "sender_longitude_deg",
        [11.0, -56.208_332, -72.708_336, 11.625],
    ),
    (
        "receiver_latitude_deg",
        [38.9375, -41.270_832, 48.145_832, 48.145_832],
    ),
    (
        "receiver_longitude_deg",
        [-77.041_664, 174.708_33, 11.625, 11.625],
    ),
    ("distance_km", [6_757.359, 10_079.452, 6_335.781, 0.0]),
    ("azimuth_deg", [297.025_56, 215.693_67, 52.362_4, 0.0]),
    (
        "time_of_day_sin",
        [-0.448_799, -0.440_984, -0.433_135, -0.433_135],
    ),
    (
        "time_of_day_cos",
        [0.893_633, 0.897_515, 0.901_329, 0.901_329],
    ),
];

#[test]
fn spots_stand_in_the_order_of_time_with_their_paths() {
    let folder = tempfile::tempdir().unwrap();
    let table = six_spots(folder.path());
    let out = folder.path().join("set.parquet");
    make(&table, &out, &[]);
    let set = read_parquet(&out);
    let schema = set.schema();
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(names, COLUMNS);
    let times = set["timestamp"].as_primitive::<TimestampMillisecondType>();
    let seconds = times.values().iter().map(|ms| ms / 1_000 - 1_700_000_000);
    assert_eq!(seconds.collect::<Vec<i64>>(), [0, 120, 240, 240]);
    let snr = set["snr_db"].as_primitive::<Int8Type>();
    assert_eq!(snr.values(), &[-20, -28, -12, 3]);
    let power = set["power_dbm"].as_primitive::<Int8Type>();
    assert_eq!(power.values(), &[30, 23, 37, 20]);
    let band = set["band"].as_primitive::<Int32Type>();
    assert_eq!(band.values(), &[106, 105, 107, 107]);
    for (name, expected) in COMPUTED {
        for (found, expected) in floats(&set, name).into_iter().zip(expected) {
            let found = found.unwrap();
            let within = expected.abs() * 1e-6 + 1e-6;
            assert!(
                (found - expected).abs() <= within,
                "{name}: {found}, not {expected}"
            );
        }
    }
}

#[test]
fn what_was_made_is_counted_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let table = six_spots(folder.path());
    let out = folder.path().join("set.parquet");
    let made = make(&table, &out, &[]);
    assert_eq!((&made["spots"], &made["rows"]), (&6.into(), &4.into()));
    let expected = serde_json::json!({
        "rows": 2,
        "first": { "id": 5, "station": "sender", "grid": "" },
    });
    assert_eq!(made["left_out"], expected);
    assert_eq!(made["bytes"], out.metadata().unwrap().len());
}

#[test]
fn what_was_left_out_is_said_with_its_first_spot() {
    let folder = tempfile::tempdir().unwrap();
    let table = six_spots(folder.path());
    let out = folder.path().join("set.parquet");
    let output = dyno_sql(&["features", text(&table), "--out", text(&out)]);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let expected = format!("4 rows in the order of time in {}", out.display());
    assert!(stdout.starts_with(&expected), "{stdout}");
    let expected = "\n2 spots left out, because a grid is missing or is not a grid; the first is spot \
                    5, whose sender's grid is missing\n";
    assert!(stdout.ends_with(expected), "{stdout}");
}

#[test]
fn a_stream_on_standard_output_has_the_rows_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let table = many_spots(folder.path(), 30_000);
    let out = folder.path().join("set.parquet");
    make(&table, &out, &[]);
    let output = dyno_sql(&["features", text(&table), "--format", "arrow", "--out", "-"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains(" rows in the order of time in standard output"));
    let (file, stream) = (read_parquet(&out), read_stream(&output.stdout));
    assert!(file.num_rows() > 29_000, "{}", file.num_rows());
    assert!(file == stream, "the two forms have other rows");
}

#[test]
fn a_table_with_iceberg_metadata_makes_the_same_set() {
    let folder = tempfile::tempdir().unwrap();
    let plain = many_spots(folder.path(), 20_000);
    let with_metadata = folder.path().join("with-metadata");
    let mut writer = TableWriter::open(&with_metadata).unwrap();
    writer.set_catalog(Catalog::Iceberg).unwrap();
    drop(writer);
    load_spots(&with_metadata, csv_files(&folder.path().join("archives")));
    assert!(with_metadata.join("metadata/version-hint.text").exists());
    let sets = [plain, with_metadata].map(|table| {
        let out = table.with_extension("parquet");
        make(&table, &out, &[]);
        read_parquet(&out)
    });
    assert!(sets[0].num_rows() > 19_000, "{}", sets[0].num_rows());
    assert!(sets[0] == sets[1], "the two tables make other sets");
}

#[test]
fn the_indices_of_a_spots_day_stand_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let table = six_spots(folder.path());
    let late = folder.path().join("next-day.csv");
    let spot = "7,1700010000,DK6UG,JN58td,-9,14.097037,W1AW,FN31pr,37,0,6336,53,14,2.6.1,0\n";
    fs::write(&late, spot).unwrap();
    load_spots(&table, vec![late]);
    let indices = folder.path().join("gfz.txt");
    fs::write(&indices, INDICES).unwrap();
    let solar = folder.path().join("solar");
    let options = Options::default();
    let feed = named("solar").unwrap();
    let progress = Progress::default();
    let inputs = vec![Input::File(indices)];
    loaded(&dyno_ingest_feeds::load(feed, inputs, &solar, &options, &progress).unwrap());
    let out = folder.path().join("set.parquet");
    let made = make(&table, &out, &["--solar", text(&solar)]);
    assert_eq!(
        (&made["rows"], &made["rows_without_indices"]),
        (&5.into(), &1.into())
    );
    let set = read_parquet(&out);
    let kp_mean = (2.667 + 2.0 + 2.0 + 0.667 + 0.333 + 0.0 + 0.333 + 0.667) / 8.0;
    for (name, value) in [
        ("solar_flux_sfu", 120.1),
        ("sunspots", 63.0),
        ("kp", kp_mean),
        ("ap", 4.0),
    ] {
        let found = floats(&set, name);
        for of_day in &found[..4] {
            let of_day = of_day.unwrap();
            assert!((of_day - value).abs() < 1e-4, "{name}: {of_day}");
        }
        assert_eq!(found[4], None, "{name}");
    }
    // The target stays the last column.
    assert_eq!(set.schema_ref().fields().last().unwrap().name(), "snr_db");
}

#[test]
fn a_table_without_indices_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let table = six_spots(folder.path());
    let out = folder.path().join("set.parquet");
    let args = [
        "features",
        text(&table),
        "--out",
        text(&out),
        "--solar",
        text(&table),
    ];
    let output = dyno_sql(&args);
    assert_eq!(output.status.code(), Some(2));
    let stderr = said(&output);
    assert!(
        stderr.contains("cannot read the solar indices of "),
        "{stderr}"
    );
    assert!(
        stderr.contains("there is no table solar; there are: spots"),
        "{stderr}"
    );
    assert!(!out.exists());
}

#[test]
fn an_empty_table_makes_an_empty_set() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.csv");
    fs::write(&empty, "\n").unwrap();
    let table = folder.path().join("spots");
    load_spots(&table, vec![empty]);
    let out = folder.path().join("set.parquet");
    let made = make(&table, &out, &[]);
    assert_eq!((&made["rows"], &made["spots"]), (&0.into(), &0.into()));
    assert_eq!(read_parquet(&out).num_rows(), 0);
    assert_eq!(read_parquet(&out).num_columns(), 14);
}

/// A set that cannot be completed leaves the earlier one in place, and nothing beside it.
#[test]
fn a_set_that_fails_does_not_get_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let table = many_spots(folder.path(), 20_000);
    let out = folder.path().join("sets").join("set.parquet");
    fs::create_dir(out.parent().unwrap()).unwrap();
    fs::write(&out, "an earlier set").unwrap();
    let data = fs::read_dir(table.join("data")).unwrap();
    let file = data.map(|entry| entry.unwrap().path()).max().unwrap();
    // The pages are damaged, the footer is not, so the fault shows in the middle of the work.
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[8..middle].fill(0xff);
    fs::write(&file, bytes).unwrap();
    let output = dyno_sql(&["features", text(&table), "--out", text(&out)]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert_eq!(fs::read_to_string(&out).unwrap(), "an earlier set");
    let left = fs::read_dir(out.parent().unwrap()).unwrap().count();
    assert_eq!(left, 1, "a part of the new set is left");

    let nowhere = folder.path().join("nowhere/set.parquet");
    let output = dyno_sql(&["features", text(&table), "--out", text(&nowhere)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains(text(&nowhere)), "{}", said(&output));
}

/// As a program that has seen enough leaves a pipe.
#[test]
fn a_stream_may_be_left_before_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let table = many_spots(folder.path(), 60_000);
    let mut child = Command::new(env!("CARGO_BIN_EXE_dyno-sql"))
        .args(["features", text(&table), "--format", "arrow", "--out", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut start = [0; 1_000];
    let mut stream = child.stdout.take().unwrap();
    stream.read_exact(&mut start).unwrap();
    drop(stream);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output), "");
}

/// pyarrow reads the set and the table's own files, and computes every column of every row anew,
/// one row at a time and with vectors instead of formulas of the sphere. DuckDB counts the rows.
#[test]
fn other_programs_compute_the_same_set() {
    let Some(python) = installed("arrow-readers/venv/bin/python") else {
        println!("skipped: a training set in Python: no pyarrow and DuckDB; scripts/test has them");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let table = many_spots(folder.path(), 20_000);
    let set = folder.path().join("set.parquet");
    let made = make(&table, &set, &[]);
    assert!(made["left_out"]["rows"].as_u64() > Some(0), "{made}");
    let stream = folder.path().join("set.arrow");
    make(&table, &stream, &["--format", "arrow"]);
    for set in [&set, &stream] {
        let output = Command::new(&python)
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/queries/features_again.py"
            ))
            .args([&table, set])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let stdout = String::from_utf8(output.stdout).unwrap();
        let expected = format!(
            "{} rows are the same, {} spots have no place\n",
            made["rows"], made["left_out"]["rows"]
        );
        assert_eq!(stdout, expected);
    }
}

/// Peak memory of the command in MiB, as the kernel counted it for a child of Python.
fn peak_mib(args: &[&str]) -> u64 {
    let script = "import resource, subprocess, sys\n\
                  subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n\
                  print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)";
    let output = Command::new("python3")
        .args(["-c", script, env!("CARGO_BIN_EXE_dyno-sql")])
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn a_memory_that_is_too_small_is_said_in_words_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let table = many_spots(folder.path(), 100_000);
    let out = folder.path().join("set.parquet");
    let mut args = vec!["features", text(&table), "--out", text(&out)];
    args.extend(["--memory", "64KiB", "--threads", "2"]);
    let output = dyno_sql(&args);
    assert_eq!(output.status.code(), Some(2));
    let expected = "dyno-sql: a memory of 65536 bytes is too small to sort the spots with 2 threads; \
                    raise --memory, or lower --threads\n";
    assert_eq!(said(&output), expected);
    assert!(!out.exists());
}

/// The sort spills beyond its memory, and the set does not depend on it. Three million spots take
/// some 170 MB to sort, so the bound below is one that a sort in memory does not keep.
#[test]
fn memory_is_bounded_and_does_not_change_the_set() {
    let folder = tempfile::tempdir().unwrap();
    let table = many_spots(folder.path(), 3_000_000);
    let (wide, narrow) = (folder.path().join("wide"), folder.path().join("narrow"));
    let peak = |memory: &str, out: &Path| {
        let format = ["--format", "arrow", "--threads", "2", "--memory", memory];
        let mut args = vec!["features", text(&table), "--out", text(out)];
        args.extend(format);
        peak_mib(&args)
    };
    let (all, some) = (peak("1GiB", &wide), peak("64MiB", &narrow));
    assert!(
        some + 80 < all,
        "{some} MiB with --memory 64MiB, {all} MiB with 1GiB"
    );
    let (wide, narrow) = (fs::read(wide).unwrap(), fs::read(narrow).unwrap());
    assert!(
        read_stream(&wide) == read_stream(&narrow),
        "the sets differ"
    );
}
