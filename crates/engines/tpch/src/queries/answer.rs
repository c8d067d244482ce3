//! The published answers, and how results are compared with them.
//!
//! Clause 2.1.3.5 allows sums to be off by 100 and averages by one per cent. Here nothing may be
//! off: a number is rounded to the digits of the answer and must then be the same. Sums have all
//! their digits here, averages four and ratios six. The published files have two, and some of their
//! sums were added up in floating point. `tests/answers.rs` lists where that shows.

use std::fmt;

use super::number::rounded_like;
use crate::words;

/// The rows of an answer, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The names of the columns.
    pub columns: Vec<&'static str>,
    /// The rows in their order. Rows that ORDER BY does not tell apart may change places.
    pub rows: Vec<Vec<String>>,
    ordered_by: &'static [usize],
}

/// How a result first differs from the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// The result has another number of rows.
    Rows {
        /// The rows of the result.
        found: usize,
        /// The rows of the answer.
        expected: usize,
    },
    /// A row of the result has another number of columns.
    Columns {
        /// The columns of the result.
        found: usize,
        /// The columns of the answer.
        expected: usize,
    },
    /// A value of the result is another one.
    Value {
        /// The row, counted from 1.
        row: usize,
        /// The name of the column.
        column: &'static str,
        /// The value of the result, with all its digits.
        found: String,
        /// The value of the answer.
        expected: String,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Rows { found, expected } => write!(f, "{found} rows, not {expected}"),
            Difference::Columns { found, expected } => write!(f, "{found} columns, not {expected}"),
            Difference::Value {
                row,
                column,
                found,
                expected,
            } => write!(f, "row {row}: {column} is {found}, not {expected}"),
        }
    }
}

impl Answer {
    /// Compares a result with the answer, and returns the first difference. Values are plain text,
    /// in which decimals have a point and dates look like `1995-03-15`.
    pub fn difference(&self, result: &[Vec<String>]) -> Option<Difference> {
        if let Some(row) = result.iter().find(|row| row.len() != self.columns.len()) {
            return Some(Difference::Columns {
                found: row.len(),
                expected: self.columns.len(),
            });
        }
        if result.len() != self.rows.len() {
            return Some(Difference::Rows {
                found: result.len(),
                expected: self.rows.len(),
            });
        }
        // Rounded before rows are sorted among each other, because digits that the answer does not
        // have must not decide their order.
        let rounded: Vec<Vec<String>> = std::iter::zip(result, &self.rows)
            .map(|(found, expected)| rounded_row(found, expected))
            .collect();
        let (found, expected) = (self.untied(&rounded), self.untied(&self.rows));
        for (row, (&at, &expected)) in found.iter().zip(&expected).enumerate() {
            for (column, name) in self.columns.iter().enumerate() {
                if rounded[at][column] != self.rows[expected][column] {
                    return Some(Difference::Value {
                        row: row + 1,
                        column: name,
                        found: result[at][column].clone(),
                        expected: self.rows[expected][column].clone(),
                    });
                }
            }
        }
        None
    }

    /// The numbers of the rows in an order that both sides have. Rows that are equal in the ORDER
    /// BY columns, whose order SQL leaves open, are sorted among each other.
    fn untied(&self, rows: &[Vec<String>]) -> Vec<usize> {
        let key = |at: usize| self.ordered_by.iter().map(move |&column| &rows[at][column]);
        let mut places: Vec<usize> = (0..rows.len()).collect();
        for tied in places.chunk_by_mut(|&a, &b| key(a).eq(key(b))) {
            tied.sort_by(|&a, &b| rows[a].cmp(&rows[b]));
        }
        places
    }
}

fn rounded_row(found: &[String], expected: &[String]) -> Vec<String> {
    std::iter::zip(found, expected)
        .map(|(found, expected)| rounded_like(found, expected).unwrap_or_else(|| found.clone()))
        .collect()
}

/// Reads a line of names and then a line for each row, all separated by `|`.
pub(super) fn from_lines(text: &'static str, ordered_by: &'static [usize]) -> Answer {
    let mut lines = text.lines();
    let columns = lines.next().unwrap_or_default().split('|').collect();
    let rows = lines
        .map(|line| line.split('|').map(str::to_owned).collect())
        .collect();
    Answer {
        columns,
        rows,
        ordered_by,
    }
}

/// Reads the answer of query 16, which has 18314 rows, nearly all combinations of brand, size and
/// type. The file has one digit of base 36 for each combination, which is its number of suppliers.
pub(super) fn of_query_16(text: &'static str, ordered_by: &'static [usize]) -> Answer {
    let mut types: Vec<&str> = words::TYPES.to_vec();
    types.retain(|name| !name.starts_with("MEDIUM POLISHED"));
    // The digits of a line are in this order of types, in which the query orders them too.
    types.sort_unstable();
    let mut counted = Vec::new();
    for line in text.lines().skip(1) {
        let mut fields = line.split('|');
        let (Some(brand), Some(size), Some(digits)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let size_number: u32 = size.parse().unwrap_or_default();
        for (name, digit) in types.iter().zip(digits.chars()) {
            match digit.to_digit(36) {
                Some(count) if count > 0 => counted.push((count, brand, *name, size_number)),
                _ => {}
            }
        }
    }
    counted.sort_unstable_by_key(|&(count, brand, name, size)| {
        (std::cmp::Reverse(count), brand, name, size)
    });
    let rows = counted.into_iter().map(|(count, brand, name, size)| {
        vec![
            brand.to_owned(),
            name.to_owned(),
            size.to_string(),
            count.to_string(),
        ]
    });
    Answer {
        columns: vec!["p_brand", "p_type", "p_size", "supplier_cnt"],
        rows: rows.collect(),
        ordered_by,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(lines: &[&str]) -> Vec<Vec<String>> {
        lines
            .iter()
            .map(|line| line.split('|').map(str::to_owned).collect())
            .collect()
    }

    fn difference(result: &[&str]) -> Option<String> {
        let answer = from_lines("name|sum\na|3.10\nb|2.00\nc|2.00\nd|1.00\n", &[1]);
        answer
            .difference(&rows(result))
            .map(|found| found.to_string())
    }

    #[test]
    fn rows_that_are_tied_may_change_places() {
        assert_eq!(difference(&["a|3.1", "c|2.0", "b|2.0", "d|1.0"]), None);
    }

    #[test]
    fn the_first_difference_is_named() {
        let text = |found: &str| Some(found.to_owned());
        let swapped = difference(&["b|2.0", "a|3.1", "c|2.0", "d|1.0"]);
        assert_eq!(swapped, text("row 1: name is b, not a"));
        let wrong = difference(&["a|3.106", "c|2.0", "b|2.0", "d|1.0"]);
        assert_eq!(wrong, text("row 1: sum is 3.106, not 3.10"));
        let other = difference(&["a|3.1", "b|2.0", "x|2.0", "d|1.0"]);
        assert_eq!(other, text("row 3: name is x, not c"));
        assert_eq!(difference(&["a|3.1"]), text("1 rows, not 4"));
        assert_eq!(difference(&["a", "b"]), text("1 columns, not 2"));
    }

    #[test]
    fn an_empty_result_differs() {
        assert_eq!(difference(&[]), Some("0 rows, not 4".to_owned()));
    }
}
