//! Reads `target/criterion/NAME/new/estimates.json`, which criterion.rs leaves for each benchmark.

use dyno_record::{Better, Figures};

use super::{Reader, Source, figure, number};

pub(super) const READER: Reader = Reader {
    tool: "criterion",
    knows: |source| {
        source
            .json
            .pointer("/median/confidence_interval/lower_bound")
            .is_some()
    },
    read,
    unknown: &[
        "The number of samples, which is in sample.json beside it.",
        "How far two runs lie apart: all samples are of one process, so its layout and its luck \
         are in every one of them, and the interval is too narrow.",
        "How much work an iteration does: the throughput is not in the file.",
        "The machine, and whether the build was one for release.",
    ],
};

/// Returns the name of the benchmark, which only the path has: the file at
/// `target/criterion/GROUP/NAME/new/estimates.json` is about `GROUP/NAME`.
fn name(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let start = parts.iter().rposition(|part| *part == "criterion");
    let end = parts.len().saturating_sub(2);
    // A path without the folder `criterion` (a file that was copied out) keeps its last folder as
    // the name.
    let start = start.map_or(end.saturating_sub(1), |at| at + 1);
    match parts.get(start..end) {
        Some(names) if !names.is_empty() => names.join("/"),
        _ => path.to_owned(),
    }
}

fn read(source: &Source<'_>, figures: &mut Figures) -> Result<(), String> {
    let at = |what: &str| number(&source.json, &format!("/median/{what}"));
    let name = name(source.name);
    let mut time = figure(
        &name,
        "",
        "time",
        "ns",
        Better::Lower,
        at("point_estimate")?,
    );
    time.low = Some(at("confidence_interval/lower_bound")?);
    time.high = Some(at("confidence_interval/upper_bound")?);
    figures.figures.push(time);
    Ok(())
}
