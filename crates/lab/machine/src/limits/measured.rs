//! Repetitions on their way to a limit.

use dyno_record::{Better, Limit, OURS};

/// What an independent tool measured, in the unit of our own figures.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub name: &'static str,
    /// One value per repetition, or lowest, mean and highest window of one run.
    pub samples: Vec<f64>,
    /// Repetitions or windows behind them.
    pub n: u32,
}

impl Tool {
    pub fn from_repetitions(name: &'static str, samples: Vec<f64>) -> Self {
        let n = samples.len() as u32;
        Self { name, samples, n }
    }
}

/// What one measurement found, ours and an independent tool's.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub unit: &'static str,
    pub better: Better,
    /// One value per repetition of our own code; empty when only the tool could measure.
    pub ours: Vec<f64>,
    /// How ours was measured, in a sentence without a full stop.
    pub method: String,
    /// What the independent tool did.
    pub tool: Option<Tool>,
    /// Why no independent tool took part, when one could have.
    pub tool_missing: Option<String>,
}

impl Measured {
    pub fn rate(ours: Vec<f64>, unit: &'static str, method: impl Into<String>) -> Self {
        let (method, better) = (method.into(), Better::Higher);
        Self {
            unit,
            better,
            ours,
            method,
            tool: None,
            tool_missing: None,
        }
    }

    pub fn time_ns(ours: Vec<f64>, method: impl Into<String>) -> Self {
        let (method, better) = (method.into(), Better::Lower);
        Self {
            unit: "ns",
            better,
            ours,
            method,
            tool: None,
            tool_missing: None,
        }
    }

    /// Adds the tool's repetitions, or the reason why it did not run.
    pub fn against(mut self, tool: Result<Tool, String>) -> Self {
        match tool {
            Ok(tool) => self.tool = Some(tool),
            Err(reason) => self.tool_missing = Some(reason),
        }
        self
    }

    /// The limit: the better of ours and the tool, with both values in it.
    pub fn into_limit(self, name: &str, measured_at: String) -> Limit {
        let ours = median(&self.ours);
        // A side that could not measure is NaN, and the other one counts.
        let beats = |tool: f64| match self.better {
            Better::Higher => tool > ours || ours.is_nan(),
            Better::Lower => tool < ours || ours.is_nan(),
        };
        let winner = self
            .tool
            .as_ref()
            .filter(|tool| beats(median(&tool.samples)));
        let of_tool = self.tool.as_ref();
        let of_tool = of_tool.map(|tool| (tool.name.to_owned(), median(&tool.samples)));
        let (samples, n, mut method, independent) = match winner {
            None => (&self.ours, self.ours.len() as u32, self.method, of_tool),
            Some(tool) if self.ours.is_empty() => {
                let method = format!("{}: {}", tool.name, self.method);
                (&tool.samples, tool.n, method, of_tool)
            }
            Some(tool) => {
                let method = format!("{}, which did better than ours: {}", tool.name, self.method);
                let ours = Some((OURS.to_owned(), ours));
                (&tool.samples, tool.n, method, ours)
            }
        };
        if cfg!(debug_assertions) {
            method.push_str("; by a debug build, so not a limit");
        }
        Limit {
            name: name.to_owned(),
            value: median(samples),
            unit: self.unit.to_owned(),
            better: self.better,
            n,
            low: samples.iter().copied().fold(f64::INFINITY, f64::min),
            high: samples.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            method,
            independent,
            measured_at,
        }
    }
}

/// The median; NaN of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(better: Better, ours: &[f64], tool: &[f64]) -> Limit {
        let measured = match better {
            Better::Higher => Measured::rate(ours.to_vec(), "B/s", "read and summed"),
            Better::Lower => Measured::time_ns(ours.to_vec(), "asked and answered"),
        };
        let measured = measured.against(Ok(Tool::from_repetitions("tool", tool.to_vec())));
        measured.into_limit("some-limit", "2026-11-21T00:00:00Z".to_owned())
    }

    #[test]
    fn the_better_one_counts() {
        let ours = limit(Better::Higher, &[3.0, 9.0, 5.0], &[4.0]);
        assert_eq!(
            (ours.value, ours.n, ours.low, ours.high),
            (5.0, 3, 3.0, 9.0)
        );
        assert_eq!(ours.independent, Some(("tool".to_owned(), 4.0)));
        let theirs = limit(Better::Lower, &[3.0, 5.0], &[2.0, 3.0]);
        assert_eq!((theirs.value, theirs.n), (2.5, 2));
        assert_eq!(theirs.independent, Some((OURS.to_owned(), 4.0)));
        assert!(
            theirs
                .method
                .starts_with("tool, which did better than ours: ")
        );
    }
}
