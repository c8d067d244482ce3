//! Columns of integers and of dates, which have one stream of runs.

use super::{Batch, Index, Stream};
use crate::columns::{Codes, Field, Kind, Values};
use crate::orc_write::codec::Codec;
use crate::orc_write::error::{Error, Result};
use crate::orc_write::rle::Integers;
use crate::orc_write::statistics::{Bounds, Range};

pub(in crate::orc_write) struct Column {
    field: Field,
    data: Integers,
    index: Index,
    decoded: Vec<i64>,
}

impl Column {
    pub(super) fn new(field: Field) -> Column {
        Column {
            field,
            data: Integers::new(true),
            index: Index::default(),
            decoded: Vec::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.data.clear();
        self.index.clear();
    }

    pub(super) fn append(&mut self, values: &Values<'_>, batch: &mut Batch<'_>) -> Result<()> {
        match *values {
            Values::Int32(values) => self.append_all(values, batch),
            Values::Int64(values) => self.append_all(values, batch),
            Values::CodedInt64 { codes, values } => {
                let mut decoded = std::mem::take(&mut self.decoded);
                decode(self.field.name, codes, values, &mut decoded)?;
                let result = self.append_all(&decoded, batch);
                self.decoded = decoded;
                result
            }
            _ => unreachable!("the batch was checked"),
        }
    }

    fn append_all<T: Copy + Into<i64>>(
        &mut self,
        values: &[T],
        batch: &mut Batch<'_>,
    ) -> Result<()> {
        for segment in batch.segments {
            if self.index.is_at_begin() {
                self.data.mark(batch.codec, &mut self.index.positions)?;
            }
            let values = &values[segment.rows.clone()];
            let range = Range::from_values(values);
            let bounds = match self.field.kind {
                Kind::Date => Bounds::Date(range),
                _ => Bounds::Integer(range),
            };
            self.index.add(values.len(), bounds);
            self.data.append(values, Into::into);
            // The next stride begins with a run of its own, so that a reader can seek to it.
            if segment.ends {
                self.data.end_run();
                self.index.end_stride();
            }
        }
        self.data.stream.settle(batch.codec)
    }

    pub(super) fn finish(&mut self, codec: &mut Codec) -> Result<()> {
        if !self.index.is_at_begin() {
            self.index.end_stride();
        }
        self.data.finish(codec)
    }

    pub(super) fn data(&self) -> &Stream {
        &self.data.stream
    }

    pub(super) fn index(&self) -> &Index {
        &self.index
    }
}

/// Replaces `out` by the integers that codes stand for.
pub(super) fn decode(
    name: &'static str,
    codes: Codes<'_>,
    values: &[i64],
    out: &mut Vec<i64>,
) -> Result<()> {
    let value = |code: u32| {
        values.get(code as usize).copied().ok_or(Error::Code {
            name,
            code,
            entries: values.len(),
        })
    };
    out.clear();
    match codes {
        Codes::U8(codes) => {
            for &code in codes {
                out.push(value(code.into())?);
            }
        }
        Codes::U32(codes) => {
            for &code in codes {
                out.push(value(code)?);
            }
        }
    }
    Ok(())
}
