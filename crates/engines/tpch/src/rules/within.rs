//! Rules that a row keeps or breaks by itself, and those about the keys of one table.

use super::{Rule, Test, key_columns};
use crate::generator::Generator;
use crate::table::Table;
use crate::words;

/// The price of part `l_partkey` or `p_partkey` in hundredths (clause 4.2.3).
macro_rules! retail_price {
    ($key:literal) => {
        concat!(
            "(90000 + (",
            $key,
            " / 10) % 20001 + 100 * (",
            $key,
            " % 1000))"
        )
    };
}

/// The rules of one table.
pub(super) fn rules(table: Table, generator: &Generator) -> Vec<Rule> {
    let mut rules = Rules {
        table,
        rules: Vec::new(),
    };
    rules.keys(generator);
    match table {
        Table::Region => rules.one_of("r_name", &words::REGIONS),
        Table::Nation => rules.one_of("n_name", &words::NATIONS),
        Table::Part => rules.part(),
        Table::Supplier => rules.supplier(),
        Table::Partsupp => rules.partsupp(generator),
        Table::Customer => rules.customer(),
        Table::Orders => rules.orders(generator),
        Table::Lineitem => rules.lineitem(),
    }
    rules.rules
}

struct Rules {
    table: Table,
    rules: Vec<Rule>,
}

