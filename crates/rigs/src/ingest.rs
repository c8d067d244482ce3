//! The ingest engine's workloads: archives made, archives loaded.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use dyno_ingest::generate::{Form, Generator, Order};
use dyno_ingest::load::{self, Input, LoadReport, Options, Outcome, Progress};
use dyno_ingest::table::Snapshot;
use dyno_record::Answer;
use dyno_suite::protocol::Reply;

use crate::{Params, RigError, table_checksum, used};

/// Months that one generator run makes; its calendar has 600.
const MONTHS_TOGETHER: u64 = 500;

/// The table's directory, relative to the scratch directory.
pub(crate) const TABLE: &str = "spots";

/// `ingest-gen`: archives of `rows` rows in `months` months, or of `each` rows in each of them,
/// from `seed`, `gzip` or `plain`, in the `order` of `uploads` (the default) or `random`.
pub(crate) fn generate(params: &mut Params<'_>, scratch: &Path) -> Result<Reply, RigError> {
    let form = match params.text("form")? {
        "gzip" => Form::Gzip,
        "plain" => Form::Plain,
        other => return Err(params.wrong("form", format!("`{other}` is neither gzip nor plain"))),
    };
    let order = match params.text_or_none("order")? {
        None | Some("uploads") => Order::Uploads,
        Some("random") => Order::Random,
        Some(other) => {
            let reason = format!("`{other}` is neither uploads nor random");
            return Err(params.wrong("order", reason));
        }
    };
    let months = params.count("months")?;
    let each = params.count_or("each", 0)?;
    let rows = match each {
        0 => params.count("rows")?,
        each => each.saturating_mul(months),
    };
    let seed = params.count("seed")?;
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut made_rows, mut bytes, mut file_bytes) = (0, 0, 0);
    // The calendar of a generator is finite, so further months come from further seeds and get file
    // names of their own.
    for part in 0..months.div_ceil(MONTHS_TOGETHER).max(1) {
        let count = match each {
            0 => months,
            _ => MONTHS_TOGETHER.min(months - part * MONTHS_TOGETHER),
        };
        let generator = Generator {
            rows: if each == 0 { rows } else { each * count },
            months: u32::try_from(count).unwrap_or(u32::MAX),
            seed: seed.wrapping_add(part),
            form,
            order,
            ..Generator::default()
        };
        let folder = match part {
            0 => scratch.to_owned(),
            part => scratch.join(format!("part-{part}")),
        };
        let made = generator.write(&folder, workers, &|_| ControlFlow::Continue(()))?;
        made_rows += made.rows;
        bytes += made.bytes;
        file_bytes += made.file_bytes;
        if part > 0 {
            gather(&folder, scratch, part)?;
        }
        if each == 0 {
            break;
        }
    }
    Ok(generated(made_rows, bytes, file_bytes))
}

/// The reply about archives of `rows` rows, with `bytes` of text in files of `file_bytes`.
pub(crate) fn generated(rows: u64, bytes: u64, file_bytes: u64) -> Reply {
    Reply {
        answer: Some(Answer {
            count: rows,
            checksum: "-".to_string(),
        }),
        metrics: BTreeMap::from([
            ("bytes-per-row".to_string(), bytes as f64 / rows as f64),
            ("compression".to_string(), bytes as f64 / file_bytes as f64),
        ]),
        ..Reply::default()
    }
}

/// Moves the files of `folder` up into `to`, with the part's number before their names.
fn gather(folder: &Path, to: &Path, part: u64) -> Result<(), RigError> {
    for entry in fs::read_dir(folder).map_err(|e| RigError::io(folder, e))? {
        let path = entry.map_err(|e| RigError::io(folder, e))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let moved = to.join(format!("{part}-{name}"));
        fs::rename(&path, &moved).map_err(|e| RigError::io(&path, e))?;
    }
    fs::remove_dir(folder).map_err(|e| RigError::io(folder, e))
}

