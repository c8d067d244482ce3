//! Rows of one table in columns, in buffers that are used again.

use std::ops::Range;

use crate::scale::Scale;
use crate::table::Table;
use crate::tables::{customer, lineitem, nation, orders, part, partsupp, region, supplier};
use crate::values::Values;

/// Rows of a table, as columns. A batch keeps its buffers, so it allocates nothing after the first
/// few fills of one size.
pub struct Batch {
    table: Table,
    columns: Columns,
    /// The rows of `columns` that were requested. A unit has several rows, and its first or last
    /// ones may not be among them.
    window: Range<usize>,
}

enum Columns {
    Region(region::Region),
    Nation(nation::Nation),
    Part(part::Part),
    Supplier(supplier::Supplier),
    Partsupp(partsupp::Partsupp),
    Customer(customer::Customer),
    Orders(Box<orders::Orders>),
    Lineitem(Box<lineitem::Lineitem>),
}

impl Batch {
    /// Makes an empty batch for rows of a table.
    pub fn new(table: Table) -> Batch {
        let columns = match table {
            Table::Region => Columns::Region(Default::default()),
            Table::Nation => Columns::Nation(Default::default()),
            Table::Part => Columns::Part(Default::default()),
            Table::Supplier => Columns::Supplier(Default::default()),
            Table::Partsupp => Columns::Partsupp(Default::default()),
            Table::Customer => Columns::Customer(Default::default()),
            Table::Orders => Columns::Orders(Default::default()),
            Table::Lineitem => Columns::Lineitem(Default::default()),
        };
        Batch {
            table,
            columns,
            window: 0..0,
        }
    }

    /// The table that was given to [`Batch::new`].
    pub fn table(&self) -> Table {
        self.table
    }

    /// The number of rows that the last fill left in it.
    pub fn rows(&self) -> usize {
        self.window.len()
    }

    /// The values of a column, by its index in [`Table::columns`].
    ///
    /// # Panics
    /// When the table has no such column, or when nothing was ever filled in.
    pub fn values(&self, column: usize) -> Values<'_> {
        assert!(
            column < self.table.columns().len(),
            "{} has no column {column}",
            self.table
        );
        let values = match &self.columns {
            Columns::Region(table) => table.values(column),
            Columns::Nation(table) => table.values(column),
            Columns::Part(table) => table.values(column),
            Columns::Supplier(table) => table.values(column),
            Columns::Partsupp(table) => table.values(column),
            Columns::Customer(table) => table.values(column),
            Columns::Orders(table) => table.values(column),
            Columns::Lineitem(table) => table.values(column),
        };
        values.slice(self.window.clone())
    }

    /// Fills it with all rows of some units. The caller has checked that the table has them.
    pub(crate) fn fill(&mut self, scale: &Scale, first: u64, units: usize) {
        let rows = match &mut self.columns {
            Columns::Region(table) => table.fill(first, units),
            Columns::Nation(table) => table.fill(first, units),
            Columns::Part(table) => table.fill(first, units),
            Columns::Supplier(table) => table.fill(first, units),
            Columns::Partsupp(table) => table.fill(scale, first, units),
            Columns::Customer(table) => table.fill(first, units),
            Columns::Orders(table) => table.fill(scale, first, units),
            Columns::Lineitem(table) => table.fill(scale, first, units),
        };
        self.window = 0..rows;
    }

    /// Leaves only some of the rows that are in it.
    pub(crate) fn narrow(&mut self, rows: Range<usize>) {
        debug_assert!(rows.end <= self.window.len());
        self.window = self.window.start + rows.start..self.window.start + rows.end;
    }
}
