//! `dyno ingest gen`: archives from a seed.

use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::{Context, bail};
use dyno_ingest::generate::{Form, Generator, Month, Order};
use dyno_ingest_feeds::RowFormat;
use dyno_ingest_feeds::calendar::{Day, is_day};
use dyno_ingest_feeds::generate::{self as feeds, Making};
use dyno_report::{counted, quantity};
use dyno_suite::Stop;
use serde_json::json;

use super::all_threads;
use crate::args::GenerateArgs;
use crate::exit::Exit;
use crate::progress::WorkBar;
use crate::terminal;

pub fn run(args: &GenerateArgs, stop: &Stop) -> anyhow::Result<Exit> {
    match &args.feed.rows {
        Some(format) => archives(format, args, stop),
        None => months(args, stop),
    }
}

/// Generates archives of a feed that is read line by line.
fn archives(format: &RowFormat, args: &GenerateArgs, stop: &Stop) -> anyhow::Result<Exit> {
    // Refused and not ignored: a user who asks for four threads and gets one would measure the
    // wrong thing.
    if args.plain || args.shuffle || args.threads.is_some() {
        bail!(
            "--plain, --shuffle and --threads are for wspr; {} has one form and order, made by one \
             thread",
            args.feed.name
        );
    }
    let making = Making {
        rows: args.rows,
        archives: args.months,
        start: day(&args.start)?,
        seed: args.seed,
        quirks: args.quirks,
    };
    let started = Instant::now();
    let bar = WorkBar::new(args.rows, "rows");
    let made = feeds::write(
        format,
        &making,
        &args.out,
        &|rows| bar.add(rows),
        stop.flag(),
    )?;
    drop(bar);
    let seconds = started.elapsed().as_secs_f64();
    if args.json {
        terminal::print(&serde_json::to_string_pretty(&json!({
            "feed": args.feed.name,
            "rows": made.rows,
            "bad_rows": made.bad,
            "bytes": made.bytes,
            "file_bytes": made.file_bytes,
            "planted": made.planted,
            "files": made.files,
            "seconds": seconds,
        }))?)?;
        return Ok(Exit::Done);
    }
    terminal::print(&format!(
        "{} and {} of {} in {} in {}, {} on disk, {} planted, {seconds:.1} s",
        counted(made.rows, "row"),
        counted(made.bad, "bad line"),
        args.feed.name,
        counted(made.files.len() as u64, "archive"),
        args.out.display(),
        quantity(made.file_bytes as f64, "B"),
        match made.planted {
            1 => "1 oddity".to_owned(),
            n => format!("{n} oddities"),
        },
    ))?;
    Ok(Exit::Done)
}

/// A day, or the first one of a month.
fn day(text: &str) -> anyhow::Result<Day> {
    let numbers: Option<Vec<u16>> = text.split('-').map(|part| part.parse().ok()).collect();
    let found = match numbers.as_deref() {
        Some(&[year, month]) => Some((year, month, 1)),
        Some(&[year, month, day]) => Some((year, month, day)),
        _ => None,
    };
    let (year, month, day) = found
        .filter(|&(year, month, day)| is_day(year, month, day))
        .with_context(|| format!("--start: `{text}` is not a day; write 2023-01 or 2023-01-15"))?;
    Ok(Day::new(year, month, day))
}

fn months(args: &GenerateArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let generator = Generator {
        rows: args.rows,
        months: args.months,
        start: month(&args.start)?,
        seed: args.seed,
        quirks: args.quirks,
        form: if args.plain { Form::Plain } else { Form::Gzip },
        order: if args.shuffle {
            Order::Random
        } else {
            Order::Uploads
        },
    };
    let started = Instant::now();
    let bar = WorkBar::new(args.rows, "rows");
    let made = generator.write(
        &args.out,
        args.threads.unwrap_or_else(all_threads),
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
        1 => ", 1 oddity planted".to_owned(),
        n => format!(", {n} oddities planted"),
    };
    terminal::print(&format!(
        "{} in {} in {}, {:.1} bytes a row, {} on disk ({:.2} to 1){planted}, {seconds:.1} s",
        counted(made.rows, "row"),
        counted(made.months.into(), "archive"),
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
    let month =
        parsed.with_context(|| format!("--start: `{text}` is not a month; write 2023-01"))?;
    if !(1..=12).contains(&month.month) {
        bail!("--start: `{text}` is not a month; write 2023-01");
    }
    Ok(month)
}