impl Rules {
    fn each(&mut self, says: &str, holds: impl Into<String>, shows: &[&'static str]) {
        self.rules.push(Rule {
            table: self.table,
            needs: &[],
            says: says.to_owned(),
            test: Test::EachRow {
                holds: holds.into(),
                shows: shows.to_vec(),
            },
        });
    }

    fn one_of(&mut self, column: &'static str, words: &[&str]) {
        let list: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        self.rules.push(Rule {
            table: self.table,
            needs: &[],
            says: format!("{column} is one of the {} of clause 4.2.2.13", words.len()),
            test: Test::EachRow {
                holds: format!("{column} IN ({})", list.join(", ")),
                shows: column_alone(self.table, column),
            },
        });
    }

    fn range(&mut self, column: &'static str, low: &str, high: &str) {
        self.rules.push(Rule {
            table: self.table,
            needs: &[],
            says: format!("{column} is from {} to {}", plain(low), plain(high)),
            test: Test::EachRow {
                holds: format!("{column} BETWEEN {low} AND {high}"),
                shows: column_alone(self.table, column),
            },
        });
    }

    /// Adds the rules that there is no NULL, that no key is there twice, and that keys lie between
    /// the first and the last. If the number of rows is right too, no key is missing.
    fn keys(&mut self, generator: &Generator) {
        let columns = self.table.columns();
        let present: Vec<String> = columns
            .iter()
            .map(|column| format!("{} IS NOT NULL", column.name))
            .collect();
        self.each("no value is NULL", present.join(" AND "), &[]);
        let table = self.table;
        let keys = key_columns(table);
        let units = generator.scale().units(table);
        let key = keys[0];
        match table {
            Table::Region | Table::Nation => self.range(key, "0", &(units - 1).to_string()),
            Table::Orders | Table::Lineitem => {
                // The key of the last order, by the formula of the specification and not by the
                // code of the generator.
                let last = (units >> 3 << 5) | (units & 7);
                self.each(
                    &format!("{key} is from 1 to {last}, eight used of every 32 (clause 4.2.3)"),
                    format!("{key} BETWEEN 1 AND {last} AND {key} % 32 < 8"),
                    &[],
                );
            }
            _ => self.range(key, "1", &units.to_string()),
        }
        // Lines are checked by order, because grouping by both columns of their key would take the
        // memory of all rows.
        if table == Table::Lineitem {
            return self.line_numbers();
        }
        let list = keys.join(", ");
        let (says, most) = match table {
            Table::Partsupp => (
                "no key is there more often than clause 4.2.3 has it, once from scale factor 0.023 on",
                times_of_supplier(generator),
            ),
            _ => ("no key is there twice", "1".to_owned()),
        };
        self.rules.push(Rule {
            table,
            needs: &[],
            says: format!("{list}: {says}"),
            test: Test::NoRows {
                sql: format!(
                    "SELECT {list}, count(*) AS times FROM {table} \
                     GROUP BY {list} HAVING count(*) > {most} ORDER BY {list}"
                ),
            },
        });
    }

    /// Adds the rules about numbers of lines. A sum of n powers of two is 2 + 4 + .. + 2^n only if
    /// each of these is there once. Groups of orders take far less memory than groups of lines.
    fn line_numbers(&mut self) {
        self.rules.push(Rule {
            table: Table::Lineitem,
            needs: &[],
            says: "the lines of an order are numbered from 1 on, none twice".to_owned(),
            test: Test::NoRows {
                sql: "SELECT l_orderkey, count(*) AS lines, min(l_linenumber) AS first, \
                      max(l_linenumber) AS last FROM lineitem GROUP BY l_orderkey \
                      HAVING max(l_linenumber) > 7 OR min(l_linenumber) < 1 \
                      OR sum(CAST(1 AS BIGINT) << CAST(l_linenumber AS BIGINT)) \
                      <> (CAST(2 AS BIGINT) << count(*)) - 2 ORDER BY l_orderkey"
                    .to_owned(),
            },
        });
        self.range("l_linenumber", "1", "7");
    }

    fn part(&mut self) {
        self.one_of("p_mfgr", &words::MANUFACTURERS);
        self.one_of("p_brand", &words::BRANDS);
        self.each(
            "p_brand is a brand of p_mfgr",
            "substr(p_brand, 7, 1) = substr(p_mfgr, 14, 1)",
            &["p_mfgr", "p_brand"],
        );
        self.one_of("p_type", &words::TYPES);
        self.range("p_size", "1", "50");
        self.one_of("p_container", &words::CONTAINERS);
        self.each(
            "p_retailprice follows from p_partkey (clause 4.2.3)",
            concat!("p_retailprice * 100 = ", retail_price!("p_partkey")),
            &["p_retailprice"],
        );
    }

    fn supplier(&mut self) {
        self.each(
            "s_name is Supplier# and the key",
            "s_name = 'Supplier#' || lpad(CAST(s_suppkey AS VARCHAR), 9, '0')",
            &["s_name"],
        );
        self.each(
            "s_phone begins with the nation's code (clause 4.2.2.9)",
            phone("s_phone", "s_nationkey"),
            &["s_nationkey", "s_phone"],
        );
        self.range("s_acctbal", "-999.99", "9999.99");
    }

    fn partsupp(&mut self, generator: &Generator) {
        self.each(
            "ps_suppkey is one of the part's four (clause 4.2.3)",
            format!(
                "ps_suppkey IN ({})",
                suppliers_of_part(generator).join(", ")
            ),
            &[],
        );
        self.range("ps_availqty", "1", "9999");
        self.range("ps_supplycost", "1.00", "1000.00");
    }

    fn customer(&mut self) {
        self.each(
            "c_name is Customer# and the key",
            "c_name = 'Customer#' || lpad(CAST(c_custkey AS VARCHAR), 9, '0')",
            &["c_name"],
        );
        self.each(
            "c_phone begins with the nation's code (clause 4.2.2.9)",
            phone("c_phone", "c_nationkey"),
            &["c_nationkey", "c_phone"],
        );
        self.range("c_acctbal", "-999.99", "9999.99");
        self.one_of("c_mktsegment", &words::SEGMENTS);
    }

    fn orders(&mut self, generator: &Generator) {
        self.each(
            "no customer whose key is a multiple of three has an order (clause 4.2.3)",
            "o_custkey % 3 <> 0",
            &["o_custkey"],
        );
        self.one_of("o_orderstatus", &words::ORDER_STATUSES);
        self.range("o_orderdate", "DATE '1992-01-01'", "DATE '1998-08-02'");
        self.one_of("o_orderpriority", &words::PRIORITIES);
        self.each(
            &format!("o_clerk is one of {}", generator.scale().clerks),
            format!(
                "regexp_like(o_clerk, '^Clerk#[0-9]{{9}}$') \
                 AND substr(o_clerk, 7) BETWEEN '000000001' AND '{:09}'",
                generator.scale().clerks
            ),
            &["o_clerk"],
        );
        self.each(
            "o_shippriority is 0",
            "o_shippriority = 0",
            &["o_shippriority"],
        );
    }

    fn lineitem(&mut self) {
        self.range("l_quantity", "1", "50");
        self.each("l_quantity is whole", "l_quantity % 1 = 0", &["l_quantity"]);
        self.range("l_discount", "0.00", "0.10");
        self.range("l_tax", "0.00", "0.08");
        self.each(
            "l_extendedprice is l_quantity times the part's price (clause 4.2.3)",
            concat!(
                "l_extendedprice * 100 = l_quantity * ",
                retail_price!("l_partkey")
            ),
            &["l_partkey", "l_quantity", "l_extendedprice"],
        );
        self.each(
            "l_receiptdate is 1 to 30 days after l_shipdate",
            "l_receiptdate BETWEEN l_shipdate + INTERVAL '1' DAY AND l_shipdate + INTERVAL '30' DAY",
            &["l_shipdate", "l_receiptdate"],
        );
        self.each(
            "l_returnflag is N after 1995-06-17 and R or A until then",
            "CASE WHEN l_receiptdate > DATE '1995-06-17' THEN l_returnflag = 'N' \
             ELSE l_returnflag IN ('R', 'A') END",
            &["l_receiptdate", "l_returnflag"],
        );
        self.each(
            "l_linestatus is O after 1995-06-17 and F until then",
            "l_linestatus = CASE WHEN l_shipdate > DATE '1995-06-17' THEN 'O' ELSE 'F' END",
            &["l_shipdate", "l_linestatus"],
        );
        self.one_of("l_shipinstruct", &words::INSTRUCTIONS);
        self.one_of("l_shipmode", &words::MODES);
    }
}

/// A literal of SQL without its type and quotes.
fn plain(literal: &str) -> &str {
    literal.trim_start_matches("DATE ").trim_matches('\'')
}

/// The column, unless it is a part of the key, which is shown anyway.
fn column_alone(table: Table, column: &'static str) -> Vec<&'static str> {
    if key_columns(table).contains(&column) {
        Vec::new()
    } else {
        vec![column]
    }
}

/// The four suppliers of a part (clause 4.2.3).
fn suppliers_of_part(generator: &Generator) -> Vec<String> {
    let suppliers = generator.scale().units(Table::Supplier);
    let quarter = suppliers / 4;
    (0..4)
        .map(|i| {
            format!("(ps_partkey + {i} * ({quarter} + (ps_partkey - 1) / {suppliers})) % {suppliers} + 1")
        })
        .collect()
}

/// How many of a part's four suppliers are the same one. If there are few suppliers, the formula of
/// the specification goes round them too fast.
fn times_of_supplier(generator: &Generator) -> String {
    let same: Vec<String> = suppliers_of_part(generator)
        .iter()
        .map(|supplier| format!("CASE WHEN ps_suppkey = {supplier} THEN 1 ELSE 0 END"))
        .collect();
    format!("greatest(1, {})", same.join(" + "))
}

fn phone(column: &str, nation: &str) -> String {
    format!(
        "regexp_like({column}, '^[0-9]{{2}}-[1-9][0-9]{{2}}-[1-9][0-9]{{2}}-[1-9][0-9]{{3}}$') \
         AND substr({column}, 1, 2) = CAST({nation} + 10 AS VARCHAR)"
    )
}
