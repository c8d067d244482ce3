//! Reads what pytest-benchmark writes with `--benchmark-json`.

use dyno_record::{Better, Figures};

use super::{Reader, Source, figure, list, mean_of, number, numbers, small, text};

pub(super) const READER: Reader = Reader {
    tool: "pytest-benchmark",
    knows: |source| source.json.pointer("/benchmarks/0/stats/rounds").is_some(),
    read,
    unknown: &[
        "How far processes lie apart: all rounds are of one interpreter.",
        "Whether the answers were right, unless the test asserts it.",
        "What else ran on the machine.",
    ],
};

fn read(source: &Source<'_>, figures: &mut Figures) -> Result<(), String> {
    for run in list(&source.json, "/benchmarks")? {
        let name = text(run, "/fullname")
            .or(text(run, "/name"))
            .unwrap_or("benchmark");
        let value = number(run, "/stats/median")?;
        let mut time = figure(name, "", "time", "s", Better::Lower, value);
        time.n = Some(small(number(run, "/stats/rounds")?));
        time.low = Some(number(run, "/stats/min")?);
        time.high = Some(number(run, "/stats/max")?);
        // A round calls the function `iterations` times and states the time of one call, so the
        // interval on the clock is that many times longer.
        let inner = number(run, "/stats/iterations").unwrap_or(1.0);
        time.duration_s = Some(value * inner);
        figures.figures.push(time);
        let data = numbers(run.pointer("/stats/data"));
        let mean = number(run, "/stats/mean")?;
        figures.totals.extend(mean_of(name, mean, data));
    }
    Ok(())
}
