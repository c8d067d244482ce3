//! `dyno ab OLD NEW`: two commands of the user's against each other.

mod checkout;

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use dyno_ab::{Answer, Figure, Length, Outcome, Plan, Side, judge, measure};
use dyno_report::{quantity, ratio_text};
use dyno_suite::Stop;

use crate::args::AbArgs;
use crate::exit::Exit;
use crate::terminal;
use checkout::Checkouts;

/// With `--precision` no more blocks run.
const BLOCKS_MAX: u32 = 200;

pub fn run(args: &AbArgs, stop: &Stop) -> anyhow::Result<Exit> {
    // Held until the measurement is over, because dropping it removes the worktrees.
    let checkouts = match &args.git {
        Some((base, head)) => Some(Checkouts::make(base, head, &args.old, stop)?),
        None => None,
    };
    let side = |command: &str, dir| Side {
        command: command.to_owned(),
        dir,
    };
    let (old, new) = match &checkouts {
        Some(made) => (
            side(&args.new, Some(made.base.clone())),
            side(&args.new, Some(made.head.clone())),
        ),
        None => (side(&args.old, None), side(&args.new, None)),
    };
    let plan = Plan {
        old,
        new,
        prepare: args.prepare.clone(),
        verify: args.verify.clone(),
        length: match args.precision {
            Some(share) => Length::Precision(share, BLOCKS_MAX),
            None => Length::Blocks(args.runs),
        },
        time_limit: args.time_limit,
        seed: drawn(),
    };
    let measured = measure(&plan, stop, &mut |done, most| {
        if terminal::shows_progress() {
            eprint!("\r{done} of {most} blocks");
        }
    });
    if terminal::shows_progress() {
        eprintln!();
    }
    let outcome = judge(&measured?, args.max_slowdown);
    let text = match (args.json, args.markdown) {
        (true, _) => serde_json::to_string_pretty(&outcome)?,
        (_, true) => markdown(args, &outcome),
        _ => plain(args, &outcome),
    };
    terminal::print(&text)?;
    // Three answers, three exit codes: a script must be able to tell `not slower` from `could not
    // tell`.
    Ok(match outcome.answer {
        Answer::NotSlower => Exit::Done,
        Answer::Slower => Exit::No,
        Answer::NotEnoughEvidence => Exit::NotEnoughEvidence,
    })
}

/// A seed for the order of the runs, which must not be the same each time.
fn drawn() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |since| since.as_nanos() as u64)
}

/// What OLD and NEW are.
fn named(args: &AbArgs) -> [String; 2] {
    match &args.git {
        Some((base, head)) => [
            format!("{} at {base}", args.new),
            format!("{} at {head}", args.new),
        ],
        None => [args.old.clone(), args.new.clone()],
    }
}

const COLUMNS: [&str; 7] = [
    "",
    "OLD",
    "NEW",
    "ratio",
    "95% interval",
    "noise",
    "verdict",
];

fn cells(figure: &Figure) -> [String; 7] {
    [
        figure.name.to_owned(),
        quantity(figure.old, figure.unit),
        quantity(figure.new, figure.unit),
        ratio_text(figure.ratio),
        format!("{:.3} .. {:.3}", figure.low, figure.high),
        format!("±{:.1}%", figure.noise * 100.0),
        verdict(figure).to_owned(),
    ]
}

/// The verdict in the words of its unit: less memory is smaller and not faster.
fn verdict(figure: &Figure) -> &'static str {
    match (figure.unit, figure.verdict) {
        ("B", "faster") => "smaller",
        ("B", "slower") => "larger",
        (_, verdict) => verdict,
    }
}

fn plain(args: &AbArgs, outcome: &Outcome) -> String {
    let [old, new] = named(args);
    let mut table = terminal::table(&COLUMNS);
    for figure in &outcome.figures {
        table.add_row(cells(figure));
    }
    format!(
        "OLD: {old}\nNEW: {new}\n{} blocks of OLD, NEW and OLD again\n\n{table}\n\n{}",
        outcome.blocks,
        last_lines(outcome)
    )
}

fn markdown(args: &AbArgs, outcome: &Outcome) -> String {
    let [old, new] = named(args);
    let mut text = format!(
        "{}\n\n| {} |\n|---|--:|--:|--:|--:|--:|---|\n",
        last_lines(outcome),
        COLUMNS.join(" | ")
    );
    for figure in &outcome.figures {
        // Writing to a string does not fail.
        let _ = writeln!(text, "| {} |", cells(figure).join(" | "));
    }
    let _ = write!(
        text,
        "\nOLD is `{old}`, NEW is `{new}`; {} blocks of OLD, NEW and OLD again, by `dyno ab`.",
        outcome.blocks
    );
    text
}

fn last_lines(outcome: &Outcome) -> String {
    match outcome.same_output {
        Some(false) => format!("{}\nOLD and NEW wrote different outputs.", outcome.sentence),
        _ => outcome.sentence.clone(),
    }
}
