//! A result of ClickBench: three times for each of its queries.

use dyno_record::{Better, Count, Figures};

use super::{Reader, Source, figure, list, numbers, spread, text};

pub(super) const READER: Reader = Reader {
    tool: "ClickBench",
    knows: |source| {
        let json = &source.json;
        json.get("load_time").is_some() && json.pointer("/result/0/0").is_some()
    },
    read,
    unknown: &[
        "Whether the answers are right: the benchmark does not compare them.",
        "How far runs lie apart: the first is cold, so two are left, and the better one is quoted.",
        "Versions and settings, unless the comment says so.",
        "What else ran on the machine: most are rented.",
    ],
};

fn read(source: &Source<'_>, figures: &mut Figures) -> Result<(), String> {
    let system = text(&source.json, "/system").unwrap_or("system");
    let machine = text(&source.json, "/machine").map(str::to_owned);
    let queries = list(&source.json, "/result")?;
    let mut answered = 0;
    for (at, runs) in queries.iter().enumerate() {
        let asked = runs.as_array().map_or(0, Vec::len);
        let times = numbers(Some(runs));
        // A query that failed has null in place of a time, which `numbers` leaves out.
        if times.len() == asked && asked > 0 {
            answered += 1;
        }
        // The first run reads from the disk; of the others ClickBench takes the fastest.
        let hot = times.get(1..).unwrap_or_default();
        let Some(best) = hot.iter().copied().reduce(f64::min) else {
            continue;
        };
        let case = format!("query {at}, hot");
        let mut time = figure(&case, system, "time", "s", Better::Lower, best);
        spread(&mut time, hot);
        time.duration_s = Some(best);
        time.machine.clone_from(&machine);
        figures.figures.push(time);
    }
    figures.counts.push(Count {
        subject: "queries that were answered".to_owned(),
        stated: f64::from(answered),
        expected: queries.len() as f64,
        why: "those in the file".to_owned(),
        about: false,
    });
    Ok(())
}
