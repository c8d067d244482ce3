//! Reads what `hyperfine --export-json` writes.

use dyno_record::{Better, Figures};

use super::{Reader, Source, figure, list, mean_of, number, numbers, spread, text};

pub(super) const READER: Reader = Reader {
    tool: "hyperfine",
    knows: |source| {
        let first = source.json.pointer("/results/0");
        first.is_some_and(|run| run.get("command").is_some() && run.get("mean").is_some())
    },
    read,
    unknown: &[
        "The machine, and what else ran on it.",
        "Whether the commands did the same work: hyperfine does not compare their outputs.",
        "Drift: each command ran as one block and not in turn with the others.",
        "Whether caches were warm, since --warmup and --prepare are not in the file.",
    ],
};

fn read(source: &Source<'_>, figures: &mut Figures) -> Result<(), String> {
    for run in list(&source.json, "/results")? {
        let command = text(run, "/command").unwrap_or("command");
        let times = numbers(run.get("times"));
        let value = number(run, "/median").or_else(|_| number(run, "/mean"))?;
        let mut time = figure(
            "time of a command",
            command,
            "time",
            "s",
            Better::Lower,
            value,
        );
        spread(&mut time, &times);
        // An export without the list of times still has the ends of their range.
        time.low = time.low.or(number(run, "/min").ok());
        time.high = time.high.or(number(run, "/max").ok());
        time.n = time.n.filter(|n| *n > 0);
        time.duration_s = Some(value);
        // A command that a signal ended has null for a code.
        let codes = list(run, "/exit_codes").into_iter().flatten();
        let bad = codes.filter(|code| code.as_f64() != Some(0.0)).count();
        time.failed = u32::try_from(bad).unwrap_or(u32::MAX);
        figures.figures.push(time);
        let mean = number(run, "/mean")?;
        figures.totals.extend(mean_of(command, mean, times));
    }
    Ok(())
}
