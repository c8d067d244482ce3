//! fio, the independent judge of disks.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::measured::Tool;
use super::tool;

/// What fio is asked to do, for one file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub mode: &'static str,
    pub block_bytes: usize,
    pub file_bytes: u64,
    pub depth: usize,
    pub direct: bool,
    /// Whether each write is made durable before the next begins.
    pub sync_each: bool,
    pub millis: u64,
}

/// Length of the windows that fio's spread is taken over; it takes no shorter ones.
const WINDOW_MS: u64 = 250;

/// Bytes per second: the mean of the run, with its slowest and fastest window.
pub(super) fn bytes_per_s(path: &Path, job: &Job) -> Result<Tool, String> {
    if tool::find("fio").is_none() {
        return Err("fio is not on the PATH (Debian package fio)".to_owned());
    }
    let mut command = Command::new("fio");
    let engine = if job.sync_each { "psync" } else { "libaio" };
    command.args([
        "--name=limit",
        "--output-format=json",
        "--time_based=1",
        "--invalidate=1",
    ]);
    command.arg(format!("--filename={}", path.display()));
    command
        .arg(format!("--rw={}", job.mode))
        .arg(format!("--ioengine={engine}"));
    command
        .arg(format!("--bs={}", job.block_bytes))
        .arg(format!("--size={}", job.file_bytes));
    command
        .arg(format!("--iodepth={}", job.depth))
        .arg(format!("--runtime={}ms", job.millis));
    command.arg(format!("--direct={}", u8::from(job.direct)));
    command.arg(format!("--fdatasync={}", u8::from(job.sync_each)));
    // Blocks that exist are written over. Otherwise fio may empty the file first.
    command.arg("--overwrite=1");
    command.arg(format!("--bwavgtime={WINDOW_MS}"));
    let run = tool::run(command)?;
    let side = if job.mode.contains("write") {
        "write"
    } else {
        "read"
    };
    parse(&run.stdout.text(), side)
}

/// Low, mean and high of the windows; the mean alone when fio counted fewer than two.
fn parse(output: &str, side: &str) -> Result<Tool, String> {
    // fio writes its notes before the object.
    let start = output.find('{').ok_or("fio printed no JSON")?;
    let report: Value = serde_json::from_str(&output[start..])
        .map_err(|error| format!("the JSON that fio printed cannot be read: {error}"))?;
    let job = &report["jobs"][0][side];
    let number = |key: &str| job[key].as_f64();
    let mean = number("bw_bytes").filter(|mean| *mean > 0.0);
    let mean = mean.ok_or_else(|| format!("fio reports no {side} bandwidth"))?;
    let (low, high) = (
        number("bw_min").unwrap_or(0.0),
        number("bw_max").unwrap_or(0.0),
    );
    let windows = number("bw_samples").unwrap_or(0.0);
    let spread = [low * 1024.0, mean, high * 1024.0];
    // fio gives the windows in KiB and the mean in bytes. When the mean lies outside its own
    // windows, the two cannot both be right, and only the mean is kept.
    if windows < 2.0 || spread[0] > mean || spread[2] < mean {
        return Ok(Tool::from_repetitions("fio", vec![mean]));
    }
    Ok(Tool {
        name: "fio",
        samples: spread.to_vec(),
        n: windows as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_fio_is_read() {
        let text = "note: something\n{\"jobs\":[{\"write\":{\"bw_bytes\":2048000,\"bw_min\":1000,\
                    \"bw_max\":3000,\"bw_samples\":5},\"read\":{\"bw_bytes\":0}}]}";
        let write = parse(text, "write").unwrap();
        let windows = vec![1_024_000.0, 2_048_000.0, 3_072_000.0];
        assert_eq!((write.samples, write.n), (windows, 5));
        assert_eq!(
            parse(text, "read").unwrap_err(),
            "fio reports no read bandwidth"
        );
        assert_eq!(
            parse("fio: failed", "read").unwrap_err(),
            "fio printed no JSON"
        );
    }
}
