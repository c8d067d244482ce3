//! Compressed archives into a table in one step, or by way of files on disk that a step leaves for
//! the next one.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use dyno_ingest::table::Snapshot;
use dyno_suite::protocol::Reply;

use crate::ingest::{TABLE, load_into, to_parquet, total_bytes};
use crate::{Params, RigError, table_checksum, used};

/// Programs that unpack, the first that is installed.
const UNPACKERS: [&str; 2] = ["pigz", "gzip"];

/// What ran, one step after the other.
#[derive(Default)]
struct Steps {
    /// Name and seconds of each.
    done: Vec<(String, f64)>,
    /// Bytes of the files that a step left for the next.
    temporary_bytes: u64,
}

impl Steps {
    fn run<T>(
        &mut self,
        name: impl Into<String>,
        step: impl FnOnce() -> Result<T, RigError>,
    ) -> Result<T, RigError> {
        let begun = Instant::now();
        let made = step()?;
        self.done.push((name.into(), begun.elapsed().as_secs_f64()));
        Ok(made)
    }

    /// Counts files that lie on the disk until the last step has ended.
    fn keep(&mut self, files: &[PathBuf]) -> Result<(), RigError> {
        self.temporary_bytes += total_bytes(files)?;
        Ok(())
    }
}

/// `ingest-pipeline`: the compressed archives `files` into a table with `workers`, by `steps`:
/// `stream` (load them as they are), `unpack` (decompress to disk, load the text) or `convert`
/// (decompress to disk, write Parquet, load that). The clock runs from the first input to the
/// committed table; the checksum is that of `ingest-load`.
pub(crate) fn pipeline(params: &mut Params<'_>, scratch: &Path) -> Result<Reply, RigError> {
    let files = params.paths("files")?;
    let workers = params.count("workers")?;
    let table = scratch.join(TABLE);
    let mut steps = Steps::default();
    // The decompressor is a child, which the load that follows in this process is not.
    let cpu_before_s = used::cpu_with_children_s();
    let report = match params.text("steps")? {
        "stream" => steps.run("load .csv.gz", || load_into(&files, workers, &table))?,
        "unpack" => {
            let plain = unpacked(&mut steps, &files, workers, scratch)?;
            steps.run("load .csv", || load_into(&plain, workers, &table))?
        }
        "convert" => {
            let plain = unpacked(&mut steps, &files, workers, scratch)?;
            let columns = steps.run("convert to Parquet", || {
                to_parquet(&plain, workers, scratch).map(|(_, files)| files)
            })?;
            steps.keep(&columns)?;
            steps.run("load Parquet", || load_into(&columns, workers, &table))?
        }
        other => {
            let reason = format!("`{other}` is not one of stream, unpack, convert");
            return Err(params.wrong("steps", reason));
        }
    };
    let cpu_s = used::cpu_with_children_s() - cpu_before_s;
    let table_bytes = Snapshot::open(&table)?.manifest().bytes();
    let answer = table_checksum(&table)?;
    let seconds: f64 = steps.done.iter().map(|(_, seconds)| seconds).sum();
    let names: Vec<&str> = steps.done.iter().map(|(name, _)| name.as_str()).collect();
    let detail = steps
        .done
        .iter()
        .map(|(name, s)| format!("{name} {s:.2} s"));
    let facts = BTreeMap::from([
        ("steps".to_string(), names.join(", ")),
        ("detail".to_string(), detail.collect::<Vec<_>>().join(", ")),
    ]);
    let temporary_bytes = steps.temporary_bytes as f64;
    Ok(Reply {
        answer: Some(answer),
        metrics: BTreeMap::from([
            ("throughput".to_string(), report.rows() as f64 / seconds),
            ("time".to_string(), seconds),
            ("cpu".to_string(), cpu_s),
            ("temporary-bytes".to_string(), temporary_bytes),
            ("table-bytes".to_string(), table_bytes as f64),
        ]),
        facts,
        ..Reply::default()
    })
}

