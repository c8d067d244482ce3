//! Makes the rows of table `region`.

use super::comments::{Comments, Slices};
use crate::table::{Column, Kind, column};
use crate::values::Values;
use crate::words;

pub(crate) const COLUMNS: [Column; 3] = [
    column("r_regionkey", Kind::Key),
    column("r_name", Kind::Char(25)),
    column("r_comment", Kind::Varchar(152)),
];

const COMMENTS: Comments = Comments::new(1_500_869_201, 72, 1);

#[derive(Default)]
pub(crate) struct Region {
    regionkey: Vec<i64>,
    name: Vec<u8>,
    comment: Slices,
}

impl Region {
    /// Fills in the rows of some units, and returns how many there are.
    pub(crate) fn fill(&mut self, first: u64, rows: usize) -> usize {
        let regions = first..first + rows as u64;
        self.regionkey.clear();
        self.regionkey.extend(regions.clone().map(|key| key as i64));
        self.name.clear();
        self.name.extend(regions.map(|key| key as u8));
        COMMENTS.fill(first, rows, &mut self.comment);
        rows
    }

    pub(crate) fn values(&self, column: usize) -> Values<'_> {
        match column {
            0 => Values::Key(&self.regionkey),
            1 => Values::Coded {
                codes: &self.name,
                dictionary: &words::REGIONS,
            },
            _ => Values::Passages(self.comment.passages(self.name.len())),
        }
    }
}
