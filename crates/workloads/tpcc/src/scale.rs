//! How large the database is. Only the number of warehouses is the specification's to choose; the
//! other numbers can be made smaller for tests, and a load remembers them.

/// Rows of the tables that have a fixed number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Warehouses, numbered from 1.
    pub warehouses: u32,
    /// Districts of a warehouse.
    pub districts: u32,
    /// Customers of a district, and orders that it begins with.
    pub customers: u32,
    /// Items, and stock rows of a warehouse.
    pub items: u32,
}

impl Scale {
    /// The specification's numbers (clause 4.3.3.1).
    pub fn of(warehouses: u32) -> Scale {
        Scale {
            warehouses,
            districts: 10,
            customers: 3_000,
            items: 100_000,
        }
    }

    /// A small one with the same shape, for tests: what a run of it measures is not the workload.
    pub fn small(warehouses: u32) -> Scale {
        Scale {
            warehouses,
            districts: 3,
            customers: 60,
            items: 200,
        }
    }

    /// Orders of a district that are delivered at the beginning: the first 2,100 of 3,000.
    pub fn delivered(&self) -> u32 {
        self.customers * 7 / 10
    }

    /// Numbers of last names in use: 1,000, or as many as a small database has customers.
    pub fn last_names(&self) -> u32 {
        self.customers.min(1_000)
    }
}
