//! Makes the six columns that customers and suppliers begin with.

use super::strings::{Strings, addresses, phones};
use super::{count_up, room};
use crate::draws::{Draw, each};
use crate::random::Stream;
use crate::values::Values;

/// What differs between these columns of the two tables.
pub(crate) struct Origin {
    pub(crate) name_prefix: &'static str,
    pub(crate) address_seed: u32,
    pub(crate) nation_seed: u32,
    pub(crate) phone_seed: u32,
    pub(crate) balance_seed: u32,
}

/// These columns of some rows.
#[derive(Default)]
pub(crate) struct Parties {
    rows: usize,
    key: Vec<i64>,
    address: Strings,
    nationkey: Vec<i64>,
    phone: Strings,
    acctbal: Vec<i64>,
}

impl Parties {
    pub(crate) fn fill(&mut self, origin: &Origin, first: u64, rows: usize) {
        let nation = Draw::new(Stream::new(origin.nation_seed, 1), 25);
        let balance = Draw::new(Stream::new(origin.balance_seed, 1), 1_099_999);
        self.rows = rows;
        count_up(&mut self.key, first, rows);
        addresses(origin.address_seed, first, rows, &mut self.address);
        each(&nation, first, 0, room(&mut self.nationkey, rows));
        let nations = &self.nationkey[..rows];
        phones(origin.phone_seed, first, nations, &mut self.phone);
        each(&balance, first, -99_999, room(&mut self.acctbal, rows));
    }

    /// Key, name, address, nation, telephone and, for any other number, balance.
    pub(crate) fn values(&self, origin: &Origin, column: usize) -> Values<'_> {
        let rows = self.rows;
        match column {
            0 => Values::Key(&self.key[..rows]),
            1 => Values::Numbered {
                prefix: origin.name_prefix,
                numbers: &self.key[..rows],
            },
            2 => self.address.values(),
            3 => Values::Key(&self.nationkey[..rows]),
            4 => self.phone.values(),
            _ => Values::Decimal(&self.acctbal[..rows]),
        }
    }
}
