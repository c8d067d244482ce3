//! `dyno ingest gen`: archives from a seed.

use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::{Context, bail};
use dyno_ingest::generate::{Form, Generator, Month};
use dyno_report::quantity;
use dyno_suite::Stop;
use serde_json::json;

use super::all_threads;
use crate::args::GenerateArgs;
use crate::exit::Exit;
use crate::progress::WorkBar;
use crate::terminal;

pub fn run(args: &GenerateArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let generator = Generator {
        rows: args.rows,
        months: args.months,
        start: month(&args.start)?,
        seed: args.seed,
        quirks: args.quirks,
        form: if args.plain { Form::Plain } else { Form::Gzip },
    };
    let started = Instant::now();
    let bar = WorkBar::new(args.rows, "rows");
    let made = generator.write(
        &args.out,
        args.workers.unwrap_or_else(all_threads),
        &|rows| {
            bar.add(rows);
            if stop.asked() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        },
    )?;
    drop(bar);
    let seconds = started.elapsed().as_secs_f64();
    if args.json {
        terminal::print(&serde_json::to_string_pretty(&json!({
            "rows": made.rows,
            "bytes": made.bytes,
            "file_bytes": made.file_bytes,
            "months": made.months,
            "planted": made.planted,
            "files": made.files,
            "seconds": seconds,
        }))?)?;
        return Ok(Exit::Done);
    }
    let planted = match made.planted {
        0 => String::new(),
        n => format!(", {n} oddities planted"),
    };
    terminal::print(&format!(
        "{} rows in {} archives in {}, {:.1} bytes a row, {} on disk ({:.2} to 1){planted}, {seconds:.1} s",
        made.rows,
        made.months,
        args.out.display(),
        made.bytes as f64 / made.rows.max(1) as f64,
        quantity(made.file_bytes as f64, "B"),
        made.bytes as f64 / made.file_bytes.max(1) as f64,
    ))?;
    Ok(Exit::Done)
}

fn month(text: &str) -> anyhow::Result<Month> {
    let parsed = text.split_once('-').and_then(|(year, month)| {
        Some(Month {
            year: year.parse().ok()?,
            month: month.parse().ok()?,
        })
    });
    let month = parsed.with_context(|| format!("--start: `{text}` is no month; write 2023-01"))?;
    if !(1..=12).contains(&month.month) {
        bail!("--start: `{text}` is no month; write 2023-01");
    }
    Ok(month)
}
