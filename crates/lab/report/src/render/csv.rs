//! Every invocation as CSV (RFC 4180): one line for each metric of each, so that a spreadsheet or a
//! statistics program can take the figures apart in its own way.

use dyno_record::{Arm, Outcome, Sample};

use crate::model::Report;

const HEAD: &str = "case,system,arm,block,position,at_s,wall_s,outcome,metric,value\n";

pub(super) fn print(report: &Report) -> String {
    let mut text = HEAD.to_owned();
    for sample in &report.samples {
        let invocation = invocation(sample);
        let metrics = sample
            .metrics
            .iter()
            .map(|(name, value)| (name.as_str(), *value));
        let used = [
            ("cpu-user-s", sample.usage.user_s),
            ("cpu-system-s", sample.usage.system_s),
            (
                "peak-rss-bytes",
                sample.usage.peak_rss_bytes.map(|bytes| bytes as f64),
            ),
        ];
        let used = used
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        let mut values: Vec<(&str, String)> = metrics
            .chain(used)
            .map(|(name, value)| (name, value.to_string()))
            .collect();
        // An invocation that failed before it measured anything has a line all the same.
        if values.is_empty() {
            values.push(("", String::new()));
        }
        for (metric, value) in values {
            text.push_str(&format!("{invocation},{},{value}\n", cell(metric)));
        }
    }
    text
}

/// The columns that all lines of an invocation share.
fn invocation(sample: &Sample) -> String {
    let arm = match sample.arm {
        Arm::Main => "main",
        Arm::Control => "control",
        Arm::Beside => "beside",
    };
    let outcome = match &sample.outcome {
        Outcome::Done => "done".to_owned(),
        Outcome::Failed(reason) => format!("failed: {reason}"),
        Outcome::Hung(reason) => format!("hung: {reason}"),
    };
    let (block, position) = (sample.block.to_string(), sample.position.to_string());
    let (at_s, wall_s) = (sample.at_s.to_string(), sample.wall_s.to_string());
    let texts = [
        &sample.case,
        &sample.system,
        arm,
        &block,
        &position,
        &at_s,
        &wall_s,
        &outcome,
    ];
    texts.map(cell).join(",")
}

/// A text as a cell. A spreadsheet takes one that begins like a formula for a formula, so such a
/// text, which may come from a stranger's record, is set behind an apostrophe.
fn cell(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let is_number = text.parse::<f64>().is_ok();
    let text = if formula && !is_number {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn cells_are_quoted_and_never_formulas() {
        assert_eq!(cell("load-gz-1"), "load-gz-1");
        assert_eq!(cell("failed: a, \"b\"\nc"), "\"failed: a, \"\"b\"\"\nc\"");
        assert_eq!(cell("=1+1"), "'=1+1");
        assert_eq!(cell("-0.5"), "-0.5");
    }
}
