//! A table with its cells, as every printed form shows it.

use serde::Serialize;

use super::figure::Figure;
use crate::units::{quantity, range_text};

/// A table with its cells as text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FilledTable {
    /// Heading, as the plan has it.
    pub title: String,
    /// Column heads; the first is the label's and is empty.
    pub columns: Vec<String>,
    /// Rows in printing order; each has as many cells as there are columns.
    pub rows: Vec<Vec<Cell>>,
    /// What a reader must know, below the table.
    pub notes: Vec<String>,
}

/// One cell, as every printed form shows it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cell {
    /// The text that is shown.
    pub text: String,
    /// More text, for a reader who points at the cell.
    pub title: String,
    /// Whether it is a number, which is set to the right.
    pub number: bool,
    /// Shown loudly: a single sample, a failure, a missing value.
    pub loud: bool,
    /// The number alone, where it is one, for forms that calculate.
    #[serde(skip)]
    pub value: Option<Amount>,
}

/// A number and its unit: `%` for shares, as parts of 1, and `x` for ratios.
#[derive(Debug, Clone, PartialEq)]
pub struct Amount {
    /// The number, not scaled and not rounded.
    pub value: f64,
    /// The unit that the number is in.
    pub unit: String,
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Cell {
        Cell {
            text: text.into(),
            ..Cell::default()
        }
    }

    pub(crate) fn number(text: impl Into<String>, title: impl Into<String>) -> Cell {
        Cell {
            text: text.into(),
            title: title.into(),
            number: true,
            ..Cell::default()
        }
    }

    pub(crate) fn with_value(mut self, value: f64, unit: &str) -> Cell {
        let unit = unit.to_owned();
        self.value = Some(Amount { value, unit });
        self
    }

    pub(crate) fn none(reason: &str) -> Cell {
        Cell {
            text: "–".to_owned(),
            title: format!("not available: {reason}"),
            number: true,
            ..Cell::default()
        }
    }
}

/// The cell of a figure: its median with the marks that it needs, and its spread for a reader who
/// points at it.
pub(crate) fn figure_cell(figure: &Figure) -> Cell {
    let text = quantity(figure.median, &figure.unit);
    let title = match figure.low.zip(figure.high) {
        Some((low, high)) => {
            format!("{}, n = {}", range_text(low, high, &figure.unit), figure.n)
        }
        None => "one sample: no spread is known".to_owned(),
    };
    // The marks stand inside the cell: a table is often quoted without its notes.
    let mut marks = Vec::new();
    if figure.n == 1 {
        marks.push("n = 1");
    }
    if let Some(steady) = figure.unsteady() {
        marks.push(steady.verdict);
    }
    let cell = match marks.as_slice() {
        [] => Cell::number(text, title),
        marks => Cell {
            loud: true,
            ..Cell::number(format!("{text} ({})", marks.join(", ")), title)
        },
    };
    cell.with_value(figure.median, &figure.unit)
}
