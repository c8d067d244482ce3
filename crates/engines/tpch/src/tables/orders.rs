//! Makes the rows of table `orders`, whose prices and states follow from their lines.

use super::comments::{Comments, Slices};
use super::lines::{
    DISCOUNT, QUANTITY, SHIP, TAX, count_lines, order_dates, order_key, part_of_line,
};
use super::part::retail_price;
use super::room;
use crate::dates::TODAY;
use crate::draws::{Draw, LANES, Work, each, each_line, vectorised};
use crate::random::Stream;
use crate::scale::Scale;
use crate::table::{Column, Kind, column};
use crate::values::Values;
use crate::words;

pub(crate) const COLUMNS: [Column; 9] = [
    column("o_orderkey", Kind::Key),
    column("o_custkey", Kind::Key),
    column("o_orderstatus", Kind::Char(1)),
    column("o_totalprice", Kind::Decimal),
    column("o_orderdate", Kind::Date),
    column("o_orderpriority", Kind::Char(15)),
    column("o_clerk", Kind::Char(15)),
    column("o_shippriority", Kind::Integer),
    column("o_comment", Kind::Varchar(COMMENTS.longest() + 1)),
];

const CUSTOMER: Stream = Stream::new(851_767_375, 1);
const PRIORITY: Draw = Draw::new(Stream::new(591_449_447, 1), 5);
const CLERK: Stream = Stream::new(1_171_034_773, 1);
const COMMENTS: Comments = Comments::new(276_090_261, 49, 1);

#[derive(Default)]
pub(crate) struct Orders {
    rows: usize,
    orderkey: Vec<i64>,
    custkey: Vec<i64>,
    orderstatus: Vec<u8>,
    totalprice: Vec<i64>,
    orderdate: Vec<i32>,
    orderpriority: Vec<u8>,
    clerk: Vec<i64>,
    shippriority: Vec<i32>,
    comment: Slices,
    lines: Lines,
}

/// The lines of a batch's orders, as far as the orders depend on them.
#[derive(Default)]
struct Lines {
    counts: Vec<u8>,
    quantity: Vec<u32>,
    discount: Vec<u32>,
    tax: Vec<u32>,
    partkey: Vec<u32>,
    ship: Vec<i32>,
    charge: Vec<u32>,
}

impl Orders {
    /// Fills in the rows of some units, and returns how many there are.
    pub(crate) fn fill(&mut self, scale: &Scale, first: u64, rows: usize) -> usize {
        self.rows = rows;
        for (key, order) in room(&mut self.orderkey, rows).iter_mut().zip(first..) {
            *key = order_key(order);
        }
        let custkey = room(&mut self.custkey, rows);
        each(&Draw::new(CUSTOMER, scale.customers), first, 1, custkey);
        spare_every_third(custkey, scale.customers.into());
        order_dates(first, room(&mut self.orderdate, rows));
        each(&PRIORITY, first, 0, room(&mut self.orderpriority, rows));
        each(
            &Draw::new(CLERK, scale.clerks),
            first,
            1,
            room(&mut self.clerk, rows),
        );
        room(&mut self.shippriority, rows);
        COMMENTS.fill(first, rows, &mut self.comment);
        self.lines.fill(scale, first, rows);
        vectorised(Totals {
            lines: &self.lines,
            orderdate: &self.orderdate[..rows],
            orderstatus: room(&mut self.orderstatus, rows),
            totalprice: room(&mut self.totalprice, rows),
        });
        rows
    }

    pub(crate) fn values(&self, column: usize) -> Values<'_> {
        let rows = self.rows;
        match column {
            0 => Values::Key(&self.orderkey[..rows]),
            1 => Values::Key(&self.custkey[..rows]),
            2 => Values::Coded {
                codes: &self.orderstatus[..rows],
                dictionary: &words::ORDER_STATUSES,
            },
            3 => Values::Decimal(&self.totalprice[..rows]),
            4 => Values::Date(&self.orderdate[..rows]),
            5 => Values::Coded {
                codes: &self.orderpriority[..rows],
                dictionary: &words::PRIORITIES,
            },
            6 => Values::Numbered {
                prefix: "Clerk#",
                numbers: &self.clerk[..rows],
            },
            7 => Values::Integer(&self.shippriority[..rows]),
            _ => Values::Passages(self.comment.passages(rows)),
        }
    }
}

