//! Makes the rows of table `lineitem`, one to seven for each order.

use super::comments::{Comments, Slices};
use super::lines::{
    DISCOUNT, PER_ORDER, QUANTITY, RECEIPT_DAYS, SHIP, TAX, count_lines, order_dates, order_key,
    part_of_line,
};
use super::part::retail_price;
use super::partsupp::{SUPPLIERS_PER_PART, Suppliers};
use super::room;
use crate::dates::TODAY;
use crate::draws::{Draw, LANES, Work, each_line, repeat, vectorised};
use crate::random::Stream;
use crate::scale::Scale;
use crate::table::{Column, Kind, column};
use crate::values::Values;
use crate::words;

pub(crate) const COLUMNS: [Column; 16] = [
    column("l_orderkey", Kind::Key),
    column("l_partkey", Kind::Key),
    column("l_suppkey", Kind::Key),
    column("l_linenumber", Kind::Integer),
    column("l_quantity", Kind::WholeDecimal),
    column("l_extendedprice", Kind::Decimal),
    column("l_discount", Kind::Decimal),
    column("l_tax", Kind::Decimal),
    column("l_returnflag", Kind::Char(1)),
    column("l_linestatus", Kind::Char(1)),
    column("l_shipdate", Kind::Date),
    column("l_commitdate", Kind::Date),
    column("l_receiptdate", Kind::Date),
    column("l_shipinstruct", Kind::Char(25)),
    column("l_shipmode", Kind::Char(10)),
    column("l_comment", Kind::Varchar(COMMENTS.longest() + 1)),
];

const fn per_line(seed: u32, range: u32) -> Draw {
    Draw::new(Stream::new(seed, PER_ORDER), range)
}

const SUPPLIER: Draw = per_line(2_095_021_727, SUPPLIERS_PER_PART as u32);
const COMMIT: Draw = per_line(904_914_315, 61);
const COMMIT_FROM: i32 = 30;
const RECEIPT: Draw = per_line(373_135_028, RECEIPT_DAYS);
const RETURN: Draw = per_line(717_419_739, 2);
/// The code of "N" among the return flags.
const NOT_RETURNED: u8 = 2;
const INSTRUCTION: Draw = per_line(1_371_272_478, words::INSTRUCTIONS.len() as u32);
const MODE: Draw = per_line(675_466_456, words::MODES.len() as u32);
const COMMENTS: Comments = Comments::new(1_095_462_486, 27, PER_ORDER);

#[derive(Default)]
pub(crate) struct Lineitem {
    rows: usize,
    orderkey: Vec<i64>,
    partkey: Vec<i64>,
    suppkey: Vec<i64>,
    linenumber: Vec<i32>,
    quantity: Vec<u8>,
    extendedprice: Vec<i64>,
    discount: Vec<u8>,
    tax: Vec<u8>,
    returnflag: Vec<u8>,
    linestatus: Vec<u8>,
    shipdate: Vec<i32>,
    commitdate: Vec<i32>,
    receiptdate: Vec<i32>,
    shipinstruct: Vec<u8>,
    shipmode: Vec<u8>,
    comment: Slices,
    orders: Orders,
    draws: Draws,
}

/// Values of which there is one for each order.
#[derive(Default)]
struct Orders {
    lines: Vec<u8>,
    key: Vec<i64>,
    date: Vec<i32>,
}

/// Draws that become columns only together with others.
#[derive(Default)]
struct Draws {
    part: Vec<u32>,
    supplier: Vec<u32>,
    orderdate: Vec<i32>,
    returned: Vec<u8>,
}

impl Lineitem {
    /// Fills in the rows of some units, and returns how many there are.
    pub(crate) fn fill(&mut self, scale: &Scale, first: u64, orders: usize) -> usize {
        self.rows = count_lines(first, room(&mut self.orders.lines, orders));
        // Loops over lines write whole vectors, and so up to `LANES` values behind the last row.
        let space = self.rows + LANES;
        self.fill_orders(first, orders, space);
        let lines = &self.orders.lines[..orders];
        each_line(&QUANTITY, first, lines, 0, room(&mut self.quantity, space));
        each_line(&DISCOUNT, first, lines, 0, room(&mut self.discount, space));
        each_line(&TAX, first, lines, 0, room(&mut self.tax, space));
        each_line(
            &INSTRUCTION,
            first,
            lines,
            0,
            room(&mut self.shipinstruct, space),
        );
        each_line(&MODE, first, lines, 0, room(&mut self.shipmode, space));
        COMMENTS.fill_lines(first, lines, self.rows, &mut self.comment);

        let part = room(&mut self.draws.part, space);
        each_line(&part_of_line(scale), first, lines, 1, part);
        each_line(
            &SUPPLIER,
            first,
            lines,
            0,
            room(&mut self.draws.supplier, space),
        );
        // Part and supplier become keys and a price together, in one pass over the draws.
        vectorised(Prices {
            suppliers: Suppliers::new(scale),
            quantity: &self.quantity[..self.rows],
            draws: &self.draws,
            partkey: room(&mut self.partkey, self.rows),
            suppkey: room(&mut self.suppkey, self.rows),
            extendedprice: room(&mut self.extendedprice, self.rows),
        });
        self.fill_dates(first, orders, space);
        self.rows
    }

    /// Fills in the columns whose values follow from the order alone.
    fn fill_orders(&mut self, first: u64, orders: usize, space: usize) {
        let lines = &self.orders.lines[..orders];
        for (key, order) in room(&mut self.orders.key, orders).iter_mut().zip(first..) {
            *key = order_key(order);
        }
        repeat(
            &self.orders.key[..orders],
            lines,
            room(&mut self.orderkey, space),
        );
        order_dates(first, room(&mut self.orders.date, orders));
        let dates = room(&mut self.draws.orderdate, space);
        repeat(&self.orders.date[..orders], lines, dates);
        let numbers = room(&mut self.linenumber, space);
        let mut at = 0;
        for &lines in lines {
            numbers[at..at + LANES].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
            at += usize::from(lines);
        }
    }

