//! Makes the rows of table `supplier`, some of whom have a remark in their comment.

use super::comments::{Comments, Slices};
use super::party::{Origin, Parties};
use super::room;
use super::strings::{ADDRESS_LONGEST, PHONE_BYTES};
use crate::draws::{Draw, each};
use crate::random::{Reader, Stream};
use crate::table::{Column, Kind, column};
use crate::values::{Passages, Remark, Values};

pub(crate) const COLUMNS: [Column; 7] = [
    column("s_suppkey", Kind::Key),
    column("s_name", Kind::Char(25)),
    column("s_address", Kind::Varchar(ADDRESS_LONGEST)),
    column("s_nationkey", Kind::Key),
    column("s_phone", Kind::Char(PHONE_BYTES)),
    column("s_acctbal", Kind::Decimal),
    column("s_comment", Kind::Varchar(COMMENTS.longest() + 1)),
];

const ORIGIN: Origin = Origin {
    name_prefix: "Supplier#",
    address_seed: 706_178_559,
    nation_seed: 110_356_601,
    phone_seed: 884_434_366,
    balance_seed: 962_338_209,
};
const COMMENTS: Comments = Comments::new(1_341_315_363, 63, 1);

/// Ten suppliers of ten thousand, on average, have a remark.
const REMARK: Draw = Draw::new(Stream::new(202_794_285, 1), 10_000);
const REMARKS_OF_TEN_THOUSAND: u32 = 10;
const REMARK_GAP: Stream = Stream::new(263_032_577, 1);
const REMARK_PLACE: Stream = Stream::new(715_851_524, 1);
const REMARK_VERDICT: Stream = Stream::new(753_643_799, 1);
const COMPLAINTS: &str = "Complaints";
const RECOMMENDS: &str = "Recommends";

#[derive(Default)]
pub(crate) struct Supplier {
    rows: usize,
    parties: Parties,
    comment: Slices,
    remark_draw: Vec<u32>,
    remarks: Vec<Remark>,
}

impl Supplier {
    /// Fills in the rows of some units, and returns how many there are.
    pub(crate) fn fill(&mut self, first: u64, rows: usize) -> usize {
        self.rows = rows;
        self.parties.fill(&ORIGIN, first, rows);
        COMMENTS.fill(first, rows, &mut self.comment);
        each(&REMARK, first, 0, room(&mut self.remark_draw, rows));
        self.remarks.clear();
        for (row, &draw) in self.remark_draw[..rows].iter().enumerate() {
            if draw < REMARKS_OF_TEN_THOUSAND {
                let length = self.comment.lengths[row];
                self.remarks.push(remark(first, row as u32, length));
            }
        }
        rows
    }

    pub(crate) fn values(&self, column: usize) -> Values<'_> {
        match column {
            6 => Values::Passages(Passages {
                remarks: &self.remarks,
                ..self.comment.passages(self.rows)
            }),
            _ => self.parties.values(&ORIGIN, column),
        }
    }
}

/// Draws the remark in a comment of `length` bytes. First comes how much lies between its two
/// words, and then where the first one begins, so that the second one still ends inside.
fn remark(first: u64, row: u32, length: u8) -> Remark {
    let draw =
        |stream: Stream, range: u32| Reader::at(stream.before(first + u64::from(row))).below(range);
    let customer = Remark::CUSTOMER.len() as u32;
    // The shortest comment has 25 bytes, so both words fit into any of them. "Recommends" is as
    // long as "Complaints".
    let free = u32::from(length) - customer - COMPLAINTS.len() as u32;
    let gap = draw(REMARK_GAP, free + 1);
    let at = draw(REMARK_PLACE, free - gap + 1);
    // The draw is a number of 0..=100, and the first 50 complain.
    let verdict = if draw(REMARK_VERDICT, 101) < 50 {
        COMPLAINTS
    } else {
        RECOMMENDS
    };
    Remark {
        row,
        customer_at: at as u8,
        verdict_at: (at + customer + gap) as u8,
        verdict,
    }
}
