//! One row, one machine, one program; or a mark that says otherwise.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::{Figures, QuotedFigure};

use super::{Finding, Severity};

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let mut rows: BTreeMap<(&str, &str, &str), Vec<&QuotedFigure>> = BTreeMap::new();
    for figure in &figures.figures {
        let row = (&*figure.case, &*figure.system, &*figure.metric);
        rows.entry(row).or_default().push(figure);
    }
    rows.into_iter()
        .filter_map(|((case, system, metric), row)| {
            let machines = distinct(&row, |figure| figure.machine.as_deref());
            let programs = distinct(&row, |figure| figure.program.as_deref());
            let seen = match (machines.len() > 1, programs.len() > 1) {
                (true, _) => format!("machines: {}", machines.join(", ")),
                (_, true) => format!("programs: {}", programs.join(", ")),
                _ => return None,
            };
            (!row.iter().all(|figure| figure.marked)).then(|| Finding {
                rule: "mixed-row",
                severity: Severity::Error,
                subject: format!("{metric} of {case} on {system}"),
                seen,
                why: "A difference between them is taken for a difference of what is compared."
                    .to_owned(),
                advice: "Mark what differs in the row, with the limits of each machine.".to_owned(),
            })
        })
        .collect()
}

fn distinct<'a>(
    row: &[&'a QuotedFigure],
    pick: impl Fn(&'a QuotedFigure) -> Option<&'a str>,
) -> Vec<&'a str> {
    let set: BTreeSet<&str> = row.iter().filter_map(|figure| pick(figure)).collect();
    set.into_iter().collect()
}
