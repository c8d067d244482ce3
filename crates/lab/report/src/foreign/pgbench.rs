//! What pgbench prints at its end.

use dyno_record::{Better, Figures};

use super::{Reader, Source, figure};

pub(super) const READER: Reader = Reader {
    tool: "pgbench",
    knows: |source| {
        let has = |start: &str| source.text.lines().any(|line| line.starts_with(start));
        has("transaction type:") && has("tps = ")
    },
    read,
    unknown: &[
        "How far runs lie apart: a file has one run.",
        "Percentiles: only the mean and the deviation are printed (--log has each transaction).",
        "Whether the rate was level: checkpoints come minutes apart, and warm-up is counted.",
        "Settings and version of the server, and the machine.",
    ],
};

/// The rest of the line that begins with `start`.
fn after<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(start))
        .map(str::trim)
}

/// The number at the beginning of that rest.
fn number(text: &str, start: &str) -> Option<f64> {
    let rest = after(text, start)?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

fn read(source: &Source<'_>, figures: &mut Figures) -> Result<(), String> {
    let text = source.text;
    let rate = number(text, "tps = ").ok_or("there is no number after \"tps =\"")?;
    let case = after(text, "transaction type:").unwrap_or("transactions");
    let mut tps = figure(case, "", "throughput", "txn/s", Better::Higher, rate);
    tps.n = Some(1);
    tps.duration_s = number(text, "duration:");
    tps.latency_mean_s = number(text, "latency average =").map(|ms| ms / 1e3);
    // Processed of those asked for, or processed alone where a duration was asked for.
    tps.count = number(text, "number of transactions actually processed:");
    if text.contains("rate limit schedule lag") {
        // With `--rate` pgbench sends on a schedule, so requests in flight are not bound to the
        // number of clients and Little's law does not apply to that number.
        tps.open_loop = Some(true);
    } else {
        tps.in_flight = number(text, "number of clients:");
    }
    // A line that is missing counts as zero: pgbench before 15 states no failures, and skipped
    // transactions are stated only under --latency-limit.
    let lost = number(text, "number of failed transactions:").unwrap_or(0.0);
    let skipped = number(text, "number of transactions skipped:").unwrap_or(0.0);
    let done = tps.count.unwrap_or(0.0);
    figures.counts.push(dyno_record::Count {
        subject: "transactions that were asked for".to_owned(),
        stated: done,
        expected: done + lost + skipped,
        why: "those processed, failed and skipped".to_owned(),
        about: false,
    });
    figures.figures.push(tps);
    Ok(())
}
