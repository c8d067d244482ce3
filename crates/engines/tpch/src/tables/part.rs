//! Makes the rows of table `part`.

use super::comments::{Comments, Slices};
use super::strings::Strings;
use super::{count_up, room};
use crate::draws::{Draw, each};
use crate::random::{Reader, Stream, times};
use crate::table::{Column, Kind, column};
use crate::values::Values;
use crate::words;

pub(crate) const COLUMNS: [Column; 9] = [
    column("p_partkey", Kind::Key),
    column("p_name", Kind::Varchar(55)),
    column("p_mfgr", Kind::Char(25)),
    column("p_brand", Kind::Char(10)),
    column("p_type", Kind::Varchar(25)),
    column("p_size", Kind::Integer),
    column("p_container", Kind::Char(10)),
    column("p_retailprice", Kind::Decimal),
    column("p_comment", Kind::Varchar(COMMENTS.longest() + 1)),
];

/// The stream of names. dbgen reserves a draw for every colour, and uses the first five.
const NAME: Stream = Stream::new(709_314_158, words::COLORS.len() as u32);
const NAME_WORDS: usize = 5;
const MANUFACTURER: Draw = Draw::new(Stream::new(1, 1), 5);
const BRAND: Draw = Draw::new(Stream::new(46_831_694, 1), 5);
const TYPE: Draw = Draw::new(Stream::new(1_841_581_359, 1), words::TYPES.len() as u32);
const SIZE: Draw = Draw::new(Stream::new(1_193_163_244, 1), 50);
const CONTAINER: Draw = Draw::new(Stream::new(727_633_698, 1), words::CONTAINERS.len() as u32);
const COMMENTS: Comments = Comments::new(804_159_733, 14, 1);

/// The price of a part in hundredths, which follows from its key.
#[inline(always)]
pub(crate) fn retail_price(partkey: u32) -> u32 {
    90_000 + (partkey / 10) % 20_001 + (partkey % 1000) * 100
}

#[derive(Default)]
pub(crate) struct Part {
    rows: usize,
    partkey: Vec<i64>,
    name: Strings,
    manufacturer: Vec<u8>,
    brand: Vec<u8>,
    kind: Vec<u8>,
    size: Vec<i32>,
    container: Vec<u8>,
    retailprice: Vec<i64>,
    comment: Slices,
}

impl Part {
    /// Fills in the rows of some units, and returns how many there are.
    pub(crate) fn fill(&mut self, first: u64, rows: usize) -> usize {
        self.rows = rows;
        count_up(&mut self.partkey, first, rows);
        names(first, rows, &mut self.name);
        each(&MANUFACTURER, first, 0, room(&mut self.manufacturer, rows));
        each(&BRAND, first, 0, room(&mut self.brand, rows));
        // A brand belongs to a manufacturer, and its own draw only chooses one of the five.
        for (brand, manufacturer) in self.brand.iter_mut().zip(&self.manufacturer) {
            *brand += 5 * manufacturer;
        }
        each(&TYPE, first, 0, room(&mut self.kind, rows));
        each(&SIZE, first, 1, room(&mut self.size, rows));
        each(&CONTAINER, first, 0, room(&mut self.container, rows));
        let prices = room(&mut self.retailprice, rows);
        for (price, &key) in prices.iter_mut().zip(&self.partkey) {
            *price = retail_price(key as u32).into();
        }
        COMMENTS.fill(first, rows, &mut self.comment);
        rows
    }

    pub(crate) fn values(&self, column: usize) -> Values<'_> {
        let rows = self.rows;
        match column {
            0 => Values::Key(&self.partkey[..rows]),
            1 => self.name.values(),
            2 => Values::Coded {
                codes: &self.manufacturer[..rows],
                dictionary: &words::MANUFACTURERS,
            },
            3 => Values::Coded {
                codes: &self.brand[..rows],
                dictionary: &words::BRANDS,
            },
            4 => Values::Coded {
                codes: &self.kind[..rows],
                dictionary: &words::TYPES,
            },
            5 => Values::Integer(&self.size[..rows]),
            6 => Values::Coded {
                codes: &self.container[..rows],
                dictionary: &words::CONTAINERS,
            },
            7 => Values::Decimal(&self.retailprice[..rows]),
            _ => Values::Passages(self.comment.passages(rows)),
        }
    }
}

/// Makes names of five different colours each. They are the beginning of a shuffle, which is undone
/// after each name so that the next one starts from the list as it is.
fn names(first: u64, rows: usize, out: &mut Strings) {
    out.clear();
    let mut order: [u8; words::COLORS.len()] = std::array::from_fn(|at| at as u8);
    let mut start = NAME.before(first);
    for _ in 0..rows {
        let mut reader = Reader::at(start);
        let mut swaps = [0; NAME_WORDS];
        for (place, swap) in swaps.iter_mut().enumerate() {
            // Only colours that have not been used in this name can be drawn.
            *swap = place + reader.below((order.len() - place) as u32) as usize;
            order.swap(place, *swap);
        }
        for (place, &colour) in order[..NAME_WORDS].iter().enumerate() {
            if place > 0 {
                out.bytes.push(b' ');
            }
            let word = words::COLORS[usize::from(colour)];
            out.bytes.extend_from_slice(word.as_bytes());
        }
        out.end();
        // Five swaps back are far cheaper than a new list of all colours.
        for (place, &swap) in swaps.iter().enumerate().rev() {
            order.swap(place, swap);
        }
        start = times(start, NAME.stride());
    }
}