/// `ingest-parquet`: the archives' rows as Parquet files with the table's columns, one for each
/// month, which is what a table is made of.
pub(crate) fn parquet(params: &mut Params<'_>, scratch: &Path) -> Result<Reply, RigError> {
    let files = params.paths("files")?;
    let (report, _) = to_parquet(&files, params.count("workers")?, scratch)?;
    Ok(Reply {
        answer: Some(Answer {
            count: report.rows(),
            checksum: "-".to_string(),
        }),
        ..Reply::default()
    })
}

/// Writes the rows of `files` as Parquet files with the table's columns into `scratch`, and returns
/// the files.
pub(crate) fn to_parquet(
    files: &[PathBuf],
    workers: u64,
    scratch: &Path,
) -> Result<(LoadReport, Vec<PathBuf>), RigError> {
    let table = scratch.join(TABLE);
    let report = load_into(files, workers, &table)?;
    let mut made = Vec::new();
    let snapshot = Snapshot::open(&table)?;
    for (number, (path, _)) in snapshot.files().enumerate() {
        let name = scratch.join(format!("spots-{number:03}.parquet"));
        fs::rename(&path, &name).map_err(|e| RigError::io(&path, e))?;
        made.push(name);
    }
    drop(snapshot);
    fs::remove_dir_all(&table).map_err(|e| RigError::io(&table, e))?;
    Ok((report, made))
}

/// `ingest-load`: loads `files` with `workers` into a fresh table. The clock runs from opening the
/// table to its last commit; the checksum is computed afterwards, by a reader that is not ours, in
/// `dyno-sql`.
pub(crate) fn load(params: &mut Params<'_>, scratch: &Path) -> Result<Reply, RigError> {
    // The engine detects the format of a file; the parameter is for the peers, which must be told.
    params.text("source")?;
    let files = params.paths("files")?;
    let workers = params.count("workers")?;
    let inputs_bytes = total_bytes(&files)?;
    let table = scratch.join(TABLE);
    let cpu_before_s = used::cpu_s();
    let report = load_into(&files, workers, &table)?;
    let cpu_s = used::cpu_s() - cpu_before_s;
    let sum = table_checksum(&table)?;
    loaded(&report, &table, inputs_bytes, cpu_s, sum)
}

/// Bytes of all the files together.
pub(crate) fn total_bytes(files: &[PathBuf]) -> Result<u64, RigError> {
    let mut bytes = 0;
    for file in files {
        bytes += file.metadata().map_err(|e| RigError::io(file, e))?.len();
    }
    Ok(bytes)
}

/// The reply about a load of `inputs_bytes` into `table`, whose rows have the sum `sum`.
pub(crate) fn loaded(
    report: &LoadReport,
    table: &Path,
    inputs_bytes: u64,
    cpu_s: f64,
    sum: Answer,
) -> Result<Reply, RigError> {
    let table_bytes = Snapshot::open(table)?.manifest().bytes();
    let rows = report.rows() as f64;
    let (stage, stage_s) = report.stages().longest();
    let per_second = |amount: f64| amount / report.seconds;
    let mut metrics = BTreeMap::from([
        ("throughput".to_string(), per_second(rows)),
        ("time".to_string(), report.seconds),
        ("cpu".to_string(), cpu_s),
        ("io-rate".to_string(), per_second(inputs_bytes as f64)),
        ("table-bytes".to_string(), table_bytes as f64),
        (
            "effective-write".to_string(),
            per_second(table_bytes as f64),
        ),
    ]);
    metrics.extend(stage_metrics(report));
    Ok(Reply {
        answer: Some(sum),
        metrics,
        facts: BTreeMap::from([
            ("bottleneck".to_string(), stage.to_string()),
            ("detail".to_string(), detail(report, stage_s)),
        ]),
        ..Reply::default()
    })
}

/// Seconds of work of each stage over all threads, as a report draws them.
fn stage_metrics(report: &LoadReport) -> impl Iterator<Item = (String, f64)> {
    let stages = report.stages().each().into_iter();
    stages.map(|(stage, seconds)| (format!("stage-{stage}-s"), seconds))
}

