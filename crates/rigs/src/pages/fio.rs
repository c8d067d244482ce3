//! Runs fio with the patterns of the seed document, an asynchronous engine and direct I/O.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::PagesError;
use crate::quantiles::QUANTILES;

/// Prefix of fio's log files.
const LOG: &str = "pages";
/// Milliseconds over which fio averages.
const WINDOW_MS: u64 = 500;

/// What fio reads and writes.
pub(super) enum Target {
    /// A block device or a file.
    Path(PathBuf),
    /// The Unix socket of an NBD server and the name of its export. fio is the client.
    Nbd(PathBuf, String),
}

impl Target {
    fn arguments(&self) -> Vec<String> {
        match self {
            Target::Path(path) => vec![
                "--ioengine=libaio".to_string(),
                "--direct=1".to_string(),
                format!("--filename={}", path.display()),
                "--size=100%".to_string(),
            ],
            Target::Nbd(..) => vec![
                "--ioengine=nbd".to_string(),
                format!("--uri={}", self.uri()),
            ],
        }
    }

    /// The address in the form that NBD clients take.
    pub fn uri(&self) -> String {
        match self {
            Target::Path(path) => path.display().to_string(),
            Target::Nbd(socket, name) => {
                format!("nbd+unix:///{name}?socket={}", socket.display())
            }
        }
    }
}

/// One access pattern of the seed document, in fio's terms.
pub(super) struct Pattern {
    rw: &'static str,
    block_bytes: u64,
    depth: u32,
    submit: u32,
    pub writes: bool,
}

/// The pattern of this name (`p1` to `p6`), or `None`.
pub(super) fn pattern(name: &str) -> Option<Pattern> {
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

/// A pass over the device whose blocks are read again and compared.
pub(super) const VERIFYING: Pattern = Pattern {
    rw: "randwrite",
    block_bytes: 4096,
    depth: 16,
    submit: 1,
    writes: true,
};

/// Runs fio and returns its JSON report. Without `seconds` it makes one pass over the device and
/// verifies it.
pub(super) fn run(
    target: &Target,
    pattern: &Pattern,
    seconds: Option<u64>,
    scratch: &Path,
) -> Result<Value, PagesError> {
    let mut command = Command::new("fio");
    command
        .current_dir(scratch)
        .args(["--name=pages", "--output-format=json"])
        // fio's data, made half compressible. Write figures on it say less than those on real
        // pages.
        .args([
            "--refill_buffers",
            "--buffer_compress_percentage=50",
            "--rwmixread=70",
        ])
        // A memory-backed device does its work while a call is submitted, and completes it at once.
        // fio's own choice is to tell the completion alone, which would be next to nothing.
        .arg("--lat_percentiles=1")
        // fio would otherwise ask the kernel to drop its cache of the device. Direct I/O and NBD
        // cache nothing.
        .arg("--invalidate=0")
        .args(target.arguments())
        .arg(format!("--rw={}", pattern.rw))
        .arg(format!("--bs={}", pattern.block_bytes))
        .arg(format!("--iodepth={}", pattern.depth))
        .arg(format!("--iodepth_batch_submit={}", pattern.submit));
    match seconds {
        Some(seconds) => command
            .arg("--time_based")
            .arg(format!("--runtime={seconds}"))
            .arg(format!("--write_iops_log={LOG}"))
            .arg("--per_job_logs=0")
            .arg(format!("--log_avg_msec={WINDOW_MS}")),
        None => command.args(["--verify=crc32c", "--do_verify=1", "--verify_fatal=1"]),
    };
    let output = command
        .output()
        .map_err(|e| PagesError::system("fio (Debian: fio)", e))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(PagesError::Wrong(format!(
            "fio {}: {}",
            output.status,
            why.trim()
        )));
    }
    // fio may print notes before the JSON object.
    let json = stdout.find('{').map_or("", |at| &stdout[at..]);
    serde_json::from_str(json).map_err(|e| PagesError::Wrong(format!("fio's account: {e}")))
}

