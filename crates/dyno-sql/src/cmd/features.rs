//! `dyno-sql features`: makes a training set of the spots of a table.

use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};

use crate::args::features::{FeaturesArgs, STANDARD_OUTPUT};
use crate::features::{LeftOut, Made, make};

/// Makes the set and prints what came of it: to `out`, or as a message if the set itself goes to
/// standard output.
///
/// # Errors
/// Those of [`make`]; Ctrl-C.
pub async fn run(args: FeaturesArgs, out: &mut dyn Write) -> Result<()> {
    // Dropping the work ends the sort's threads, and removes what it spilled and what is not
    // complete of the file.
    let made = tokio::select! {
        made = make(&args) => made?,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    };
    let summary = if args.json {
        serde_json::to_string(&made)?
    } else {
        text(&args, &made)
    };
    if args.out == Path::new(STANDARD_OUTPUT) {
        eprintln!("{summary}");
    } else {
        writeln!(out, "{summary}")?;
    }
    Ok(())
}

/// What was made, in sentences.
fn text(args: &FeaturesArgs, made: &Made) -> String {
    let name = if args.out == Path::new(STANDARD_OUTPUT) {
        "standard output".to_owned()
    } else {
        args.out.display().to_string()
    };
    let rate = made.spots as f64 / made.seconds.max(1e-9);
    let mut text = format!(
        "{} rows in the order of time in {name}, {:.2} MB, of {} spots; {:.2} s, {:.2} M spots/s",
        made.rows,
        made.bytes as f64 / 1e6,
        made.spots,
        made.seconds,
        rate / 1e6,
    );
    text.push_str(&left_out(&made.left_out));
    if made.rows_without_indices > 0 {
        text.push_str(&format!(
            "\n{} rows have no solar indices, because the table has none of their days",
            made.rows_without_indices
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
