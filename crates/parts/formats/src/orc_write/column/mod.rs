//! A column of a stripe, with its streams, its index and its statistics.

mod decimal;
mod deferred;
mod direct;
mod distinct;
mod index;
mod integer;
mod limit;
mod ranked;
mod text;
mod varint;

use std::ops::Range;

use super::codec::Codec;
use super::error::Result;
use super::options::Options;
use super::statistics::Statistics;
use super::stream::Stream;
use crate::columns::{Field, Kind, Values};
use index::Index;

/// Numbers of `Stream.Kind` in the specification.
const DATA: u64 = 1;
const LENGTH: u64 = 2;
const DICTIONARY_DATA: u64 = 3;
const SECONDARY: u64 = 5;

/// Numbers of `ColumnEncoding.Kind` in the specification.
const DIRECT_V2: u64 = 2;
const DICTIONARY_V2: u64 = 3;

/// The rows of a batch that lie in one index stride.
pub(super) struct Segment {
    pub(super) rows: Range<usize>,
    /// Whether the last of them ends the stride.
    pub(super) ends: bool,
}

/// The rows that a column appends, cut where index strides end.
pub(super) struct Batch<'a> {
    pub(super) segments: &'a [Segment],
    pub(super) codec: &'a mut Codec,
}

/// How a column was encoded.
pub(super) struct Encoding {
    pub(super) kind: u64,
    /// How many entries the dictionary has, if there is one.
    pub(super) words: Option<usize>,
}

pub(super) enum Column {
    Integer(integer::Column),
    Decimal(decimal::Column),
    Text(Box<text::Column>),
}

impl Column {
    pub(super) fn new(field: Field, options: &Options) -> Column {
        match field.kind {
            Kind::Int32 | Kind::Int64 | Kind::Date => Column::Integer(integer::Column::new(field)),
            Kind::Decimal { precision, scale } => {
                Column::Decimal(decimal::Column::new(field.name, precision, scale))
            }
            Kind::Text | Kind::Char(_) | Kind::Varchar(_) => {
                Column::Text(Box::new(text::Column::new(field, options)))
            }
        }
    }

    /// Forgets the rows and keeps the buffers.
    pub(super) fn clear(&mut self) {
        match self {
            Column::Integer(column) => column.clear(),
            Column::Decimal(column) => column.clear(),
            Column::Text(column) => column.clear(),
        }
    }

    /// Appends values that fit the column's kind. After an error the column may have some of them.
    pub(super) fn append(&mut self, values: &Values<'_>, batch: &mut Batch<'_>) -> Result<()> {
        match self {
            Column::Integer(column) => column.append(values, batch),
            Column::Decimal(column) => column.append(values, batch),
            Column::Text(column) => column.append(values, batch),
        }
    }

    /// Ends all streams, after which only [`Column::clear`] makes the column usable again.
    pub(super) fn finish(&mut self, codec: &mut Codec) -> Result<()> {
        match self {
            Column::Integer(column) => column.finish(codec),
            Column::Decimal(column) => column.finish(codec),
            Column::Text(column) => column.finish(codec),
        }
    }

    /// About how many bytes its streams will take once it is finished.
    pub(super) fn encoded_bytes(&self) -> usize {
        let streams: usize = self.streams().map(|(_, stream)| stream.len()).sum();
        match self {
            Column::Text(column) => streams + column.waiting_bytes(),
            _ => streams,
        }
    }

    /// The streams with their kinds, in the order of the file.
    pub(super) fn streams(&self) -> impl Iterator<Item = (u64, &Stream)> {
        match self {
            Column::Integer(column) => [Some((DATA, column.data())), None, None],
            Column::Decimal(column) => column.streams(),
            Column::Text(column) => column.streams(),
        }
        .into_iter()
        .flatten()
    }

    pub(super) fn encoding(&self) -> Encoding {
        match self {
            Column::Integer(_) | Column::Decimal(_) => Encoding {
                kind: DIRECT_V2,
                words: None,
            },
            Column::Text(column) => column.encoding(),
        }
    }

    /// The message `RowIndex`, complete once the column is finished.
    pub(super) fn row_index(&self) -> &[u8] {
        self.index().message()
    }

    /// The statistics of all rows, complete once the column is finished.
    pub(super) fn statistics(&self) -> &Statistics {
        self.index().statistics()
    }

    fn index(&self) -> &Index {
        match self {
            Column::Integer(column) => column.index(),
            Column::Decimal(column) => column.index(),
            Column::Text(column) => column.index(),
        }
    }
}
