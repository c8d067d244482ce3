//! `pages-device`: a block device under fio, with an asynchronous engine and direct I/O, filled with real pages first.
//! Ours is made by this program's own commands, as anybody would.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use dyno_record::Answer;
use dyno_suite::protocol::{Reply, Request};
use serde_json::Value;

use super::passes::SLICE;
use super::place::{Worker, aligned};
use super::source::{Source, hash_of};
use super::zram::Zram;
use super::{PagesError, bytes_of, files, store};
use crate::{Params, RigError};

/// A seed document's pattern, as fio is told.
struct Pattern {
    rw: &'static str,
    block_bytes: u64,
    depth: u32,
    submit: u32,
    writes: bool,
}

fn pattern(name: &str) -> Option<Pattern> {
    let of = |rw, block_bytes, depth, submit, writes| Pattern {
        rw,
        block_bytes,
        depth,
        submit,
        writes,
    };
    Some(match name {
        "p1" => of("read", 1 << 20, 4, 1, false),
        "p2" => of("write", 1 << 20, 4, 1, true),
        "p3" => of("randread", 4096, 32, 1, false),
        "p4" => of("randwrite", 4096, 32, 1, true),
        "p5" => of("randrw", 4096, 32, 1, true),
        "p6" => of("randrw", 4096, 128, 64, true),
        _ => return None,
    })
}

/// What is under test. It goes when this is dropped.
enum Device {
    Ours(Attached),
    Zram(Zram),
    Memory { _file: File, path: PathBuf },
}

/// A device of `dyno pages attach`.
struct Attached {
    name: String,
    path: PathBuf,
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Err(error) = own(&["pages", "detach", "--name", &self.name]) {
            eprintln!("{} stays: {error}", self.path.display());
        }
    }
}

impl Device {
    fn open(peer: Option<&str>, pages: u64) -> Result<Device, PagesError> {
        match peer {
            None => {
                let name = format!("bench-{}", std::process::id());
                let (size, limit) = (bytes_of(pages), bytes_of(pages) + (32 << 20));
                let (size, limit) = (format!("{size}B"), format!("{limit}B"));
                let said = own(&[
                    "pages", "attach", "--name", &name, "--size", &size, "--limit", &limit,
                    "--cpu", "0",
                ])?;
                let path = PathBuf::from(said.trim());
                Ok(Device::Ours(Attached { name, path }))
            }
            Some("tmpfs") => {
                let file = files::in_memory(bytes_of(pages))?;
                let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
                let path = PathBuf::from(format!("/proc/{}/fd/{fd}", std::process::id()));
                Ok(Device::Memory { _file: file, path })
            }
            Some(peer) => match peer.strip_prefix("zram-") {
                Some(algorithm) => Zram::new(algorithm, bytes_of(pages)).map(Device::Zram),
                None => Err(PagesError::Refused(format!(
                    "no system is called `{peer}` here"
                ))),
            },
        }
    }

    fn path(&self) -> PathBuf {
        match self {
            Device::Ours(attached) => attached.path.clone(),
            Device::Zram(zram) => zram.path(),
            Device::Memory { path, .. } => path.clone(),
        }
    }

    fn file(&self) -> Result<File, PagesError> {
        let path = self.path();
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_DIRECT);
        options
            .open(&path)
            .map_err(|e| PagesError::system(path.display().to_string(), e))
    }
}

/// This program with `arguments`: what it prints.
fn own(arguments: &[&str]) -> Result<String, PagesError> {
    let program = std::env::current_exe().map_err(|e| PagesError::system("this program", e))?;
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|e| PagesError::system("this program", e))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(PagesError::Refused(said.trim().to_string()))
}

/// `pattern` (p1 to p6) for `seconds` on a device of `pages` pages of `class`, all written before. What the device holds
/// is compared before fio and, where fio only read, after it; where fio wrote, it verifies a pass of its own at the end.
pub(crate) fn device(
    params: &mut Params<'_>,
    request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    let name = params.text("pattern")?;
    let seconds = params.count("seconds")?;
    let source = store::source(params)?;
    let Some(pattern) = pattern(name) else {
        return Err(params.wrong("pattern", format!("`{name}` is none of p1 to p6")));
    };
    let device = Device::open(peer, source.count())?;
    let mut worker = Worker::File(device.file()?);
    fill(&mut worker, &source)?;
    let answer = content(&mut worker, &source)?;
    let told = fio(&device.path(), &pattern, Some(seconds), &request.scratch)?;
    if pattern.writes {
        let verifying = Pattern {
            rw: "randwrite",
            block_bytes: 4096,
            depth: 16,
            submit: 1,
            writes: true,
        };
        fio(&device.path(), &verifying, None, &request.scratch)?;
    } else {
        content(&mut worker, &source)?;
    }
    let fact = match peer {
        None => "FUSE and a loop device",
        Some(_) => "the kernel's own",
    };
    Ok(Reply {
        answer: Some(answer),
        metrics: metrics(&told, &pattern)?,
        facts: BTreeMap::from([("front".to_string(), fact.to_string())]),
        ..Reply::default()
    })
}

