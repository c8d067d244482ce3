//! A row of the raw table: an invocation as text.

use dyno_record::{Arm, Outcome, Sample};
use serde::Serialize;

use crate::units::{number, quantity, share_text};

#[derive(Serialize)]
pub(super) struct RawRow {
    case: String,
    system: String,
    block: u32,
    at: String,
    outcome: String,
    bad: bool,
    wall: String,
    metrics: String,
    answer: String,
    usage: String,
    facts: String,
}

pub(super) fn raw_row(sample: &Sample) -> RawRow {
    let usage = &sample.usage;
    let used = [
        ("user", usage.user_s.map(|v| quantity(v, "s"))),
        ("system", usage.system_s.map(|v| quantity(v, "s"))),
        (
            "peak",
            usage.peak_rss_bytes.map(|v| quantity(v as f64, "B")),
        ),
        ("steal", usage.steal.map(share_text)),
        ("load", usage.load.map(|v| format!("{v:.2}"))),
    ];
    let used = used.into_iter().map(|(name, value)| match value {
        Some(value) => format!("{name} {value}"),
        None => format!("{name} not available"),
    });
    let pairs = |items: Vec<String>| items.join(", ");
    RawRow {
        case: sample.case.clone(),
        system: match sample.arm {
            Arm::Main => sample.system.clone(),
            Arm::Control => format!("{} again", sample.system),
            Arm::Beside => format!("{} beside the load", sample.system),
        },
        block: sample.block,
        at: quantity(sample.at_s, "s"),
        outcome: match &sample.outcome {
            Outcome::Done => "done".to_owned(),
            Outcome::Failed(reason) => format!("failed: {reason}"),
            Outcome::Hung(reason) => format!("hung: {reason}"),
        },
        bad: sample.outcome != Outcome::Done,
        wall: quantity(sample.wall_s, "s"),
        metrics: pairs(
            sample
                .metrics
                .iter()
                .map(|(k, v)| format!("{k} {}", number(*v)))
                .collect(),
        ),
        answer: match &sample.answer {
            Some(answer) => format!("{} / {}", answer.count, answer.checksum),
            None => "none".to_owned(),
        },
        usage: pairs(used.collect()),
        facts: pairs(
            sample
                .facts
                .iter()
                .map(|(k, v)| format!("{k}: {v}"))
                .collect(),
        ),
    }
}
