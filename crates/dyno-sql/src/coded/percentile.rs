//! Percentiles of values that come with how often they occur.

/// As fine as DataFusion weighs the two neighbours of a percentile.
const PRECISION: f64 = 1_000_000.0;

/// The percentile `share` (0 to 1) of values in rising order, each with its count; between two
/// values as DataFusion's `percentile_cont` is, so that both give the same bits.
pub(super) fn percentile(values: &[(i64, u64)], share: f64) -> Option<f64> {
    let count: u64 = values.iter().map(|(_, count)| count).sum();
    let last = count.checked_sub(1)?;
    let value_at = |index: u64| {
        let mut behind = 0;
        values
            .iter()
            .find(|(_, count)| {
                behind += count;
                behind > index
            })
            .map(|(value, _)| *value as f64)
    };
    let index = share * last as f64;
    let (lower, upper) = (index.floor() as u64, index.ceil() as u64);
    let low = value_at(lower)?;
    if lower == upper {
        return Some(low);
    }
    let weight = ((index - lower as f64) * PRECISION) as usize as f64 / PRECISION;
    Some(low + (value_at(upper)? - low) * weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_lies_between_the_values_around_its_place() {
        let values = [(-30, 1), (-20, 2), (5, 1)];
        assert_eq!(percentile(&values, 0.0), Some(-30.0));
        assert_eq!(percentile(&values, 0.5), Some(-20.0));
        assert_eq!(percentile(&values, 1.0), Some(5.0));
        assert_eq!(percentile(&values, 0.25), Some(-22.5));
        assert_eq!(percentile(&values[..1], 0.3), Some(-30.0));
        assert_eq!(percentile(&[], 0.5), None);
    }
}
