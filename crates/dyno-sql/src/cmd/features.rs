//! `dyno-sql features`: makes a training set of the spots of a table.

use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};

use crate::args::features::{FeaturesArgs, STANDARD_OUTPUT};
use crate::features::{LeftOut, TrainingSetSummary, make};

/// Makes the set and prints what came of it: to `out`, or as a message if the set itself goes to
/// standard output.
///
/// # Errors
/// Those of [`make`]; Ctrl-C.
pub async fn run(args: FeaturesArgs, out: &mut dyn Write) -> Result<()> {
    // Dropping the work ends the sort's threads, and removes what it spilled and what is not
    // complete of the file.
    let set = tokio::select! {
        set = make(&args) => set?,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    };
    let summary = if args.json {
        serde_json::to_string(&set)?
    } else {
        text(&args, &set)
    };
    if args.out == Path::new(STANDARD_OUTPUT) {
        eprintln!("{summary}");
    } else {
        writeln!(out, "{summary}")?;
    }
    Ok(())
}

/// What was made, in sentences.
fn text(args: &FeaturesArgs, set: &TrainingSetSummary) -> String {
    let name = if args.out == Path::new(STANDARD_OUTPUT) {
        "standard output".to_owned()
    } else {
        args.out.display().to_string()
    };
    let rate = set.spots as f64 / set.seconds.max(1e-9);
    let mut text = format!(
        "{} rows in the order of time in {name}, {:.2} MB, of {} spots; {:.2} s, {:.2} M spots/s",
        set.rows,
        set.bytes as f64 / 1e6,
        set.spots,
        set.seconds,
        rate / 1e6,
    );
    text.push_str(&left_out(&set.left_out));
    if set.rows_without_indices > 0 {
        text.push_str(&format!(
            "\n{} rows have no solar indices, because the table has none of their days",
            set.rows_without_indices
        ));
    }
    text
}

fn left_out(left_out: &LeftOut) -> String {
    let Some(first) = &left_out.first else {
        return "\n0 spots left out".to_owned();
    };
    let why = match first.grid.as_str() {
        "" => "is missing".to_owned(),
        grid => format!("{grid:?} is not a grid"),
    };
    format!(
        "\n{} spots left out, because a grid is missing or is not a grid; the first is spot {}, whose \
         {}'s grid {why}",
        left_out.rows, first.id, first.station
    )
}
