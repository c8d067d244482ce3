//! Table `customer`.

use super::comments::{Comments, Slices};
use super::strings::{ADDRESS_LONGEST, PHONE_BYTES, Strings, addresses, phones};
use super::{count_up, room};
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

const ADDRESS_SEED: u32 = 881_155_353;
const NATION: Draw = Draw::of(Stream::new(1_489_529_863, 1), 25);
const PHONE_SEED: u32 = 1_521_138_112;
const BALANCE: Draw = Draw::of(Stream::new(298_370_230, 1), 1_099_999);
const SEGMENT: Draw = Draw::of(Stream::new(1_140_279_430, 1), 5);
const COMMENTS: Comments = Comments::new(1_335_826_707, 73, 1);

/// Rows of `customer`.
#[derive(Default)]
pub(crate) struct Customer {
    rows: usize,
    custkey: Vec<i64>,
    address: Strings,
    nationkey: Vec<i64>,
    phone: Strings,
    acctbal: Vec<i64>,
    mktsegment: Vec<u8>,
    comment: Slices,
}

impl Customer {
    /// Fills in the rows of some units, and says how many there are.
    pub(crate) fn fill(&mut self, first: u64, rows: usize) -> usize {
        self.rows = rows;
        count_up(&mut self.custkey, first, rows);
        addresses(ADDRESS_SEED, first, rows, &mut self.address);
        each(&NATION, first, 0, room(&mut self.nationkey, rows));
        phones(PHONE_SEED, first, &self.nationkey[..rows], &mut self.phone);
        each(&BALANCE, first, -99_999, room(&mut self.acctbal, rows));
        each(&SEGMENT, first, 0, room(&mut self.mktsegment, rows));
        COMMENTS.fill(first, rows, &mut self.comment);
        rows
    }

    pub(crate) fn values(&self, column: usize) -> Values<'_> {
        let rows = self.rows;
        match column {
            0 => Values::Key(&self.custkey[..rows]),
            1 => Values::Numbered {
                prefix: "Customer#",
                numbers: &self.custkey[..rows],
            },
            2 => Values::Bytes {
                offsets: &self.address.offsets,
                bytes: &self.address.bytes,
            },
            3 => Values::Key(&self.nationkey[..rows]),
            4 => Values::Bytes {
                offsets: &self.phone.offsets,
                bytes: &self.phone.bytes,
            },
            5 => Values::Decimal(&self.acctbal[..rows]),
            6 => Values::Coded {
                codes: &self.mktsegment[..rows],
                dictionary: &words::SEGMENTS,
            },
            _ => Values::Passages(self.comment.passages(rows)),
        }
    }
}
