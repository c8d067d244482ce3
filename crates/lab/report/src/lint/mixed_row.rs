//! One row, one machine, one program; or a mark that says otherwise.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::{Figures, QuotedFigure};

use super::{Finding, Severity};

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let mut rows: BTreeMap<(&str, &str), Vec<&QuotedFigure>> = BTreeMap::new();
    for figure in &figures.figures {
        let row = (&*figure.case, &*figure.metric);
        rows.entry(row).or_default().push(figure);
    }
    rows.into_iter().filter_map(judge).collect()
}

fn judge(((case, metric), row): ((&str, &str), Vec<&QuotedFigure>)) -> Option<Finding> {
    // A mark on some of the figures is not enough: a reader takes the others for measurements of
    // one machine.
    if row.iter().all(|figure| figure.marked) {
        return None;
    }
    let machines = distinct(&row, |figure| figure.machine.as_deref());
    // Two systems are two programs anyway.
    let systems: BTreeSet<&str> = row.iter().map(|figure| &*figure.system).collect();
    let two_programs = systems.into_iter().find_map(|system| {
        let of_system = |f: &&&QuotedFigure| f.system == system;
        let of_system: Vec<&QuotedFigure> = row.iter().filter(of_system).copied().collect();
        let programs = distinct(&of_system, |figure| figure.program.as_deref());
        (programs.len() > 1).then_some(programs)
    });
    let seen = match (machines.len() > 1, two_programs) {
        (true, _) => format!("machines: {}", machines.join(", ")),
        (false, Some(programs)) => format!("programs: {}", programs.join(", ")),
        (false, None) => return None,
    };
    Some(Finding::new(
        "mixed-row",
        Severity::Error,
        &format!("{metric} of {case}"),
        seen,
        "A difference between them is taken for a difference of what is compared.",
        "Mark what differs in the row, with the limits of each machine.",
    ))
}

/// The different values, where any is named.
fn distinct<'a>(
    row: &[&'a QuotedFigure],
    pick: impl Fn(&'a QuotedFigure) -> Option<&'a str>,
) -> Vec<&'a str> {
    let set: BTreeSet<Option<&str>> = row.iter().map(|figure| pick(figure)).collect();
    let unsaid = "one that is not named";
    set.into_iter().map(|one| one.unwrap_or(unsaid)).collect()
}
