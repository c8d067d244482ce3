//! Makes the rows of table `nation`.

use super::comments::{Comments, Slices};
use crate::table::{Column, Kind, column};
use crate::values::Values;
use crate::words;

pub(crate) const COLUMNS: [Column; 4] = [
    column("n_nationkey", Kind::Key),
    column("n_name", Kind::Char(25)),
    column("n_regionkey", Kind::Key),
    column("n_comment", Kind::Varchar(152)),
];

const COMMENTS: Comments = Comments::new(606_179_079, 72, 1);

#[derive(Default)]
pub(crate) struct Nation {
    nationkey: Vec<i64>,
    name: Vec<u8>,
    regionkey: Vec<i64>,
    comment: Slices,
}

impl Nation {
    /// Fills in the rows of some units, and returns how many there are.
    pub(crate) fn fill(&mut self, first: u64, rows: usize) -> usize {
        let nations = first as usize..first as usize + rows;
        self.nationkey.clear();
        self.nationkey.extend(nations.clone().map(|key| key as i64));
        self.name.clear();
        self.name.extend(nations.clone().map(|key| key as u8));
        self.regionkey.clear();
        self.regionkey
            .extend_from_slice(&words::REGION_OF_NATION[nations]);
        COMMENTS.fill(first, rows, &mut self.comment);
        rows
    }

    pub(crate) fn values(&self, column: usize) -> Values<'_> {
        match column {
            0 => Values::Key(&self.nationkey),
            1 => Values::Coded {
                codes: &self.name,
                dictionary: &words::NATIONS,
            },
            2 => Values::Key(&self.regionkey),
            _ => Values::Passages(self.comment.passages(self.name.len())),
        }
    }
}
