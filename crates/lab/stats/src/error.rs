//! Why a statistic cannot be computed.

use std::fmt;

/// Why a statistic cannot be computed from the numbers given.
#[derive(Debug, Clone, PartialEq)]
pub enum StatsError {
    /// Fewer numbers than the statistic needs.
    TooFew {
        /// What was to be computed.
        what: &'static str,
        /// How many numbers it needs at least.
        needed: usize,
        /// How many numbers there were.
        found: usize,
    },
    /// A number is NaN or infinite: the measurement that made it is broken.
    NotFinite {
        /// Position in the input, from 0.
        index: usize,
        /// The number that is not finite.
        value: f64,
    },
    /// A ratio needs numbers above zero.
    NotPositive {
        /// Block of the comparison, from 0.
        block: usize,
        /// The number, which is zero, negative or not finite.
        value: f64,
    },
    /// A parameter is outside its range.
    OutOfRange {
        /// Name of the parameter, as the message prints it.
        name: &'static str,
        /// The value that was given or computed.
        value: f64,
        /// The range it must be in.
        range: &'static str,
    },
}

impl fmt::Display for StatsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew {
                what,
                needed,
                found,
            } => {
                write!(f, "{what} needs at least {needed} numbers and got {found}")
            }
            Self::NotFinite { index, value } => {
                write!(
                    f,
                    "number {index} is {value}, which is not a finite measurement"
                )
            }
            Self::NotPositive { block, value } => {
                write!(
                    f,
                    "block {block} holds {value}, and a ratio needs numbers above zero"
                )
            }
            Self::OutOfRange { name, value, range } => {
                write!(f, "{name} is {value} and must be {range}")
            }
        }
    }
}

impl std::error::Error for StatsError {}

/// Refuses an input that is too short or holds a number that is not finite.
pub(crate) fn check(what: &'static str, needed: usize, values: &[f64]) -> Result<(), StatsError> {
    if values.len() < needed {
        return Err(StatsError::TooFew {
            what,
            needed,
            found: values.len(),
        });
    }
    match values.iter().position(|v| !v.is_finite()) {
        Some(index) => Err(StatsError::NotFinite {
            index,
            value: values[index],
        }),
        None => Ok(()),
    }
}
