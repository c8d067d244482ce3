//! Reads what `fio --output-format=json` prints.

use dyno_record::{Better, Figures};
use serde_json::Value;

use super::{Reader, Source, figure, list, number, percentiles, text};

pub(super) const READER: Reader = Reader {
    tool: "fio",
    knows: |source| source.json.get("fio version").is_some(),
    read,
    unknown: &[
        "How far runs lie apart: a file has one run, and bw_min to bw_max are of stretches of it.",
        "Whether the page cache was in the way, unless the job says direct=1.",
        "What the bytes were: fio repeats one buffer unless told to refill or to compress it.",
        "What the disk and the machine can do, so nothing is held against a limit.",
    ],
};

/// Engines that have one request in flight a thread, whatever `iodepth` says.
const SYNCHRONOUS: [&str; 6] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];

fn read(source: &Source<'_>, figures: &mut Figures) -> Result<(), String> {
    for job in list(&source.json, "/jobs")? {
        let name = text(job, "/jobname").unwrap_or("job");
        let is_busy = |way: &&str| number(job, &format!("/{way}/total_ios")).is_ok_and(|n| n > 0.0);
        let ways: Vec<&str> = ["read", "write", "trim"]
            .into_iter()
            .filter(is_busy)
            .collect();
        for way in &ways {
            let run = &job[way];
            direction(name, way, run, figures)?;
            let Some(iops) = figures.figures.iter_mut().rfind(|f| f.metric == "iops") else {
                continue;
            };
            iops.failed = number(job, "/error").map_or(0, |error| u32::from(error != 0.0));
            // Reads and writes share the requests in flight, so neither has a number of its own.
            if ways.len() == 1 {
                iops.in_flight = in_flight(&source.json, job);
            }
            // The rate is that of one clone, the figure that of all clones of a group.
            let rate = option(&source.json, job, "rate_iops");
            let rate: Option<f64> = rate.and_then(|rate| rate.parse().ok());
            let rate = rate.zip(clones(&source.json, job));
            iops.offered_rate = rate.map(|(rate, clones)| rate * clones);
        }
    }
    Ok(())
}

fn direction(name: &str, way: &str, run: &Value, figures: &mut Figures) -> Result<(), String> {
    let system = "";
    // `runtime` is in milliseconds, while the latencies say their unit in their names.
    let seconds = number(run, "/runtime")? / 1e3;
    let case = format!("{name}/{way}");
    let mut iops = figure(
        &case,
        system,
        "iops",
        "IOPS",
        Better::Higher,
        number(run, "/iops")?,
    );
    iops.n = Some(1);
    iops.duration_s = Some(seconds);
    iops.count = Some(number(run, "/total_ios")?);
    iops.latency_mean_s = number(run, "/lat_ns/mean").ok().map(|ns| ns * 1e-9);
    let bytes = number(run, "/bw_bytes")?;
    let mut bandwidth = figure(&case, system, "bandwidth", "B/s", Better::Higher, bytes);
    bandwidth.n = Some(1);
    bandwidth.duration_s = Some(seconds);
    bandwidth.count = Some(number(run, "/io_bytes")?);
    figures.figures.push(bandwidth);
    figures.figures.push(iops);
    // Completion latency leaves out the time before the request was handed to the kernel.
    let subject = format!("{case}, completion");
    let table = percentiles(&subject, "ns", run.pointer("/clat_ns/percentile"));
    figures.latencies.extend(table.map(|mut table| {
        table.count = number(run, "/clat_ns/N").ok();
        table.mean = number(run, "/clat_ns/mean").ok();
        table
    }));
    Ok(())
}

/// An option of the job, or of all jobs.
fn option<'a>(file: &'a Value, job: &'a Value, name: &str) -> Option<&'a str> {
    let own = text(job, &format!("/job options/{name}"));
    own.or_else(|| text(file, &format!("/global options/{name}")))
}

/// Threads behind an entry: all clones of the job with `group_reporting`, without which each thread
/// is an entry of its own.
fn clones(file: &Value, job: &Value) -> Option<f64> {
    let is_grouped = option(file, job, "group_reporting").is_some();
    let number = option(file, job, "numjobs").filter(|_| is_grouped);
    number.map_or(Some(1.0), |n| n.parse().ok())
}

/// Requests in flight, which is certain only without a rate and for whole jobs.
fn in_flight(file: &Value, job: &Value) -> Option<f64> {
    if option(file, job, "rate_iops")
        .or(option(file, job, "rate"))
        .is_some()
    {
        return None;
    }
    let engine = option(file, job, "ioengine").unwrap_or("psync");
    let depth: f64 = if SYNCHRONOUS.contains(&engine) {
        1.0
    } else {
        option(file, job, "iodepth").map_or(Some(1.0), |n| n.parse().ok())?
    };
    Some(depth * clones(file, job)?)
}
