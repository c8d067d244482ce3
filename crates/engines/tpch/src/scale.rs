//! How many of everything there are at a scale factor (clause 4.2.5 of the specification).

use crate::error::{Error, Result};
use crate::table::Table;

/// The smallest scale factor. dbgen knows factors below 1 to the thousandth.
pub(crate) const SMALLEST: f64 = 0.001;
/// The largest scale factor. Up to it every key that is drawn fits into 31 bits, and dbgen changes
/// its random numbers only at 30000.
pub(crate) const LARGEST: f64 = 10_000.0;

/// A checked scale factor, with the counts that follow from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    factor: f64,
    pub(crate) parts: u32,
    pub(crate) suppliers: u32,
    pub(crate) customers: u32,
    pub(crate) clerks: u32,
    pub(crate) orders: u64,
}

impl Scale {
    /// Checks a scale factor, which is from 0.001 to 10000 and need not be whole. Counts are
    /// rounded down.
    ///
    /// # Errors
    /// [`Error::Scale`] for anything else, NaN included.
    pub fn new(factor: f64) -> Result<Scale> {
        if !(SMALLEST..=LARGEST).contains(&factor) {
            return Err(Error::Scale { given: factor });
        }
        // A product such as 1500000 x 0.029 may fall a hair short of the whole number that it is.
        let times = |base: f64| (base * factor + 1e-6).floor().max(1.0);
        Ok(Scale {
            factor,
            parts: times(200_000.0) as u32,
            suppliers: times(10_000.0) as u32,
            customers: times(150_000.0) as u32,
            clerks: times(1_000.0).max(1_000.0) as u32,
            orders: times(1_500_000.0) as u64,
        })
    }

    /// The factor that was given to [`Scale::new`].
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// The number of clerks, one of whom each `o_clerk` names by a number from 1.
    pub fn clerks(&self) -> u32 {
        self.clerks
    }

    /// The number of units of a table, which are orders for `lineitem`, parts for `partsupp`, and
    /// rows elsewhere.
    pub fn units(&self, table: Table) -> u64 {
        match table {
            Table::Region => crate::words::REGIONS.len() as u64,
            Table::Nation => crate::words::NATIONS.len() as u64,
            Table::Part | Table::Partsupp => self.parts.into(),
            Table::Supplier => self.suppliers.into(),
            Table::Customer => self.customers.into(),
            Table::Orders | Table::Lineitem => self.orders,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_the_specification() {
        let scale = Scale::new(1.0).expect("in range");
        let counts = Table::ALL.map(|table| scale.units(table));
        let expected = [
            5, 25, 200_000, 10_000, 200_000, 150_000, 1_500_000, 1_500_000,
        ];
        assert_eq!(counts, expected);
    }

    #[test]
    fn fractions_do_not_lose_a_row() {
        for thousandths in 1..=3000 {
            let scale = Scale::new(f64::from(thousandths) / 1000.0).expect("in range");
            assert_eq!(scale.orders, thousandths as u64 * 1500);
            assert_eq!(scale.suppliers, thousandths as u32 * 10);
        }
    }

    #[test]
    fn nonsense_is_refused_by_value() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 0.0001, 30_000.0] {
            assert!(Scale::new(bad).is_err(), "{bad}");
        }
        let text = Scale::new(-1.0).expect_err("negative").to_string();
        assert_eq!(
            text,
            "scale factor -1: it must be a number from 0.001 to 10000"
        );
    }
}