/// Moves orders away from every third customer, since a third of them has none. Such an order goes
/// to the next customer, or to the one before if it is the last.
fn spare_every_third(custkeys: &mut [i64], customers: i64) {
    for key in custkeys {
        if *key % 3 == 0 {
            *key += if *key < customers { 1 } else { -1 };
        }
    }
}

impl Lines {
    fn fill(&mut self, scale: &Scale, first: u64, orders: usize) {
        let counts = room(&mut self.counts, orders);
        // Loops over lines write whole vectors, and so up to `LANES` values behind the last line.
        let rows = count_lines(first, counts) + LANES;
        let counts = &self.counts[..orders];
        let part = part_of_line(scale);
        each_line(&QUANTITY, first, counts, 1, room(&mut self.quantity, rows));
        each_line(&DISCOUNT, first, counts, 0, room(&mut self.discount, rows));
        each_line(&TAX, first, counts, 0, room(&mut self.tax, rows));
        each_line(&part, first, counts, 1, room(&mut self.partkey, rows));
        each_line(&SHIP, first, counts, 1, room(&mut self.ship, rows));
        vectorised(Charges {
            quantity: &self.quantity[..rows],
            discount: &self.discount[..rows],
            tax: &self.tax[..rows],
            partkey: &self.partkey[..rows],
            charge: room(&mut self.charge, rows),
        });
    }
}

/// Computes what each line costs in the end, in hundredths, rounded down twice as dbgen does. A
/// line's extended price is at most 50 x 2099.00, so that 32 bits hold it a hundredfold. The lanes
/// behind the last line hold what an earlier batch left there, or zeros.
struct Charges<'a> {
    quantity: &'a [u32],
    discount: &'a [u32],
    tax: &'a [u32],
    partkey: &'a [u32],
    charge: &'a mut [u32],
}

impl Work for Charges<'_> {
    #[inline(always)]
    fn work(self) {
        let factors = self.quantity.iter().zip(self.discount).zip(self.tax);
        let lines = factors.zip(self.partkey).zip(self.charge);
        for ((((&quantity, &discount), &tax), &partkey), charge) in lines {
            let price = quantity * retail_price(partkey);
            *charge = price * (100 - discount) / 100 * (100 + tax) / 100;
        }
    }
}

/// Computes the price and the state of each order from its lines.
struct Totals<'a> {
    lines: &'a Lines,
    orderdate: &'a [i32],
    orderstatus: &'a mut [u8],
    totalprice: &'a mut [i64],
}

impl Work for Totals<'_> {
    #[inline(always)]
    fn work(self) {
        let mut at = 0;
        let orders = self.orderdate.iter().zip(&self.lines.counts);
        let results = self.orderstatus.iter_mut().zip(self.totalprice);
        for ((&date, &count), (status, total)) in orders.zip(results) {
            let charges = &self.lines.charge[at..at + LANES];
            let ships = &self.lines.ship[at..at + LANES];
            let (mut sum, mut shipped) = (0, 0);
            // All lanes, because a loop of fixed length is one vector. Those behind the order's
            // last line are of the next order and count as zero.
            for line in 0..LANES {
                let counts = u32::from(line < usize::from(count));
                sum += charges[line] * counts;
                shipped += counts * u32::from(date + ships[line] <= TODAY);
            }
            *total = sum.into();
            *status = match shipped {
                0 => 1,
                _ if shipped == u32::from(count) => 0,
                _ => 2,
            };
            at += usize::from(count);
        }
    }
}
