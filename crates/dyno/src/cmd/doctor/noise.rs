//! `dyno doctor --noise`: by how much one program seems to differ from itself on this machine.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use dyno_report::{Noise, share_text};
use serde_json::json;

use crate::args::DoctorArgs;
use crate::exit::Exit;
use crate::scratch::ScratchDir;
use crate::{places, terminal};

/// Pairs of runs of each kind of work.
const BLOCKS: usize = 10;

/// What one kind of work showed.
struct WorkNoise {
    work: &'static str,
    noise: Noise,
}

/// Runs this program against itself, each time in a fresh process. Two that follow each other are a
/// block, and the two arms take turns in being the first, so that a drift favours neither.
pub fn run(args: &DoctorArgs) -> anyhow::Result<Exit> {
    let cache = places::cache(args.data_dir.as_deref())?;
    let scratch = ScratchDir::new(&cache)?;
    let results = measured(scratch.path())?;
    if args.json {
        let of = |one: &WorkNoise| json!({ "work": one.work, "noise": one.noise });
        let all: Vec<_> = results.iter().map(of).collect();
        terminal::print(&serde_json::to_string_pretty(&all)?)?;
    } else {
        terminal::print(&text(&results))?;
    }
    Ok(Exit::Done)
}

fn measured(scratch: &Path) -> anyhow::Result<Vec<WorkNoise>> {
    let folder = scratch.display().to_string();
    let kinds = [
        ("processor, one thread", vec!["--sink", "null"]),
        (
            "disk, one thread",
            vec!["--sink", "std", "--overwrite", "--out", &folder],
        ),
    ];
    let mut results = Vec::new();
    for (work, flags) in kinds {
        // The first run reads the program from the disk, which no later one does.
        once(&flags)?;
        let mut pairs = Vec::new();
        for block in 0..BLOCKS {
            // The arms take turns, so a machine that slows down over the ten pairs does not make
            // one of them look slower.
            let (first, second) = (once(&flags)?, once(&flags)?);
            pairs.push(match block % 2 {
                0 => (first, second),
                _ => (second, first),
            });
        }
        let noise = Noise::from_pairs(&pairs).context("a run took no time")?;
        results.push(WorkNoise { work, noise });
    }
    Ok(results)
}

/// Seconds of one process that writes a table of TPC-H.
fn once(flags: &[&str]) -> anyhow::Result<f64> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let line = "tpch gen --sf 0.1 --format csv --tables lineitem --threads 1";
    let mut command = Command::new(program);
    command.args(line.split(' ')).args(flags);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    // stderr is read to the end by `output`, so a child that prints much cannot block on a full
    // pipe while the clock runs.
    let start = Instant::now();
    let output = command
        .output()
        .context("cannot start this program again")?;
    let seconds = start.elapsed().as_secs_f64();
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "dyno {line}: {}", stderr.trim());
    Ok(seconds)
}

fn text(results: &[WorkNoise]) -> String {
    let mut columns = vec!["work".to_owned(), "noise band".to_owned()];
    if let Some(first) = results.first() {
        let counts = first.noise.smallest_effects.iter();
        columns.extend(counts.map(|(n, _)| format!("n = {n}")));
    }
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = terminal::table(&columns);
    for WorkNoise { work, noise } in results {
        let mut row = vec![(*work).to_owned(), format!("±{}", share_text(noise.band))];
        let effects = noise.smallest_effects.iter();
        row.extend(effects.map(|(_, effect)| share_text(*effect)));
        table.add_row(row);
    }
    format!(
        "{table}\n\nThe band is the farther end of the 95% interval of {BLOCKS} runs of dyno against \
         itself. Under n\nstands the difference that n blocks with such noise would show in about \
         four runs of five."
    )
}
