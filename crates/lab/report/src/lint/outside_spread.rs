//! A value lies inside its own spread.

use dyno_record::{Figures, QuotedFigure};

use super::{Finding, Severity};
use crate::units::quantity;

/// Value and ends are printed with different digits.
const ROUNDED: f64 = 0.005;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures.figures.iter().filter_map(judge).collect()
}

fn judge(figure: &QuotedFigure) -> Option<Finding> {
    let show = |value: f64| quantity(value, &figure.unit);
    let room = figure.value.abs() * ROUNDED;
    let seen = match (figure.low, figure.high) {
        // Ends that are swapped would put every value outside, so that is said first and alone.
        (Some(low), Some(high)) if low > high => {
            format!("the spread goes from {} down to {}", show(low), show(high))
        }
        (Some(low), _) if figure.value < low - room => {
            format!("{} is below its low of {}", show(figure.value), show(low))
        }
        (_, Some(high)) if figure.value > high + room => {
            format!("{} is above its high of {}", show(figure.value), show(high))
        }
        _ => return None,
    };
    Some(Finding::new(
        "outside-spread",
        Severity::Error,
        &figure.id,
        seen,
        "A median lies among the samples: value and spread are of different runs, or one of them \
         is mistyped.",
        "Compute value and spread from the same samples, in one place.",
    ))
}
