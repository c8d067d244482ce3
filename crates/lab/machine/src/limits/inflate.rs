//! How fast gzip comes apart on one core.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::measured::{Measured, Tool, median};
use super::{Inflate, REPETITIONS, Setting, corpus, tool};
use crate::error::MachineError;

const NAME: &str = "inflate-1";

/// The tools and how they write to standard output on one thread; all of them check the CRC.
const TOOLS: [(&str, &[&str]); 3] = [
    ("igzip", &["-d", "-c"]),
    ("pigz", &["-d", "-c", "-p", "1"]),
    ("gzip", &["-d", "-c"]),
];

/// Inflated bytes per second: the best of the inflaters handed in, against the best tool.
pub(super) fn inflate(
    setting: &Setting<'_>,
    inflaters: &[(&str, Inflate)],
) -> Result<Measured, MachineError> {
    let text = corpus::text(setting.pick(1 << 20, 64 << 20, 64 << 20));
    let packed = corpus::gzip(&text)?;
    let mut best: Option<(&str, Vec<f64>)> = None;
    for (name, inflate) in inflaters {
        let rates = rates_of(name, inflate, &packed, text.len() as u64)?;
        if best
            .as_ref()
            .is_none_or(|(_, so_far)| median(&rates) > median(so_far))
        {
            best = Some((name, rates));
        }
    }
    let tool = best_tool(setting, &packed, text.len() as u64);
    let mib = text.len() >> 20;
    match (best, tool) {
        (Some((name, rates)), tool) => {
            let method = format!("{name} inflated {mib} MiB of rows from memory on one core");
            Ok(Measured::rate(rates, "B/s", method).against(tool))
        }
        (None, Ok(tool)) => {
            let method = format!("{mib} MiB of rows inflated; no inflater of ours was given");
            Ok(Measured::rate(Vec::new(), "B/s", method).against(Ok(tool)))
        }
        (None, Err(reason)) => Err(MachineError::limit(NAME, reason)),
    }
}

fn rates_of(
    name: &str,
    inflate: &Inflate,
    packed: &[u8],
    bytes: u64,
) -> Result<Vec<f64>, MachineError> {
    let once = || {
        let started = Instant::now();
        let got = inflate(packed);
        let rate = bytes as f64 / started.elapsed().as_secs_f64();
        // A fast inflater that is wrong must not become the limit that others are held against.
        if got == bytes {
            return Ok(rate);
        }
        Err(MachineError::limit(
            NAME,
            format!("{name} gave {got} bytes instead of {bytes}"),
        ))
    };
    // The first run brings pages in and is not counted.
    once()?;
    (0..REPETITIONS).map(|_| once()).collect()
}

/// The best of the tools present; plain gzip is tried only when nothing better is there.
fn best_tool(setting: &Setting<'_>, packed: &[u8], bytes: u64) -> Result<Tool, String> {
    let path = setting.scratch.join("inflate-corpus.gz");
    fs::write(&path, packed).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    let mut best: Result<Tool, String> =
        Err("none of igzip, pigz and gzip is on the PATH".to_owned());
    for (name, arguments) in TOOLS {
        if tool::find(name).is_none() || (name == "gzip" && best.is_ok()) {
            continue;
        }
        // A tool that fails is passed over as long as another one works: which of them a machine
        // has depends on its distribution.
        match tool_rates(name, arguments, &path, bytes) {
            Ok(rates)
                if best
                    .as_ref()
                    .is_ok_and(|b| median(&b.samples) >= median(&rates)) => {}
            Ok(rates) => best = Ok(Tool::from_repetitions(name, rates)),
            Err(reason) if best.is_err() => best = Err(reason),
            Err(_) => {}
        }
    }
    fs::remove_file(&path).map_err(|e| format!("cannot remove {}: {e}", path.display()))?;
    best
}

/// Wall time of the process from start to end, its output going to /dev/null: the tool pays for
/// starting up and for reading the file from the page cache.
fn tool_rates(name: &str, arguments: &[&str], path: &Path, bytes: u64) -> Result<Vec<f64>, String> {
    let run = || {
        let mut command = Command::new("sh");
        let line = format!("exec {name} {} \"$0\" > /dev/null", arguments.join(" "));
        command.arg("-c").arg(line).arg(path);
        tool::run(command).map(|run| bytes as f64 / run.wall_s)
    };
    (0..REPETITIONS).map(|_| run()).collect()
}
