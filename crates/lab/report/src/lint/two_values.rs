//! One property has one value.

use dyno_record::{Figures, Property, PropertyValue};

use super::unit::convert;
use super::{Finding, Severity};
use crate::units::quantity;

/// The same value rounded twice.
const TOLERANCE: f64 = 0.03;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures.properties.iter().filter_map(judge).collect()
}

fn judge(property: &Property) -> Option<Finding> {
    let unit = |v: &PropertyValue| v.unit.clone().unwrap_or_else(|| property.unit.clone());
    let all = property.values.iter();
    let converted = all.map(|v| convert(v.value, &unit(v), &property.unit));
    // A unit that cannot be converted is the business of another rule.
    let converted: Vec<f64> = converted.collect::<Option<_>>()?;
    let values = || converted.iter().copied();
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    let differ = high - low > TOLERANCE * high.abs().max(low.abs());
    differ.then(|| {
        let statements: Vec<String> = property
            .values
            .iter()
            .map(|v| format!("{} ({})", quantity(v.value, &unit(v)), v.at))
            .collect();
        Finding {
            rule: "two-values",
            severity: Severity::Error,
            subject: property.subject.clone(),
            seen: statements.join(" and "),
            why: "At most one of them describes what was measured.".to_owned(),
            advice: "Take it from the machine by program, once.".to_owned(),
        }
    })
}
