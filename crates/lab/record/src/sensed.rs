//! What the processors' sensors showed around a sample.

use serde::{Deserialize, Serialize};

/// Clocks and temperatures just before a sample and just after it. `None` means that they could not
/// be read; the run says why ([`Run::unread`](crate::Run::unread)).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sensed {
    /// MHz, over all logical processors and both readings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_mhz: Option<Span>,
    /// Degrees Celsius, over all sensors and both readings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<Span>,
}

impl Sensed {
    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.clock_mhz.is_none() && self.temperature_c.is_none()
    }
}

/// The lowest, the middle and the highest of several readings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Lowest.
    pub min: f64,
    /// Middle one; of an even number, the upper of the two in the middle.
    pub median: f64,
    /// Highest.
    pub max: f64,
}

impl Span {
    /// Of numbers in any order; `None` without one.
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Span> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        Some(Span {
            min: *values.first()?,
            median: values[values.len() / 2],
            max: *values.last()?,
        })
    }

    /// All spans together: the lowest of them, the middle one of their medians, and the highest.
    pub fn over(spans: &[Span]) -> Option<Span> {
        Some(Span {
            min: Span::from_values(spans.iter().map(|span| span.min))?.min,
            median: Span::from_values(spans.iter().map(|span| span.median))?.median,
            max: Span::from_values(spans.iter().map(|span| span.max))?.max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_holds_all_readings() {
        assert_eq!(Span::from_values([]), None);
        let span = Span::from_values([2_300.0, 3_100.0, 2_400.0]).expect("three");
        assert_eq!(
            (span.min, span.median, span.max),
            (2_300.0, 2_400.0, 3_100.0)
        );
        let other = Span::from_values([1_200.0]).expect("one");
        let both = Span::over(&[span, other]).expect("two");
        assert_eq!((both.min, both.max), (1_200.0, 3_100.0));
        assert_eq!(Span::over(&[]), None);
    }
}