/// The archives decompressed to files in `scratch`, by a program that people have for that.
fn unpacked(
    steps: &mut Steps,
    files: &[PathBuf],
    workers: u64,
    scratch: &Path,
) -> Result<Vec<PathBuf>, RigError> {
    let program = unpacker()?;
    let folder = scratch.join("unpacked");
    fs::create_dir_all(&folder).map_err(|e| RigError::io(&folder, e))?;
    let plain: Vec<PathBuf> = files
        .iter()
        .map(|file| folder.join(file.file_stem().unwrap_or(OsStr::new("archive.csv"))))
        .collect();
    let jobs: Vec<(&PathBuf, &PathBuf)> = files.iter().zip(&plain).collect();
    steps.run(format!("decompress by {program}"), || {
        at_once(&jobs, workers, |(from, to)| unpack(program, from, to))
    })?;
    steps.keep(&plain)?;
    Ok(plain)
}

fn unpacker() -> Result<&'static str, RigError> {
    let runs = |program: &&&str| {
        let version = Command::new(program).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    let found = UNPACKERS.iter().find(runs).copied();
    found.ok_or_else(|| RigError::Program {
        program: UNPACKERS[1],
        reason: "it is not installed, nor is pigz".to_string(),
    })
}

fn unpack(program: &'static str, from: &Path, to: &Path) -> Result<(), RigError> {
    let failed = |reason: String| RigError::Program { program, reason };
    let input = File::open(from).map_err(|e| RigError::io(from, e))?;
    let output = File::create(to).map_err(|e| RigError::io(to, e))?;
    let ended = Command::new(program)
        .arg("-dc")
        .stdin(input)
        .stdout(output)
        .stderr(Stdio::piped())
        .output()
        .map_err(|e| failed(e.to_string()))?;
    if ended.status.success() {
        Ok(())
    } else {
        let stderr = String::from_utf8_lossy(&ended.stderr);
        Err(failed(format!("{}: {}", from.display(), stderr.trim())))
    }
}

/// Runs `job` over all items on so many threads and returns the first failure. Each thread takes
/// the next item when it has finished one, so that a large one at the end does not leave the others
/// idle for longer than it must.
pub(crate) fn at_once<T: Sync>(
    items: &[T],
    workers: u64,
    job: impl Fn(&T) -> Result<(), RigError> + Sync,
) -> Result<(), RigError> {
    let queue = Mutex::new(items.iter());
    let threads = workers.clamp(1, items.len().max(1) as u64);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| -> Result<(), RigError> {
                    loop {
                        // A queue that a panic has poisoned is left alone: the panic is reported
                        // when its thread is joined.
                        let next = queue.lock().ok().and_then(|mut queue| queue.next());
                        let Some(item) = next else { return Ok(()) };
                        job(item)?;
                    }
                })
            })
            .collect();
        let panicked = || RigError::Panicked;
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|_| Err(panicked())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once_and_a_failure_is_returned() {
        let done = Mutex::new(Vec::new());
        at_once(&[1, 2, 3, 4, 5], 3, |item| {
            done.lock().expect("no panic").push(*item);
            Ok(())
        })
        .expect("all go well");
        let mut done = done.into_inner().expect("no panic");
        done.sort_unstable();
        assert_eq!(done, [1, 2, 3, 4, 5]);
        let failed = at_once(&["a", "b"], 2, |item| match *item {
            "b" => Err(RigError::Panicked),
            _ => Ok(()),
        });
        assert!(failed.is_err());
    }

    #[test]
    fn an_archive_that_cannot_be_unpacked_is_named() {
        let folder = tempfile::tempdir().expect("a directory");
        let from = folder.path().join("odd.csv.gz");
        fs::write(&from, "this is not gzip").expect("written");
        let to = folder.path().join("odd.csv");
        let program = unpacker().expect("gzip is everywhere");
        let error = unpack(program, &from, &to).expect_err("refused");
        assert!(error.to_string().contains("odd.csv.gz"), "{error}");
    }
}
