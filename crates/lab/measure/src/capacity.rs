//! The highest rate at which something still holds.

use crate::error::MeasureError;

/// Between which rates to look, and how closely.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CapacityOptions {
    /// The rate of the first probe.
    pub first: f64,
    /// No probe is below; when this one does not hold, none does.
    pub lowest: f64,
    /// No probe is above; when this one holds, that is the answer.
    pub highest: f64,
    /// The search ends when the lowest rate that failed is at most so many times the highest that
    /// held.
    pub precision: f64,
    /// The search ends after this many probes, with the best rate so far. It bounds the time of a
    /// system that answers differently each time.
    pub probes_max: u32,
}

impl Default for CapacityOptions {
    /// From 100 to ten millions a second, to a twentieth, in 24 probes at most.
    fn default() -> Self {
        Self {
            first: 5_000.0,
            lowest: 100.0,
            highest: 10_000_000.0,
            precision: 1.05,
            probes_max: 24,
        }
    }
}

/// A search, one probe after the other: rates are doubled until one fails and halved until one
/// holds, then the gap between is halved, as a ratio. It knows nothing of what is probed.
#[derive(Debug, Clone)]
pub struct CapacitySearch {
    options: CapacityOptions,
    held: Option<f64>,
    failed: Option<f64>,
    probes: u32,
}

impl CapacitySearch {
    /// Nothing is probed yet.
    ///
    /// # Errors
    /// When the rates are not above zero and in order, or the precision is not above 1.
    pub fn new(options: CapacityOptions) -> Result<Self, MeasureError> {
        let CapacityOptions {
            first,
            lowest,
            highest,
            precision,
            ..
        } = options;
        for rate_per_s in [first, lowest, highest] {
            if !(rate_per_s.is_finite() && rate_per_s > 0.0) {
                return Err(MeasureError::Rate { rate_per_s });
            }
        }
        if lowest > first || first > highest || precision.is_nan() || precision <= 1.0 {
            return Err(MeasureError::Search {
                lowest,
                first,
                highest,
                precision,
            });
        }
        Ok(Self {
            options,
            held: None,
            failed: None,
            probes: 0,
        })
    }

    /// The rate to probe now; nothing when the search is over.
    pub fn next_rate(&self) -> Option<f64> {
        let CapacityOptions {
            first,
            lowest,
            highest,
            precision,
            probes_max,
        } = self.options;
        if self.probes >= probes_max {
            return None;
        }
        match (self.held, self.failed) {
            (None, None) => Some(first),
            (Some(held), None) => (held < highest).then(|| (held * 2.0).min(highest)),
            (None, Some(failed)) => (failed > lowest).then(|| (failed / 2.0).max(lowest)),
            (Some(held), Some(failed)) => {
                // The middle of a ratio is the geometric one: halving the difference would spend
                // most probes near the upper end when the two are far apart.
                (failed > held * precision).then(|| (held * failed).sqrt())
            }
        }
    }

    /// What came of the probe of [`Self::next_rate`].
    pub fn tell(&mut self, held: bool) {
        if let Some(rate) = self.next_rate() {
            self.probes += 1;
            let side = if held {
                &mut self.held
            } else {
                &mut self.failed
            };
            *side = Some(rate);
        }
    }

    /// The highest rate that held, if one did.
    pub fn highest(&self) -> Option<f64> {
        self.held
    }

    /// How many results [`Self::tell`] has taken.
    pub fn probes(&self) -> u32 {
        self.probes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(capacity: f64, options: CapacityOptions) -> (Option<f64>, u32) {
        let mut search = CapacitySearch::new(options).expect("options");
        while let Some(rate) = search.next_rate() {
            assert!(rate >= options.lowest && rate <= options.highest);
            search.tell(rate <= capacity);
        }
        (search.highest(), search.probes())
    }

    #[test]
    fn it_finds_any_capacity_to_its_precision() {
        let options = CapacityOptions::default();
        for step in 0..400 {
            let capacity = 100.0 * 1.028_f64.powi(step);
            let (rate, probes) = found(capacity, options);
            let rate = rate.expect("the lowest rate holds");
            assert!(
                rate <= capacity && rate * options.precision >= capacity.min(options.highest),
                "{capacity}: {rate}"
            );
            assert!(probes < options.probes_max, "{capacity}: {probes} probes");
        }
    }

    #[test]
    fn it_ends_when_nothing_or_everything_holds_or_the_probes_are_spent() {
        let options = CapacityOptions::default();
        assert_eq!(found(1.0, options).0, None);
        assert_eq!(found(f64::INFINITY, options).0, Some(options.highest));
        let few = CapacityOptions {
            probes_max: 3,
            ..options
        };
        assert_eq!(found(1e6, few), (Some(20_000.0), 3));
    }

    #[test]
    fn nonsense_is_refused() {
        let options = CapacityOptions::default();
        for wrong in [
            CapacityOptions {
                first: 0.0,
                ..options
            },
            CapacityOptions {
                first: 50.0,
                ..options
            },
            CapacityOptions {
                precision: 1.0,
                ..options
            },
            CapacityOptions {
                highest: f64::NAN,
                ..options
            },
        ] {
            assert!(CapacitySearch::new(wrong).is_err(), "{wrong:?}");
        }
    }
}
