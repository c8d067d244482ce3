//! The output of `dyno tpcc run`, as text and as JSON.

use dyno_report::{counted, quantity};
use dyno_rigs::tpcc::{Measured, OfKind};
use dyno_tpcc::checks::Violation;
use serde_json::{Value, json};

use crate::args::TpccRunArgs;
use crate::terminal;

/// The note that is printed below all figures.
const NOT_AUDITED: &str =
    "After TPC-C, unaudited: transactions a second by type, not comparable with published results.";

/// The violations of conditions, without any figure.
pub fn wrong(when: &str, violations: &[Violation]) -> String {
    let mut text = format!("the database is wrong {when}, so there is no throughput:\n");
    for violation in violations {
        text += &format!("  {violation}\n");
    }
    text
}

/// The figures, as text or as JSON.
pub fn report(args: &TpccRunArgs, measured: &Measured) -> anyhow::Result<String> {
    if args.json {
        Ok(serde_json::to_string_pretty(&as_json(args, measured))?)
    } else {
        Ok(as_text(args, measured))
    }
}

fn as_text(args: &TpccRunArgs, measured: &Measured) -> String {
    let mut table = terminal::table(&[
        "transaction",
        "committed",
        "a second",
        "p50",
        "p95",
        "p99",
        "tried again",
        "rolled back",
        "given up",
        "unknown",
    ]);
    for (kind, of) in &measured.of {
        let mut row = vec![
            kind.name().to_owned(),
            of.committed.to_string(),
            format!("{:.0}", of.committed as f64 / measured.seconds.max(1e-9)),
        ];
        row.extend([0.5, 0.95, 0.99].map(|p| latency(of, p)));
        row.extend(
            [of.tried_again, of.rolled_back, of.given_up, of.unknown].map(|n| n.to_string()),
        );
        table.add_row(row);
    }
    let incomplete = if measured.cut_short.is_some() {
        "INCOMPLETE: "
    } else {
        ""
    };
    format!(
        "{table}\n{incomplete}{}: {:.0} transactions a second, {}, {:.1} s, {:.2}% of tries aborted by others\n{NOT_AUDITED}",
        args.on.on,
        measured.rate(),
        counted(args.clients.into(), "client"),
        measured.seconds,
        measured.aborted_share() * 100.0,
    )
}

fn latency(of: &OfKind, p: f64) -> String {
    match of.latencies.quantile_ns(p) {
        Some(ns) => quantity(ns as f64 / 1e9, "s"),
        None => "-".to_owned(),
    }
}

fn as_json(args: &TpccRunArgs, measured: &Measured) -> Value {
    let of = measured.of.iter().map(|(kind, of)| {
        let ms = |p| of.latencies.quantile_ns(p).map(|ns| ns as f64 / 1e6);
        let figures = json!({
            "committed": of.committed,
            "per_second": of.committed as f64 / measured.seconds.max(1e-9),
            "latency_p50_ms": ms(0.5),
            "latency_p95_ms": ms(0.95),
            "latency_p99_ms": ms(0.99),
            "tried_again": of.tried_again,
            "rolled_back": of.rolled_back,
            "given_up": of.given_up,
            "unknown": of.unknown,
        });
        (kind.name().to_owned(), figures)
    });
    json!({
        "on": args.on.on.to_string(),
        "clients": args.clients,
        "seconds": measured.seconds,
        "per_second": measured.rate(),
        "aborted_share": measured.aborted_share(),
        "incomplete": measured.cut_short.as_ref().map(ToString::to_string),
        "of": Value::Object(of.collect()),
        "note": NOT_AUDITED,
    })
}
