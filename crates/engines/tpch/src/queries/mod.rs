//! The 22 queries of the specification (clause 2.4), each with its substitution values for
//! validation, and the answers that the specification publishes for scale factor 1.
//!
//! ```
//! let query = dyno_tpch::queries::Query::numbered(6).expect("1 to 22");
//! let answer = query.answer();
//! assert_eq!(answer.columns, ["revenue"]);
//! assert_eq!(answer.difference(&[vec!["123141078.2283".to_owned()]]), None);
//! ```

mod answer;
mod number;

use std::borrow::Cow;

pub use answer::{Answer, Difference};

use crate::scale::Scale;
use crate::table::Table;

/// One of the 22 queries.
#[derive(Debug, PartialEq, Eq)]
pub struct Query {
    /// Its number in the specification, from 1 to 22.
    pub number: u8,
    sql: &'static str,
    answer: &'static str,
    /// The indexes of the result's columns that ORDER BY names, most significant first.
    ordered_by: &'static [usize],
}

/// The share of the stock's value above which query 11 lists a part, at scale factor 1: the only
/// substitution value that depends on the scale factor (clause 2.4.11.3).
const STOCK_SHARE: &str = "0.0001000000";

macro_rules! query {
    ($number:literal, $name:literal, $ordered_by:expr) => {
        Query {
            number: $number,
            sql: include_str!(concat!("../../queries/", $name, ".sql")),
            answer: include_str!(concat!("../../answers/", $name, ".csv")),
            ordered_by: &$ordered_by,
        }
    };
}

static QUERIES: [Query; 22] = [
    query!(1, "q01", [0, 1]),
    query!(2, "q02", [0, 2, 1, 3]),
    query!(3, "q03", [1, 2]),
    query!(4, "q04", [0]),
    query!(5, "q05", [1]),
    query!(6, "q06", []),
    query!(7, "q07", [0, 1, 2]),
    query!(8, "q08", [0]),
    query!(9, "q09", [0, 1]),
    query!(10, "q10", [2]),
    query!(11, "q11", [1]),
    query!(12, "q12", [0]),
    query!(13, "q13", [1, 0]),
    query!(14, "q14", []),
    query!(15, "q15", [0]),
    query!(16, "q16", [3, 0, 1, 2]),
    query!(17, "q17", []),
    query!(18, "q18", [4, 3]),
    query!(19, "q19", []),
    query!(20, "q20", [0]),
    query!(21, "q21", [1, 0]),
    query!(22, "q22", [0]),
];

impl Query {
    /// All queries, in the order of their numbers.
    pub fn all() -> &'static [Query] {
        &QUERIES
    }

    /// The query with this number, or `None` unless it is from 1 to 22.
    pub fn numbered(number: u8) -> Option<&'static Query> {
        QUERIES.iter().find(|query| query.number == number)
    }

    /// Its name, from `q01` to `q22`.
    pub fn name(&self) -> String {
        format!("q{:02}", self.number)
    }

    /// The text for data of this scale factor. It is one statement without a semicolon, in SQL that
    /// DataFusion, DuckDB and PostgreSQL understand.
    pub fn sql(&self, scale: &Scale) -> Cow<'static, str> {
        if !self.sql.contains(STOCK_SHARE) || scale.factor() == 1.0 {
            return Cow::Borrowed(self.sql);
        }
        // Ten digits hold the share of the largest scale factor, 0.00000001, too.
        let share = format!("{:.10}", 0.0001 / scale.factor());
        Cow::Owned(self.sql.replace(STOCK_SHARE, &share))
    }

    /// The tables that it reads, each after those that it refers to.
    pub fn tables(&self) -> Vec<Table> {
        // By whole words, because names of columns contain those of tables.
        let mut words: Vec<&str> = Vec::new();
        for line in self.sql.lines() {
            words.extend(line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
        }
        let mut tables = Table::ALL.to_vec();
        tables.retain(|table| words.contains(&table.name()));
        tables
    }

    /// The result that the specification publishes for scale factor 1.
    pub fn answer(&self) -> Answer {
        match self.number {
            16 => answer::of_query_16(self.answer, self.ordered_by),
            _ => answer::from_lines(self.answer, self.ordered_by),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_in_the_text() {
        let tables = |number| Query::numbered(number).expect("1 to 22").tables();
        assert_eq!(tables(6), [Table::Lineitem]);
        assert_eq!(tables(13), [Table::Customer, Table::Orders]);
        assert_eq!(
            tables(11),
            [Table::Nation, Table::Supplier, Table::Partsupp]
        );
        assert_eq!(tables(8).len(), 7);
    }

    #[test]
    fn the_share_of_query_11_follows_the_scale_factor() {
        let sql = |factor| QUERIES[10].sql(&Scale::new(factor).expect("in range"));
        assert!(sql(1.0).contains("* 0.0001000000\n"));
        assert!(sql(10.0).contains("* 0.0000100000\n"));
        assert!(sql(0.01).contains("* 0.0100000000\n"));
        assert!(sql(10_000.0).contains("* 0.0000000100\n"));
    }

    #[test]
    fn numbers_run_from_1_to_22() {
        let numbers: Vec<u8> = Query::all().iter().map(|query| query.number).collect();
        assert_eq!(numbers, (1..=22).collect::<Vec<u8>>());
        assert_eq!(Query::numbered(0), None);
        assert_eq!(Query::numbered(23), None);
    }
}