    fn fill_dates(&mut self, first: u64, orders: usize, space: usize) {
        let lines = &self.orders.lines[..orders];
        each_line(&SHIP, first, lines, 1, room(&mut self.shipdate, space));
        each_line(
            &COMMIT,
            first,
            lines,
            COMMIT_FROM,
            room(&mut self.commitdate, space),
        );
        each_line(
            &RECEIPT,
            first,
            lines,
            1,
            room(&mut self.receiptdate, space),
        );
        vectorised(Dates {
            ordered: &self.draws.orderdate[..self.rows],
            ship: &mut self.shipdate[..self.rows],
            commit: &mut self.commitdate[..self.rows],
            receipt: &mut self.receiptdate[..self.rows],
            status: room(&mut self.linestatus, self.rows),
        });
        each_line(
            &RETURN,
            first,
            lines,
            0,
            room(&mut self.draws.returned, space),
        );
        let flags = room(&mut self.returnflag, space);
        flag_returns(lines, &self.receiptdate, &self.draws.returned, flags);
    }

    pub(crate) fn values(&self, column: usize) -> Values<'_> {
        let rows = self.rows;
        let coded = |codes, dictionary| Values::Coded { codes, dictionary };
        match column {
            0 => Values::Key(&self.orderkey[..rows]),
            1 => Values::Key(&self.partkey[..rows]),
            2 => Values::Key(&self.suppkey[..rows]),
            3 => Values::Integer(&self.linenumber[..rows]),
            4 => Values::CodedDecimal {
                codes: &self.quantity[..rows],
                dictionary: &words::QUANTITIES,
            },
            5 => Values::Decimal(&self.extendedprice[..rows]),
            6 => Values::CodedDecimal {
                codes: &self.discount[..rows],
                dictionary: &words::DISCOUNTS,
            },
            7 => Values::CodedDecimal {
                codes: &self.tax[..rows],
                dictionary: &words::TAXES,
            },
            8 => coded(&self.returnflag[..rows], &words::RETURN_FLAGS),
            9 => coded(&self.linestatus[..rows], &words::LINE_STATUSES),
            10 => Values::Date(&self.shipdate[..rows]),
            11 => Values::Date(&self.commitdate[..rows]),
            12 => Values::Date(&self.receiptdate[..rows]),
            13 => coded(&self.shipinstruct[..rows], &words::INSTRUCTIONS),
            14 => coded(&self.shipmode[..rows], &words::MODES),
            _ => Values::Passages(self.comment.passages(rows)),
        }
    }
}

/// Fills in the return flags. Lines that have not arrived by today take no draw, so that the later
/// lines of an order use the draws of earlier ones.
fn flag_returns(lines: &[u8], receipts: &[i32], drawn: &[u8], flags: &mut [u8]) {
    let mut at = 0;
    for &lines in lines {
        let mut next = 0;
        let drawn = &drawn[at..at + LANES];
        let receipts = &receipts[at..at + LANES];
        for (flag, &receipt) in flags[at..at + LANES].iter_mut().zip(receipts) {
            let arrived = receipt <= TODAY;
            // All lanes are written, of which the next order overwrites those that are too many.
            // The remainder changes nothing and proves the index in bounds.
            *flag = if arrived {
                drawn[next % LANES]
            } else {
                NOT_RETURNED
            };
            next += usize::from(arrived);
        }
        at += usize::from(lines);
    }
}

/// Computes the keys and prices of lines from their draws.
struct Prices<'a> {
    suppliers: Suppliers,
    quantity: &'a [u8],
    draws: &'a Draws,
    partkey: &'a mut [i64],
    suppkey: &'a mut [i64],
    extendedprice: &'a mut [i64],
}

impl Work for Prices<'_> {
    #[inline(always)]
    fn work(self) {
        let rows = self.quantity.len();
        let (parts, places) = (&self.draws.part[..rows], &self.draws.supplier[..rows]);
        for (key, &part) in self.partkey.iter_mut().zip(parts) {
            *key = part.into();
        }
        for ((key, &part), &place) in self.suppkey.iter_mut().zip(parts).zip(places) {
            *key = self.suppliers.suppkey(part, place);
        }
        let prices = self.extendedprice.iter_mut().zip(parts);
        for ((price, &part), &quantity) in prices.zip(self.quantity) {
            *price = ((u32::from(quantity) + 1) * retail_price(part)).into();
        }
    }
}

/// Turns the drawn numbers of days into dates, and computes the state of each line.
struct Dates<'a> {
    ordered: &'a [i32],
    ship: &'a mut [i32],
    commit: &'a mut [i32],
    receipt: &'a mut [i32],
    status: &'a mut [u8],
}

impl Work for Dates<'_> {
    #[inline(always)]
    fn work(self) {
        for (commit, &ordered) in self.commit.iter_mut().zip(self.ordered) {
            *commit += ordered;
        }
        for (ship, &ordered) in self.ship.iter_mut().zip(self.ordered) {
            *ship += ordered;
        }
        // Receipts and states follow from the day of shipment, which is a date by now.
        for (receipt, &ship) in self.receipt.iter_mut().zip(&*self.ship) {
            *receipt += ship;
        }
        for (status, &ship) in self.status.iter_mut().zip(&*self.ship) {
            *status = u8::from(ship > TODAY);
        }
    }
}
