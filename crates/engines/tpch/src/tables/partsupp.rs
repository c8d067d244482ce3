//! Makes the rows of table `partsupp`, four for each part.

use super::comments::{Comments, Slices};
use super::room;
use crate::draws::{Draw, LANES, Work, each_line, vectorised};
use crate::random::Stream;
use crate::scale::Scale;
use crate::table::{Column, Kind, column};
use crate::values::Values;

pub(crate) const COLUMNS: [Column; 5] = [
    column("ps_partkey", Kind::Key),
    column("ps_suppkey", Kind::Key),
    column("ps_availqty", Kind::Integer),
    column("ps_supplycost", Kind::Decimal),
    column("ps_comment", Kind::Varchar(COMMENTS.longest() + 1)),
];

/// How many rows a unit has, since a unit is a part.
pub(crate) const SUPPLIERS_PER_PART: usize = 4;
const PER_PART: u32 = SUPPLIERS_PER_PART as u32;
const QUANTITY: Draw = Draw::new(Stream::new(1_671_059_989, PER_PART), 9999);
const COST: Draw = Draw::new(Stream::new(1_051_288_424, PER_PART), 99_901);
const COMMENTS: Comments = Comments::new(1_961_692_154, 124, PER_PART);

/// Computes the key of a part's `nth` supplier, from 0 (clause 4.2.3).
///
/// It computes in doubles, which are vectorised where divisions of integers are not. All numbers
/// are whole and below 2^31, and a quotient that is raised by half a supplier is at least half a
/// supplier's share away from a whole number, so that the floor is exact.
#[derive(Clone, Copy)]
pub(crate) struct Suppliers {
    count: f64,
    share: f64,
    quarter: f64,
}

impl Suppliers {
    pub(crate) fn new(scale: &Scale) -> Suppliers {
        Suppliers {
            count: scale.suppliers.into(),
            share: 1.0 / f64::from(scale.suppliers),
            quarter: (scale.suppliers / PER_PART).into(),
        }
    }

    #[inline(always)]
    pub(crate) fn suppkey(&self, partkey: u32, nth: u32) -> i64 {
        let part = f64::from(partkey as i32);
        // The formula steps from supplier to supplier by a quarter of them, and by how many rounds
        // the parts before this one have made. The remainder by their number is taken last.
        let round = f64::from(crate::draws::truncate((part - 0.5) * self.share) as i32);
        let place = part + f64::from(nth as i32) * (self.quarter + round);
        let rounds = f64::from(crate::draws::truncate((place + 0.5) * self.share) as i32);
        i64::from((place - rounds * self.count) as i32) + 1
    }
}

#[derive(Default)]
pub(crate) struct Partsupp {
    rows: usize,
    lines: Vec<u8>,
    partkey: Vec<i64>,
    suppkey: Vec<i64>,
    availqty: Vec<i32>,
    supplycost: Vec<i64>,
    comment: Slices,
}

impl Partsupp {
    /// Fills in the rows of some units, and returns how many there are.
    pub(crate) fn fill(&mut self, scale: &Scale, first: u64, parts: usize) -> usize {
        self.rows = parts * SUPPLIERS_PER_PART;
        let rows = self.rows;
        // Parts are like orders of four lines each.
        if self.lines.len() < parts {
            self.lines.resize(parts, SUPPLIERS_PER_PART as u8);
        }
        let lines = &self.lines[..parts];
        vectorised(Pair {
            suppliers: Suppliers::new(scale),
            first_part: first as u32 + 1,
            partkey: room(&mut self.partkey, rows),
            suppkey: room(&mut self.suppkey, rows),
        });
        each_line(
            &QUANTITY,
            first,
            lines,
            1,
            room(&mut self.availqty, rows + LANES),
        );
        each_line(
            &COST,
            first,
            lines,
            100,
            room(&mut self.supplycost, rows + LANES),
        );
        COMMENTS.fill_lines(first, lines, rows, &mut self.comment);
        rows
    }

    pub(crate) fn values(&self, column: usize) -> Values<'_> {
        let rows = self.rows;
        match column {
            0 => Values::Key(&self.partkey[..rows]),
            1 => Values::Key(&self.suppkey[..rows]),
            2 => Values::Integer(&self.availqty[..rows]),
            3 => Values::Decimal(&self.supplycost[..rows]),
            _ => Values::Passages(self.comment.passages(rows)),
        }
    }
}

/// Computes the keys of parts and of their suppliers.
struct Pair<'a> {
    suppliers: Suppliers,
    first_part: u32,
    partkey: &'a mut [i64],
    suppkey: &'a mut [i64],
}

impl Work for Pair<'_> {
    #[inline(always)]
    fn work(self) {
        let parts = self.partkey.chunks_exact_mut(SUPPLIERS_PER_PART);
        let suppliers = self.suppkey.chunks_exact_mut(SUPPLIERS_PER_PART);
        for ((part, partkey), suppkey) in (self.first_part..).zip(parts).zip(suppliers) {
            partkey.fill(part.into());
            for (nth, suppkey) in suppkey.iter_mut().enumerate() {
                *suppkey = self.suppliers.suppkey(part, nth as u32);
            }
        }
    }
}
