//! Makes the rows of table `customer`.

use super::comments::{Comments, Slices};
use super::party::{Origin, Parties};
use super::room;
use super::strings::{ADDRESS_LONGEST, PHONE_BYTES};
use crate::draws::{Draw, each};
use crate::random::Stream;
use crate::table::{Column, Kind, column};
use crate::values::Values;
use crate::words;

pub(crate) const COLUMNS: [Column; 8] = [
    column("c_custkey", Kind::Key),
    column("c_name", Kind::Varchar(25)),
    column("c_address", Kind::Varchar(ADDRESS_LONGEST)),
    column("c_nationkey", Kind::Key),
    column("c_phone", Kind::Char(PHONE_BYTES)),
    column("c_acctbal", Kind::Decimal),
    column("c_mktsegment", Kind::Char(10)),
    column("c_comment", Kind::Varchar(COMMENTS.longest() + 1)),
];

const ORIGIN: Origin = Origin {
    name_prefix: "Customer#",
    address_seed: 881_155_353,
    nation_seed: 1_489_529_863,
    phone_seed: 1_521_138_112,
    balance_seed: 298_370_230,
};
const SEGMENT: Draw = Draw::new(Stream::new(1_140_279_430, 1), 5);
const COMMENTS: Comments = Comments::new(1_335_826_707, 73, 1);

#[derive(Default)]
pub(crate) struct Customer {
    rows: usize,
    parties: Parties,
    mktsegment: Vec<u8>,
    comment: Slices,
}

impl Customer {
    /// Fills in the rows of some units, and returns how many there are.
    pub(crate) fn fill(&mut self, first: u64, rows: usize) -> usize {
        self.rows = rows;
        self.parties.fill(&ORIGIN, first, rows);
        each(&SEGMENT, first, 0, room(&mut self.mktsegment, rows));
        COMMENTS.fill(first, rows, &mut self.comment);
        rows
    }

    pub(crate) fn values(&self, column: usize) -> Values<'_> {
        match column {
            6 => Values::Coded {
                codes: &self.mktsegment[..self.rows],
                dictionary: &words::SEGMENTS,
            },
            7 => Values::Passages(self.comment.passages(self.rows)),
            _ => self.parties.values(&ORIGIN, column),
        }
    }
}
