//! Describes the columns of the tables to the writers of formats.

use dyno_formats::columns::{Field, Kind};
use dyno_tpch::Table;

/// The digits of a decimal. Clause 1.3.1 wants money from -9,999,999,999.99 on.
const PRECISION: u8 = 15;
const SCALE: u8 = 2;

/// The fields of a table, in the order of the specification.
pub(crate) fn table_fields(table: Table) -> Vec<Field> {
    let field = |column: &dyno_tpch::Column| Field {
        name: column.name,
        kind: kind(column.kind),
    };
    table.columns().iter().map(field).collect()
}

fn kind(kind: dyno_tpch::Kind) -> Kind {
    match kind {
        dyno_tpch::Kind::Key => Kind::Int64,
        dyno_tpch::Kind::Integer => Kind::Int32,
        dyno_tpch::Kind::Decimal | dyno_tpch::Kind::WholeDecimal => Kind::Decimal {
            precision: PRECISION,
            scale: SCALE,
        },
        dyno_tpch::Kind::Date => Kind::Date,
        dyno_tpch::Kind::Char(longest) => Kind::Char(longest.into()),
        dyno_tpch::Kind::Varchar(longest) => Kind::Varchar(longest.into()),
    }
}

/// The columns that a table is sorted by as it is generated.
pub(crate) fn sorted_by(table: Table) -> &'static [&'static str] {
    match table {
        Table::Region => &["r_regionkey"],
        Table::Nation => &["n_nationkey"],
        Table::Part => &["p_partkey"],
        Table::Supplier => &["s_suppkey"],
        // The suppliers of a part wrap around, so only the part ascends.
        Table::Partsupp => &["ps_partkey"],
        Table::Customer => &["c_custkey"],
        Table::Orders => &["o_orderkey"],
        Table::Lineitem => &["l_orderkey", "l_linenumber"],
    }
}
