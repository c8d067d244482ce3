//! Passes columns on as short as the generator has them. Codes stay codes, and comments stay in the
//! pool.

use dyno_formats::columns::{Codes, Slices, Values, Words};
use dyno_tpch::{Batch, Scale, TextPool};

use super::{PoolSlices, numbered};

/// The most clerks for whose names there is a dictionary. With more, it would be most of a row
/// group.
const CLERKS_CODED: u32 = 100_000;

/// The dictionaries and names of one table, kept from batch to batch.
pub(crate) struct Coded {
    clerks: u32,
    /// For each column its dictionary, if it has codes.
    words: Vec<Option<Words>>,
    names: Names,
}

/// The values of the column of numbered names, of which a table has at most one.
#[derive(Default)]
struct Names {
    codes: Vec<u32>,
    offsets: Vec<u32>,
    bytes: Vec<u8>,
}

impl Coded {
    pub(super) fn new(scale: &Scale) -> Coded {
        Coded {
            clerks: scale.clerks(),
            words: Vec::new(),
            names: Names::default(),
        }
    }

    pub(super) fn with_columns<R>(
        &mut self,
        batch: &Batch,
        pool: &TextPool,
        take: impl FnOnce(&[Values<'_>]) -> R,
    ) -> R {
        let count = batch.table().columns().len();
        // Made once, because writers expect the same dictionary in every batch.
        if self.words.is_empty() {
            self.words = (0..count).map(|at| self.dictionary(batch, at)).collect();
        }
        let mut comments = None;
        for at in 0..count {
            match batch.values(at) {
                dyno_tpch::Values::Numbered { prefix, numbers } => {
                    self.names.fill(prefix, numbers, self.words[at].is_some());
                }
                dyno_tpch::Values::Passages(passages) => {
                    comments = Some(PoolSlices { passages, pool });
                }
                _ => {}
            }
        }
        let comments = comments.as_ref().map(|slices| slices as &dyn Slices);
        let columns: Vec<Values> = (0..count)
            .map(|at| self.column(batch, at, comments))
            .collect();
        take(&columns)
    }

    /// The dictionary of a column, if it has codes.
    fn dictionary(&self, batch: &Batch, at: usize) -> Option<Words> {
        match batch.values(at) {
            dyno_tpch::Values::Coded { dictionary, .. } => Some(Words::new(dictionary)),
            dyno_tpch::Values::Numbered { prefix, .. }
                if is_clerk(batch, at) && self.clerks <= CLERKS_CODED =>
            {
                Some(Words::new((1..=self.clerks).map(|number| {
                    let mut name = Vec::new();
                    numbered::append(prefix, number.into(), &mut name);
                    name
                })))
            }
            _ => None,
        }
    }

    fn column<'a>(
        &'a self,
        batch: &'a Batch,
        at: usize,
        comments: Option<&'a dyn Slices>,
    ) -> Values<'a> {
        let words = self.words[at].as_ref();
        match (batch.values(at), words, comments) {
            (dyno_tpch::Values::Key(values) | dyno_tpch::Values::Decimal(values), ..) => {
                Values::Int64(values)
            }
            (dyno_tpch::Values::Integer(values) | dyno_tpch::Values::Date(values), ..) => {
                Values::Int32(values)
            }
            (dyno_tpch::Values::CodedDecimal { codes, dictionary }, ..) => Values::CodedInt64 {
                codes: Codes::U8(codes),
                values: dictionary,
            },
            (dyno_tpch::Values::Coded { codes, .. }, Some(words), _) => Values::CodedText {
                codes: Codes::U8(codes),
                words,
            },
            (dyno_tpch::Values::Numbered { .. }, Some(words), _) => Values::CodedText {
                codes: Codes::U32(&self.names.codes),
                words,
            },
            (dyno_tpch::Values::Passages(_), _, Some(slices)) => Values::Slices(slices),
            (dyno_tpch::Values::Bytes { offsets, bytes }, ..) => Values::Text { offsets, bytes },
            // Numbered names without a dictionary, since the arms above take all else.
            _ => Values::Text {
                offsets: &self.names.offsets,
                bytes: &self.names.bytes,
            },
        }
    }
}

/// Whether a column has the names of clerks, which recur. The other numbered names are those of
/// customers and suppliers, each of which occurs once.
fn is_clerk(batch: &Batch, at: usize) -> bool {
    batch.table().columns()[at].name == "o_clerk"
}

impl Names {
    fn fill(&mut self, prefix: &str, numbers: &[i64], as_codes: bool) {
        self.codes.clear();
        self.offsets.clear();
        self.bytes.clear();
        if as_codes {
            self.codes
                .extend(numbers.iter().map(|&number| number as u32 - 1));
            return;
        }
        self.offsets.push(0);
        for &number in numbers {
            let end = numbered::append(prefix, number, &mut self.bytes);
            self.offsets.push(end);
        }
    }
}
