//! What is compared has units that can be converted into each other.

use dyno_record::{Figures, Property, QuotedFigure};

use super::unit::convert;
use super::{Finding, Severity, off_by, pair};
use crate::units::number;

/// Factors by which a conversion goes wrong: prefixes, bits, and units of time.
const SLIPS: [f64; 8] = [8.0, 60.0, 1e3, 1024.0, 3600.0, 1e6, 1_048_576.0, 1e9];

/// A factor that is a slip is one to within its digits.
const TOLERANCE: f64 = 0.005;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let claims = figures.claims.iter().filter_map(|claim| {
        let (winner, loser) = pair(figures, claim)?;
        unlike(&claim.text, &loser.unit, &winner.unit)
    });
    let limits = figures
        .figures
        .iter()
        .filter_map(|f| under_limit(figures, f));
    let values = figures.properties.iter().filter_map(property);
    claims.chain(limits).chain(values).collect()
}

fn finding(subject: &str, seen: String) -> Finding {
    Finding::new(
        "units",
        Severity::Error,
        subject,
        seen,
        "Numbers in different units say nothing about each other, and a slip in a unit is a \
         factor of 8, 60 or 1000.",
        "Convert both into one unit, and say how many of the one make the other.",
    )
}

fn unlike(subject: &str, a: &str, b: &str) -> Option<Finding> {
    let differs = convert(1.0, a, b).is_none();
    differs.then(|| finding(subject, format!("\"{a}\" cannot be compared with \"{b}\"")))
}

/// A limit in another unit needs a factor; one in the same kind of unit has a factor already.
fn under_limit(figures: &Figures, figure: &QuotedFigure) -> Option<Finding> {
    let name = figure.limit.as_ref()?;
    let limit = figures.limits.iter().find(|limit| &limit.name == name)?;
    let Some(stated) = figure.limit_per_unit else {
        return unlike(&figure.id, &limit.unit, &figure.unit);
    };
    let factor = convert(1.0, &limit.unit, &figure.unit)?;
    // 4 for data that unpacks to four times its size is a factor of its own, 1000 is a slip.
    let slip = (stated / factor).max(factor / stated);
    let slipped = SLIPS.iter().any(|one| off_by(slip, *one) < TOLERANCE);
    slipped.then(|| {
        let seen = format!(
            "limit_per_unit turns {} into {} by {}, where it takes {}",
            limit.unit,
            figure.unit,
            number(stated),
            number(factor)
        );
        finding(&figure.id, seen)
    })
}

fn property(property: &Property) -> Option<Finding> {
    let mut units = property.values.iter().filter_map(|v| v.unit.as_ref());
    units.find_map(|unit| unlike(&property.subject, unit, &property.unit))
}
