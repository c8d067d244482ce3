//! Tables that say what to choose, as far as verdicts carry and no farther.

use dyno_record::{CasePlan, Sample, Table};

use super::pairing::ratio_between;
use super::report::Report;
use super::side_by_side::{Named, named};
use super::steady::{NOT_JUDGED, NOT_STEADY};
use super::table::{Cell, FilledTable};
use crate::units::{counted, ratio_text};

/// Fills a guide: a row for each case and metric.
pub(crate) fn fill(table: &Table, report: &Report, samples: &[Sample]) -> FilledTable {
    let mut notes = Vec::new();
    let mut rows = Vec::new();
    for row in &table.rows {
        let Some(case) = report.cases.iter().find(|c| c.plan.name == row.case) else {
            notes.push(format!("{}: case {} was not run", row.label, row.case));
            continue;
        };
        let metric = row.metric.as_deref().unwrap_or(&case.plan.metric);
        let advice = advice(
            &case.plan,
            metric,
            &systems(table, &case.plan),
            report,
            samples,
        );
        rows.push(vec![
            Cell::text(&row.label),
            Cell::text(advice.choose),
            Cell::text(advice.why),
        ]);
    }
    FilledTable {
        title: table.title.clone(),
        columns: vec![String::new(), "choose".to_owned(), "why".to_owned()],
        rows,
        notes,
    }
}

/// Those that the table names, or all of the case.
fn systems<'a>(table: &'a Table, case: &'a CasePlan) -> Vec<Named<'a>> {
    let own = |name: &'a String| Named { system: name, name };
    let stated = named(&table.columns);
    if stated.is_empty() {
        return case.systems.iter().map(own).collect();
    }
    let part = |named: &Named<'_>| case.systems.iter().any(|system| system == named.system);
    stated.into_iter().filter(part).collect()
}

struct Advice {
    choose: String,
    why: String,
}

/// The systems that no other is shown to beat, and those that they beat.
fn advice(
    case: &CasePlan,
    metric: &str,
    systems: &[Named<'_>],
    report: &Report,
    samples: &[Sample],
) -> Advice {
    let (able, out): (Vec<Named<'_>>, Vec<Named<'_>>) = systems
        .iter()
        .partition(|named| report.figure(&case.name, named.system, metric).is_some());
    let between = |a: &Named<'_>, b: &Named<'_>| {
        let pair = (a.system, b.system);
        ratio_between(&report.run, case, samples, metric, pair)
    };
    // A system that was judged against no other is neither chosen nor passed over.
    let unjudged = |named: &Named<'_>| -> Option<String> {
        let others = able.iter().filter(|other| other.system != named.system);
        let reasons: Vec<Option<String>> = others
            .filter_map(|other| between(named, other))
            .map(|ratio| {
                let open = [NOT_JUDGED, NOT_STEADY].contains(&ratio.verdict);
                open.then(|| format!("{}: {}", ratio.verdict, ratio.reason))
            })
            .collect();
        reasons.iter().all(Option::is_some).then_some(())?;
        reasons.into_iter().flatten().next()
    };
    let set_aside: Vec<(&Named<'_>, String)> = able
        .iter()
        .filter_map(|named| Some((named, unjudged(named)?)))
        .collect();
    if !able.is_empty() && set_aside.len() == able.len() {
        let (_, reason) = &set_aside[0];
        return Advice {
            choose: "nothing: no difference was judged".to_owned(),
            why: reason.clone(),
        };
    }
    let able: Vec<Named<'_>> = able
        .iter()
        .filter(|named| {
            set_aside
                .iter()
                .all(|(aside, _)| aside.system != named.system)
        })
        .copied()
        .collect();
    let beats = |a: &Named<'_>, b: &Named<'_>| -> Option<f64> {
        let ratio = between(a, b)?;
        (ratio.verdict == "faster").then_some(ratio.ratio)
    };
    let unbeaten: Vec<&Named<'_>> = able
        .iter()
        .filter(|named| able.iter().all(|other| beats(other, named).is_none()))
        .collect();
    let better = if metric == "bytes" {
        "smaller"
    } else {
        "better"
    };
    let mut why: Vec<String> = Vec::new();
    for winner in &unbeaten {
        let beaten: Vec<String> = able
            .iter()
            .filter_map(|other| {
                Some(format!(
                    "{} {}",
                    ratio_text(beats(winner, other)?),
                    other.name
                ))
            })
            .collect();
        if !beaten.is_empty() {
            why.push(format!(
                "{} is {better}: {}",
                winner.name,
                beaten.join(", ")
            ));
        }
    }
    let names: Vec<&str> = unbeaten.iter().map(|named| named.name).collect();
    if names.len() > 1 {
        why.push(format!(
            "no difference is shown between {}",
            names.join(" and ")
        ));
    }
    why.extend(
        set_aside
            .iter()
            .map(|(named, reason)| format!("{} is {reason}", named.name)),
    );
    for named in &out {
        let times = report.trouble_count(&case.name, named.system);
        let often = counted(times as u64, "time");
        why.push(match times {
            0 => format!("{} was not measured", named.name),
            _ => format!("{} failed or hung {often}", named.name),
        });
    }
    let all = able.len() > 1 && names.len() == able.len();
    Advice {
        choose: match names.as_slice() {
            [] => "nothing: none ended well".to_owned(),
            _ if all => "any: the samples show no difference".to_owned(),
            names => names.join(" or "),
        },
        why: why.join("; "),
    }
}