/// Calls a second in each window, and the window's length in seconds, from the log of the last run
/// in `scratch`. Reads and writes are added.
pub(super) fn windows(scratch: &Path, seconds: u64) -> Result<(Vec<f64>, f64), PagesError> {
    let path = scratch.join(format!("{LOG}_iops.log"));
    let text = std::fs::read_to_string(&path)
        .map_err(|e| PagesError::system(path.display().to_string(), e))?;
    let count = (seconds * 1_000 / WINDOW_MS) as usize;
    Ok((windows_in(&text, count), WINDOW_MS as f64 / 1e3))
}

/// A line of fio's log is `milliseconds at its end, calls a second, 0 of reads or 1 of writes,
/// ...`.
fn windows_in(log: &str, count: usize) -> Vec<f64> {
    let mut windows = vec![0.0; count];
    for line in log.lines() {
        let mut fields = line.split(',').map(str::trim);
        let at_ms = fields.next().and_then(|field| field.parse::<u64>().ok());
        let rate = fields.next().and_then(|field| field.parse::<f64>().ok());
        let (Some(at_ms), Some(rate)) = (at_ms, rate) else {
            continue;
        };
        // A window may end a moment late but never early, so rounding down finds it.
        let place = (at_ms / WINDOW_MS).saturating_sub(1) as usize;
        if let Some(window) = windows.get_mut(place) {
            *window += rate;
        }
    }
    windows
}

/// Bytes that fio read and wrote.
pub(super) fn moved(report: &Value) -> (u64, u64) {
    let of = |side: &str| report["jobs"][0][side]["io_bytes"].as_u64().unwrap_or(0);
    (of("read"), of("write"))
}

/// Metrics of a run from fio's report: bandwidth, calls a second and latencies, from the submission
/// of a call to its end.
pub(super) fn metrics(
    report: &Value,
    pattern: &Pattern,
) -> Result<BTreeMap<String, f64>, PagesError> {
    let job = &report["jobs"][0];
    let of = |side: &str, name: &str| job[side][name].as_f64().unwrap_or(0.0);
    let iops = of("read", "iops") + of("write", "iops");
    // fio exits with 0 after doing nothing, such as on a device of no size. A rate of zero would
    // then be a figure.
    if iops == 0.0 {
        return Err(PagesError::Wrong("fio did nothing".to_string()));
    }
    let bytes = of("read", "bw_bytes") + of("write", "bw_bytes");
    // The direction that most calls have.
    let side = if pattern.rw.ends_with("write") {
        "write"
    } else {
        "read"
    };
    let quantile = |name: &str| {
        job[side]["lat_ns"]["percentile"][name]
            .as_f64()
            .map(|ns| ns / 1e9)
    };
    let mut metrics = BTreeMap::from([
        ("throughput".to_string(), iops),
        ("io-rate".to_string(), bytes),
    ]);
    for (label, p) in QUANTILES {
        let value = quantile(&format!("{:.6}", p * 100.0));
        metrics.extend(value.map(|value| (format!("latency-{label}"), value)));
    }
    Ok(metrics)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_and_writes_of_a_stretch_are_one_window() {
        let log = "500, 70, 0, 0, 0\n501, 30, 1, 0, 0\n1000, 60, 0, 0, 0\n1502, 5, 0, 0, 0\n9999, 1, 0, 0, 0\n";
        assert_eq!(windows_in(log, 4), [100.0, 60.0, 5.0, 0.0]);
    }

    #[test]
    fn both_sides_of_a_mixture_count_and_calls_from_their_submission() {
        let at = |ns: u64| json!({ "percentile": { "50.000000": ns } });
        let side = |iops: f64| json!({ "iops": iops, "bw_bytes": iops * 4096.0, "clat_ns": at(300), "lat_ns": at(7000) });
        let report = json!({ "jobs": [{ "read": side(70.0), "write": side(30.0) }] });
        let mixed = pattern("p5").expect("known");
        let metrics = metrics(&report, &mixed).expect("figures");
        assert_eq!(metrics["throughput"], 100.0);
        assert_eq!(metrics["latency-p50"], 7e-6);
    }
}
