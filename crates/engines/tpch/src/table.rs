//! The eight tables and their columns.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::tables;

/// A table of the benchmark, as the specification names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// The 5 regions of the world.
    Region,
    /// The 25 nations, each in a region.
    Nation,
    /// Parts that suppliers sell to customers.
    Part,
    /// Suppliers of parts, each in a nation.
    Supplier,
    /// The suppliers of each part, of which there are four.
    Partsupp,
    /// Customers, of whom two thirds have orders.
    Customer,
    /// Orders, each with its total price.
    Orders,
    /// The lines of each order, of which there are one to seven.
    Lineitem,
}

/// A column's name and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// As in the specification, in lower case.
    pub name: &'static str,
    /// The type that the specification gives it.
    pub kind: Kind,
}

/// The type that the specification (clause 1.3.1 and 1.4) gives a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An identifier, 64 bits wide.
    Key,
    /// An integer of 32 bits.
    Integer,
    /// A decimal with two digits after the point.
    Decimal,
    /// A decimal whose values are whole. dbgen prints it without a point and digits after it.
    WholeDecimal,
    /// A date, within the seven years of the benchmark.
    Date,
    /// Text that the specification calls fixed, of at most this many bytes. It is not padded here.
    Char(u8),
    /// Text of at most this many bytes.
    Varchar(u8),
}

impl Table {
    /// All tables, each after those that it refers to.
    pub const ALL: [Table; 8] = [
        Table::Region,
        Table::Nation,
        Table::Part,
        Table::Supplier,
        Table::Partsupp,
        Table::Customer,
        Table::Orders,
        Table::Lineitem,
    ];

    /// The name that the specification gives the table, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Table::Region => "region",
            Table::Nation => "nation",
            Table::Part => "part",
            Table::Supplier => "supplier",
            Table::Partsupp => "partsupp",
            Table::Customer => "customer",
            Table::Orders => "orders",
            Table::Lineitem => "lineitem",
        }
    }

    /// The columns, in the order of the specification.
    pub const fn columns(self) -> &'static [Column] {
        match self {
            Table::Region => &tables::region::COLUMNS,
            Table::Nation => &tables::nation::COLUMNS,
            Table::Part => &tables::part::COLUMNS,
            Table::Supplier => &tables::supplier::COLUMNS,
            Table::Partsupp => &tables::partsupp::COLUMNS,
            Table::Customer => &tables::customer::COLUMNS,
            Table::Orders => &tables::orders::COLUMNS,
            Table::Lineitem => &tables::lineitem::COLUMNS,
        }
    }

    /// The most rows that one unit has. A unit is what [`crate::Generator::fill`] counts in: an
    /// order for `lineitem`, a part for `partsupp`, a row elsewhere.
    pub const fn max_rows_per_unit(self) -> usize {
        match self {
            Table::Partsupp => tables::partsupp::SUPPLIERS_PER_PART,
            Table::Lineitem => tables::lines::MAX_LINES,
            _ => 1,
        }
    }
}

/// A column, as a short way to write the lists of them.
pub(crate) const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Table {
    type Err = Error;

    fn from_str(name: &str) -> Result<Table> {
        Table::ALL
            .into_iter()
            .find(|table| table.name() == name)
            .ok_or_else(|| Error::UnknownTable {
                given: name.to_owned(),
            })
    }
}