fn fill(worker: &mut Worker<'_>, source: &Source) -> Result<(), PagesError> {
    let buffer = aligned(SLICE);
    let mut first = 0;
    while first < source.count() {
        let count = SLICE.min((source.count() - first) as usize);
        for (number, page) in (first..).zip(&mut buffer[..count]) {
            source.fill(number, page);
        }
        worker.write(first, &buffer[..count])?;
        first += count as u64;
    }
    Ok(())
}

/// What the device holds, compared with the source.
fn content(worker: &mut Worker<'_>, source: &Source) -> Result<Answer, PagesError> {
    let buffer = aligned(SLICE);
    let mut failure = Ok(());
    let found = hash_of(source.count(), |number| {
        let at = number as usize % SLICE;
        if at == 0 && failure.is_ok() {
            let wanted: Vec<u64> = (number..source.count().min(number + SLICE as u64)).collect();
            failure = worker.read(&wanted, &mut buffer[..wanted.len()]);
        }
        buffer[at]
    });
    failure?;
    if found != source.hash() {
        return Err(PagesError::Wrong(
            "the device holds other pages than were written".to_string(),
        ));
    }
    let (count, checksum) = (source.count(), format!("{found:032x}"));
    Ok(Answer { count, checksum })
}

/// fio's own account; without `seconds` a pass over the device that is verified.
fn fio(
    path: &Path,
    pattern: &Pattern,
    seconds: Option<u64>,
    scratch: &Path,
) -> Result<Value, PagesError> {
    let mut command = Command::new("fio");
    command
        .current_dir(scratch)
        .args([
            "--name=pages",
            "--ioengine=libaio",
            "--direct=1",
            "--output-format=json",
        ])
        // Data that half goes away: fio's own, which says less of writes than real pages do.
        .args([
            "--refill_buffers",
            "--buffer_compress_percentage=50",
            "--rwmixread=70",
        ])
        .arg(format!("--filename={}", path.display()))
        .arg(format!("--rw={}", pattern.rw))
        .arg(format!("--bs={}", pattern.block_bytes))
        .arg(format!("--iodepth={}", pattern.depth))
        .arg(format!("--iodepth_batch_submit={}", pattern.submit))
        .arg("--size=100%");
    match seconds {
        Some(seconds) => command
            .arg("--time_based")
            .arg(format!("--runtime={seconds}")),
        None => command.args(["--verify=crc32c", "--do_verify=1", "--verify_fatal=1"]),
    };
    let output = command
        .output()
        .map_err(|e| PagesError::system("fio (Debian: fio)", e))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(PagesError::Wrong(format!(
            "fio {}: {}",
            output.status,
            why.trim()
        )));
    }
    // Notes may stand before the object.
    let json = said.find('{').map_or("", |at| &said[at..]);
    serde_json::from_str(json).map_err(|e| PagesError::Wrong(format!("fio's account: {e}")))
}

fn metrics(told: &Value, pattern: &Pattern) -> Result<BTreeMap<String, f64>, PagesError> {
    let job = &told["jobs"][0];
    let of = |side: &str, name: &str| job[side][name].as_f64().unwrap_or(0.0);
    let iops = of("read", "iops") + of("write", "iops");
    if iops == 0.0 {
        return Err(PagesError::Wrong("fio did nothing".to_string()));
    }
    let bytes = of("read", "bw_bytes") + of("write", "bw_bytes");
    // Of the side that most calls are on.
    let side = if pattern.rw.ends_with("write") {
        "write"
    } else {
        "read"
    };
    let quantile = |name: &str| {
        job[side]["clat_ns"]["percentile"][name]
            .as_f64()
            .map(|ns| ns / 1e9)
    };
    let mut metrics = BTreeMap::from([
        ("throughput".to_string(), iops),
        ("io-rate".to_string(), bytes),
    ]);
    for (name, key) in [("latency-p50", "50.000000"), ("latency-p99", "99.000000")] {
        metrics.extend(quantile(key).map(|value| (name.to_string(), value)));
    }
    Ok(metrics)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_sides_of_a_mixture_count() {
        let side = |iops: f64| json!({ "iops": iops, "bw_bytes": iops * 4096.0, "clat_ns": { "percentile": { "50.000000": 7000 } } });
        let told = json!({ "jobs": [{ "read": side(70.0), "write": side(30.0) }] });
        let mixed = pattern("p5").expect("known");
        let metrics = metrics(&told, &mixed).expect("figures");
        assert_eq!(metrics["throughput"], 100.0);
        assert_eq!(metrics["latency-p50"], 7e-6);
    }
}
