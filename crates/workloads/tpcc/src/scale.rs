//! The size of the database. The specification lets only the number of warehouses vary. The other
//! numbers can be smaller for tests, and a load records them.

/// The numbers that decide how many rows tables have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// How many warehouses there are, numbered from 1.
    pub warehouses: u32,
    /// How many districts each warehouse has.
    pub districts: u32,
    /// Customers of each district, and its initial orders.
    pub customers: u32,
    /// Items, and rows of STOCK in each warehouse.
    pub items: u32,
}

impl Scale {
    /// The numbers of the specification (clause 4.3.3.1).
    pub fn specified(warehouses: u32) -> Scale {
        Scale {
            warehouses,
            districts: 10,
            customers: 3_000,
            items: 100_000,
        }
    }

    /// A small database of the same shape, for tests. A run on it does not measure the specified
    /// workload.
    pub fn small(warehouses: u32) -> Scale {
        Scale {
            warehouses,
            districts: 3,
            customers: 60,
            items: 200,
        }
    }

    /// How many orders of a district are delivered initially: the first 2,100 of 3,000.
    pub fn delivered(&self) -> u32 {
        self.customers * 7 / 10
    }

    /// How many last names are in use: 1,000, or as many as a small database has customers.
    pub fn last_names(&self) -> u32 {
        self.customers.min(1_000)
    }
}
