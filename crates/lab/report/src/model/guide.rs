//! Tables that say what to choose, as far as verdicts carry and no farther.

use dyno_record::{CasePlan, Table};

use super::OURS;
use super::cell::{Cell, FilledTable};
use super::figure::Ratio;
use super::pairing::{deciding_ratio, ratio_between};
use super::report::Report;
use super::side_by_side::{Named, named};
use crate::units::{counted, is_size, ratio_text, unit_of};

/// Fills a guide: a row for each case and metric.
pub(crate) fn fill(table: &Table, report: &Report) -> FilledTable {
    let mut notes = Vec::new();
    let mut rows = Vec::new();
    for row in &table.rows {
        let Some(case) = report.cases.iter().find(|c| c.plan.name == row.case) else {
            notes.push(format!("{}: case {} was not run", row.label, row.case));
            continue;
        };
        let metric = row.metric.as_deref().unwrap_or(&case.plan.metric);
        let advice = advice(&case.plan, metric, &systems(table, &case.plan), report);
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

/// What page one advises between ours and the peers of a case; nothing where no peer was to run.
/// A verdict that is open advises nothing, whatever the ratio.
pub(crate) fn choice(report: &Report, case: &CasePlan) -> Option<String> {
    case.rivals().next()?;
    match deciding_ratio(report, &case.name, OURS) {
        Some((_, ratio)) if ratio.is_open() => Some(format!("nothing yet: {}", ratio.reason)),
        Some(_) => {
            let names = std::iter::once(OURS).chain(case.rivals());
            let systems: Vec<Named<'_>> = names.map(Named::plain).collect();
            Some(advice(case, &case.metric, &systems, report).choose)
        }
        None => Some("nothing: no peer was measured".to_owned()),
    }
}

/// Those that the table names, or all of the case.
fn systems<'a>(table: &'a Table, case: &'a CasePlan) -> Vec<Named<'a>> {
    let stated = named(&table.columns);
    if stated.is_empty() {
        return case.compared().map(|name| Named::plain(name)).collect();
    }
    let part = |named: &Named<'_>| case.systems.iter().any(|system| system == named.system);
    stated.into_iter().filter(part).collect()
}

struct Advice {
    choose: String,
    why: String,
}

/// The verdicts between systems of one case in one metric.
struct Verdicts<'a> {
    case: &'a CasePlan,
    metric: &'a str,
    report: &'a Report,
}

impl Verdicts<'_> {
    fn between(&self, a: &Named<'_>, b: &Named<'_>) -> Option<Ratio> {
        let pair = (a.system, b.system);
        ratio_between(self.report, self.case, self.metric, pair)
    }

    /// By how much `a` is shown to be better than `b`, if it is.
    fn beats(&self, a: &Named<'_>, b: &Named<'_>) -> Option<f64> {
        let ratio = self.between(a, b)?;
        (ratio.verdict == "faster").then_some(ratio.ratio)
    }

    /// Why a system was judged against none of the others: it is then neither chosen nor passed
    /// over.
    fn unjudged(&self, named: &Named<'_>, able: &[Named<'_>]) -> Option<String> {
        let others = able.iter().filter(|other| other.system != named.system);
        let ratios: Vec<Ratio> = others
            .filter_map(|other| self.between(named, other))
            .collect();
        let first = ratios
            .first()
            .filter(|_| ratios.iter().all(Ratio::is_open))?;
        Some(format!("{}: {}", first.verdict, first.reason))
    }

    /// What speaks for the systems that no other beats, in sentences.
    fn reasons(&self, unbeaten: &[&Named<'_>], able: &[Named<'_>]) -> Vec<String> {
        let better = if is_size(&unit_of(self.case, self.metric).0) {
            "smaller"
        } else {
            "better"
        };
        let beaten_by = |winner: &Named<'_>| -> Vec<String> {
            let beaten = able
                .iter()
                .filter_map(|other| Some((self.beats(winner, other)?, other.name)));
            beaten
                .map(|(ratio, name)| format!("{} {name}", ratio_text(ratio)))
                .collect()
        };
        let mut why: Vec<String> = unbeaten
            .iter()
            .map(|winner| (winner.name, beaten_by(winner)))
            .filter(|(_, beaten)| !beaten.is_empty())
            .map(|(name, beaten)| format!("{name} is {better}: {}", beaten.join(", ")))
            .collect();
        if unbeaten.len() > 1 {
            let names: Vec<&str> = unbeaten.iter().map(|named| named.name).collect();
            why.push(format!(
                "no difference is shown between {}",
                names.join(" and ")
            ));
        }
        why
    }
}

/// The systems that no other is shown to beat, and those that they beat.
fn advice(case: &CasePlan, metric: &str, systems: &[Named<'_>], report: &Report) -> Advice {
    let verdicts = Verdicts {
        case,
        metric,
        report,
    };
    // A system that promises less is not chosen for being faster.
    let (less, as_much): (Vec<Named<'_>>, Vec<Named<'_>>) = systems
        .iter()
        .partition(|named| case.promises_less.contains_key(named.system));
    let (measured, out): (Vec<Named<'_>>, Vec<Named<'_>>) = as_much
        .iter()
        .partition(|named| report.figure(&case.name, named.system, metric).is_some());
    let mut able = Vec::new();
    let mut set_aside = Vec::new();
    // A system that was judged against none of the others is set aside first. It would otherwise be
    // unbeaten, and so recommended, for the only reason that nothing is known of it.
    for named in &measured {
        match verdicts.unjudged(named, &measured) {
            Some(reason) => set_aside.push((named.name, reason)),
            None => able.push(*named),
        }
    }
    if let (true, Some((_, reason))) = (able.is_empty(), set_aside.first()) {
        return Advice {
            choose: "nothing: no difference was judged".to_owned(),
            why: reason.clone(),
        };
    }
    let unbeaten: Vec<&Named<'_>> = able
        .iter()
        .filter(|named| {
            let mut others = able.iter();
            others.all(|other| verdicts.beats(other, named).is_none())
        })
        .collect();
    let mut why = verdicts.reasons(&unbeaten, &able);
    let aside = set_aside.iter();
    why.extend(aside.map(|(name, reason)| format!("{name} is {reason}")));
    why.extend(out.iter().map(
        |named| match report.trouble_count(&case.name, named.system) {
            0 => format!("{} was not measured", named.name),
            times => format!(
                "{} failed or hung {}",
                named.name,
                counted(times as u64, "time")
            ),
        },
    ));
    let less = less.iter();
    why.extend(less.map(|named| format!("{} promises less", named.name)));
    let names: Vec<&str> = unbeaten.iter().map(|named| named.name).collect();
    // One able system is the choice, not "any".
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
