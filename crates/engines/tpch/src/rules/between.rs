//! Rules about rows of several tables. Every foreign key has its row (clause 1.4.1), and orders and
//! lines agree with each other.

use super::{Rule, Test, key_columns};
use crate::table::Table;

/// Columns of a table that refer to the key of another table.
struct Reference {
    from: Table,
    columns: &'static [&'static str],
    to: Table,
    needs: &'static [Table],
}

const REFERENCES: [Reference; 8] = [
    refers(
        Table::Nation,
        &["n_regionkey"],
        Table::Region,
        &[Table::Region],
    ),
    refers(
        Table::Supplier,
        &["s_nationkey"],
        Table::Nation,
        &[Table::Nation],
    ),
    refers(
        Table::Partsupp,
        &["ps_partkey"],
        Table::Part,
        &[Table::Part],
    ),
    refers(
        Table::Partsupp,
        &["ps_suppkey"],
        Table::Supplier,
        &[Table::Supplier],
    ),
    refers(
        Table::Customer,
        &["c_nationkey"],
        Table::Nation,
        &[Table::Nation],
    ),
    refers(
        Table::Orders,
        &["o_custkey"],
        Table::Customer,
        &[Table::Customer],
    ),
    refers(
        Table::Lineitem,
        &["l_orderkey"],
        Table::Orders,
        &[Table::Orders],
    ),
    refers(
        Table::Lineitem,
        &["l_partkey", "l_suppkey"],
        Table::Partsupp,
        &[Table::Partsupp],
    ),
];

const fn refers(
    from: Table,
    columns: &'static [&'static str],
    to: Table,
    needs: &'static [Table],
) -> Reference {
    Reference {
        from,
        columns,
        to,
        needs,
    }
}

/// The rules of one table.
pub(super) fn rules(table: Table) -> Vec<Rule> {
    let mut rules: Vec<Rule> = REFERENCES
        .iter()
        .filter(|reference| reference.from == table)
        .map(reference_rule)
        .collect();
    match table {
        Table::Orders => rules.push(no_rows(
            table,
            &[Table::Lineitem],
            "o_totalprice and o_orderstatus are what the lines make (clause 4.2.3)",
            TOTALS,
        )),
        Table::Lineitem => rules.push(no_rows(
            table,
            &[Table::Orders],
            "l_shipdate is 1 to 121 days after the order, l_commitdate 30 to 90",
            DATES,
        )),
        _ => {}
    }
    rules
}

fn no_rows(table: Table, needs: &'static [Table], says: &str, sql: &str) -> Rule {
    Rule {
        table,
        needs,
        says: says.to_owned(),
        test: Test::NoRows {
            sql: sql.to_owned(),
        },
    }
}

fn reference_rule(reference: &Reference) -> Rule {
    let Reference {
        from,
        columns,
        to,
        needs,
    } = reference;
    // The key comes first, so that results are ordered by it, and each column once.
    let mut shown = key_columns(*from).to_vec();
    shown.extend(
        columns
            .iter()
            .filter(|column| !key_columns(*from).contains(column)),
    );
    let shown = shown.join(", ");
    let same: Vec<String> = columns
        .iter()
        .zip(key_columns(*to))
        .map(|(column, key)| format!("{key} = {column}"))
        .collect();
    let sql = format!(
        "SELECT {shown} FROM {from} \
         WHERE NOT EXISTS (SELECT * FROM {to} WHERE {}) ORDER BY {shown}",
        same.join(" AND ")
    );
    let says = format!("{} is in {to}", columns.join(", "));
    no_rows(*from, needs, &says, &sql)
}

/// Finds orders that are not what their lines say. Each line counts in whole hundredths, cut after
/// the discount and again after the tax, as dbgen does.
const TOTALS: &str = "
    SELECT o_orderkey, o_totalprice, total / 100.0 AS sum_of_lines, o_orderstatus, open, lines
    FROM orders LEFT JOIN (
        SELECT
            l_orderkey,
            count(*) AS lines,
            sum(CASE WHEN l_linestatus = 'O' THEN 1 ELSE 0 END) AS open,
            sum(
                CAST(l_extendedprice * 100 AS BIGINT) * (100 - CAST(l_discount * 100 AS BIGINT)) / 100
                    * (100 + CAST(l_tax * 100 AS BIGINT)) / 100
            ) AS total
        FROM lineitem
        GROUP BY l_orderkey
    ) AS sums ON l_orderkey = o_orderkey
    WHERE (
        CAST(o_totalprice * 100 AS BIGINT) = total
        AND o_orderstatus = CASE open WHEN 0 THEN 'F' WHEN lines THEN 'O' ELSE 'P' END
    ) IS NOT TRUE
    ORDER BY o_orderkey";

const DATES: &str = "
    SELECT l_orderkey, l_linenumber, o_orderdate, l_shipdate, l_commitdate
    FROM lineitem JOIN orders ON l_orderkey = o_orderkey
    WHERE (
        l_shipdate BETWEEN o_orderdate + INTERVAL '1' DAY AND o_orderdate + INTERVAL '121' DAY
        AND l_commitdate BETWEEN o_orderdate + INTERVAL '30' DAY AND o_orderdate + INTERVAL '90' DAY
    ) IS NOT TRUE
    ORDER BY l_orderkey, l_linenumber";
