//! Rules that the rows of the benchmark must keep, whichever program made them. They are conditions
//! and queries in SQL, taken from the text of the specification and not from the generator.

mod between;
mod within;

use crate::generator::Generator;
use crate::table::Table;

/// One rule, which is about the rows of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The table that it is about.
    pub table: Table,
    /// The other tables that it needs.
    pub needs: &'static [Table],
    /// What must be true, as a sentence without a full stop.
    pub says: String,
    /// How to find the rows that break it.
    pub test: Test,
}

/// How to find the rows that break a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// A condition that is true for each row of the table. NULL breaks it.
    EachRow {
        /// The condition, as an expression of SQL.
        holds: String,
        /// The columns that show what is wrong, after those of the key.
        shows: Vec<&'static str>,
    },
    /// A query that returns what is wrong, ordered by key.
    NoRows {
        /// The query, which returns nothing if the rule is kept.
        sql: String,
    },
}

impl Rule {
    /// All rules for the tables of this generator's scale factor, those of one table together.
    pub fn all(generator: &Generator) -> Vec<Rule> {
        let mut rules = Vec::new();
        for table in Table::ALL {
            rules.extend(within::rules(table, generator));
            rules.extend(between::rules(table));
        }
        rules
    }
}

/// The columns that tell a table's rows apart.
pub const fn key_columns(table: Table) -> &'static [&'static str] {
    match table {
        Table::Region => &["r_regionkey"],
        Table::Nation => &["n_nationkey"],
        Table::Part => &["p_partkey"],
        Table::Supplier => &["s_suppkey"],
        Table::Partsupp => &["ps_partkey", "ps_suppkey"],
        Table::Customer => &["c_custkey"],
        Table::Orders => &["o_orderkey"],
        Table::Lineitem => &["l_orderkey", "l_linenumber"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::Scale;

    #[test]
    fn every_table_has_rules_and_every_rule_says_something_else() {
        let rules = Rule::all(&Generator::new(Scale::new(1.0).expect("in range")));
        for table in Table::ALL {
            assert!(rules.iter().any(|rule| rule.table == table), "{table}");
        }
        let mut said: Vec<_> = rules.iter().map(|rule| (rule.table, &rule.says)).collect();
        said.sort();
        said.dedup();
        assert_eq!(said.len(), rules.len());
    }
}