/// `ingest-next`: a table that has many archives gets more, `files`, one after the other, each
/// timed from opening the table to its commit. The rate is that of all of them, and `next-s` the
/// median of one. `table` holds the table that was made for the case;
/// it is copied first, so that each sample begins with the same. The state of the table is read
/// before and after, as `dyno ingest status` does.
pub(crate) fn next(params: &mut Params<'_>, scratch: &Path) -> Result<Reply, RigError> {
    let files = params.paths("files")?;
    let made = Path::new(params.text("table")?).join(TABLE);
    let table = scratch.join(TABLE);
    // The copy is part of no time. Without it the second sample would load archives that the table
    // has already, which takes no work.
    copy_tree(&made, &table)?;
    let before = Snapshot::open(&table)?.manifest().rows();
    let (mut rows, mut times_s) = (0, Vec::new());
    for file in &files {
        // A table identifies an archive by its name, so a file with a name that is already there
        // would replace its rows.
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let named = scratch.join(format!("next-{name}"));
        fs::copy(file, &named).map_err(|e| RigError::io(file, e))?;
        let report = load_into(&[named], 1, &table)?;
        rows += report.rows();
        times_s.push(report.seconds);
    }
    let asked = Instant::now();
    let after = Snapshot::open(&table)?.manifest().rows();
    let status_s = asked.elapsed().as_secs_f64();
    // What the loader reports is not enough: archives that replaced one another would be reported
    // as loaded, and their rows would be gone.
    if after != before + rows {
        let text = format!("{after} rows are in the table, not {before} and {rows}");
        return Err(params.wrong("files", text));
    }
    let seconds: f64 = times_s.iter().sum();
    times_s.sort_by(f64::total_cmp);
    let Some(&median_s) = times_s.get(times_s.len() / 2) else {
        return Err(params.wrong("files", "there are none".to_string()));
    };
    Ok(Reply {
        answer: Some(Answer {
            count: rows,
            checksum: "-".to_string(),
        }),
        metrics: BTreeMap::from([
            ("throughput".to_string(), rows as f64 / seconds),
            ("time".to_string(), seconds),
            ("next-s".to_string(), median_s),
            ("status-s".to_string(), status_s),
        ]),
        ..Reply::default()
    })
}

/// Copies a directory with all that is below it.
fn copy_tree(from: &Path, to: &Path) -> Result<(), RigError> {
    fs::create_dir_all(to).map_err(|e| RigError::io(to, e))?;
    for entry in fs::read_dir(from).map_err(|e| RigError::io(from, e))? {
        let entry = entry.map_err(|e| RigError::io(from, e))?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_tree(&path, &copy)?
        } else {
            fs::copy(&path, &copy).map_err(|e| RigError::io(&path, e))?;
        }
    }
    Ok(())
}

/// Loads every file, and fails if one cannot be loaded, because a suite's archives are good.
pub(crate) fn load_into(
    files: &[PathBuf],
    workers: u64,
    table: &Path,
) -> Result<LoadReport, RigError> {
    let options = Options {
        workers: usize::try_from(workers).unwrap_or(usize::MAX),
        ..Options::default()
    };
    let inputs = files.iter().cloned().map(Input::File).collect();
    let report = load::load(inputs, table, &options, &Progress::default())?;
    all_loaded(&report)?;
    Ok(report)
}

/// Checks that every archive is in its table with every row.
pub(crate) fn all_loaded(report: &LoadReport) -> Result<(), RigError> {
    for archive in &report.archives {
        let reason = match &archive.outcome {
            Outcome::Loaded { bad_rows: 0, .. } => continue,
            Outcome::Loaded { bad_rows, .. } => format!("{bad_rows} rows are bad"),
            Outcome::AlreadyThere { .. } => "the table had it already".to_string(),
            Outcome::Failed(error) => error.to_string(),
        };
        return Err(RigError::NotLoaded {
            path: archive.path.clone(),
            reason,
        });
    }
    Ok(())
}

/// Busy seconds of the stages, for people.
pub(crate) fn detail(report: &LoadReport, longest_s: f64) -> String {
    let stages = report.stages();
    format!(
        "busy seconds: inflate {:.2}, parse {:.2}, encode {:.2}, write {:.2}; the longest is {:.0}% of {:.2} s",
        stages.inflate,
        stages.parse,
        stages.encode,
        stages.write,
        100.0 * longest_s / report.seconds,
        report.seconds,
    )
}
