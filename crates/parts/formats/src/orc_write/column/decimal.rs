//! Columns of decimals, which have a stream of varints and one of scales that are all the same.

use super::integer::decode;
use super::{Batch, DATA, Index, SECONDARY, Stream, varint};
use crate::columns::{Codes, Values};
use crate::orc_write::codec::Codec;
use crate::orc_write::error::{Error, Result};
use crate::orc_write::rle::Integers;
use crate::orc_write::statistics::{Bounds, Range};

pub(in crate::orc_write) struct Column {
    name: &'static str,
    precision: u8,
    scale: u8,
    data: Stream,
    scales: Integers,
    /// Rows of the current stride, whose scales are written when it ends.
    stride_rows: usize,
    index: Index,
    table: Table,
    decoded: Vec<i64>,
}

/// The varints of a dictionary of at most 256 values.
#[derive(Default)]
struct Table {
    values: Vec<i64>,
    /// For each code the bytes of its varint and how many there are. Empty if some varint is too
    /// long for the quick way.
    varints: Vec<(u64, usize)>,
    /// Whether each varint has only one byte.
    single: bool,
}

impl Column {
    pub(super) fn new(name: &'static str, precision: u8, scale: u8) -> Column {
        Column {
            name,
            precision,
            scale,
            data: Stream::default(),
            scales: Integers::new(true),
            stride_rows: 0,
            index: Index::default(),
            table: Table::default(),
            decoded: Vec::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.data.clear();
        self.scales.clear();
        self.stride_rows = 0;
        self.index.clear();
    }

    pub(super) fn append(&mut self, values: &Values<'_>, batch: &mut Batch<'_>) -> Result<()> {
        match *values {
            Values::Int64(values) => self.append_plain(values, batch)?,
            Values::CodedInt64 { codes, values } => match codes {
                Codes::U8(codes) if self.table.set(values) => self.append_coded(codes, batch)?,
                codes => {
                    let mut decoded = std::mem::take(&mut self.decoded);
                    decode(self.name, codes, values, &mut decoded)?;
                    self.append_plain(&decoded, batch)?;
                    self.decoded = decoded;
                }
            },
            _ => unreachable!("the batch was checked"),
        }
        self.data.settle(batch.codec)
    }

    fn append_plain(&mut self, values: &[i64], batch: &mut Batch<'_>) -> Result<()> {
        for segment in batch.segments {
            self.begin(batch.codec)?;
            let values = &values[segment.rows.clone()];
            varint::append(values, &mut self.data.raw);
            self.end(values.len(), Range::from_values(values), segment.ends)?;
        }
        Ok(())
    }

    fn append_coded(&mut self, codes: &[u8], batch: &mut Batch<'_>) -> Result<()> {
        for segment in batch.segments {
            self.begin(batch.codec)?;
            let codes = &codes[segment.rows.clone()];
            let range = self.table.range(self.name, codes)?;
            self.table.append(codes, &mut self.data.raw);
            self.end(codes.len(), range, segment.ends)?;
        }
        Ok(())
    }

    /// Records where both streams stand, if the next value begins a stride.
    fn begin(&mut self, codec: &mut Codec) -> Result<()> {
        if self.index.is_at_begin() {
            let positions = &mut self.index.positions;
            self.data.mark(self.data.raw.len(), codec, positions)?;
            self.scales.mark(codec, positions)?;
        }
        Ok(())
    }

    fn end(&mut self, rows: usize, range: Range, ends: bool) -> Result<()> {
        // Checked by the extremes of the segment instead of value by value. The bytes are in the
        // stream already, which is right: after an error the whole stripe is given up.
        let beyond = 10i64.pow(self.precision.into());
        for value in [range.least, range.most] {
            if value >= beyond || value <= -beyond {
                return Err(Error::TooLarge {
                    name: self.name,
                    value,
                    precision: self.precision,
                });
            }
        }
        let scale = self.scale;
        self.index.add(rows, Bounds::Decimal { range, scale });
        self.stride_rows += rows;
        if ends {
            self.end_stride();
        }
        Ok(())
    }

    fn end_stride(&mut self) {
        self.scales.repeat(self.scale.into(), self.stride_rows);
        self.stride_rows = 0;
        self.index.end_stride();
    }

    pub(super) fn finish(&mut self, codec: &mut Codec) -> Result<()> {
        if !self.index.is_at_begin() {
            self.end_stride();
        }
        self.data.finish(codec)?;
        self.scales.finish(codec)
    }

    pub(super) fn streams(&self) -> [Option<(u64, &Stream)>; 3] {
        let scales = &self.scales.stream;
        [Some((DATA, &self.data)), Some((SECONDARY, scales)), None]
    }

    pub(super) fn index(&self) -> &Index {
        &self.index
    }
}

impl Table {
    /// Prepares the varints of a dictionary, unless they are there from the batch before. False if
    /// the quick way is not possible for it.
    fn set(&mut self, values: &[i64]) -> bool {
        if self.values != values {
            self.values = values.to_vec();
            let varints: Option<Vec<_>> =
                values.iter().map(|&value| varint::short(value)).collect();
            // Codes of eight bits reach 256 entries, and the table has room for no more.
            let fits = values.len() <= 256;
            self.varints = varints.filter(|_| fits).unwrap_or_default();
            self.single = self.varints.iter().all(|&(_, length)| length == 1);
            // Filled up to all codes, so that looking one up needs no check. Codes without an entry
            // have been refused by `range` before.
            self.varints
                .resize(if self.varints.is_empty() { 0 } else { 256 }, (0, 1));
        }
        !self.varints.is_empty()
    }

    fn range(&self, name: &'static str, codes: &[u8]) -> Result<Range> {
        let counts = super::ranked::count(codes);
        let mut range = Range::EMPTY;
        for (code, &count) in counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
            let Some(&value) = self.values.get(code) else {
                return Err(Error::Code {
                    name,
                    code: code as u32,
                    entries: self.values.len(),
                });
            };
            range.merge(&Range {
                least: value,
                most: value,
                sum: i128::from(value) * i128::from(count),
            });
        }
        Ok(range)
    }

    fn append(&self, codes: &[u8], out: &mut Vec<u8>) {
        let Ok(table) = <&[(u64, usize); 256]>::try_from(self.varints.as_slice()) else {
            unreachable!("it was set")
        };
        if self.single {
            out.extend(codes.iter().map(|&code| table[usize::from(code)].0 as u8));
            return;
        }
        // Eight bytes are written for each varint and the next one overwrites what is too much,
        // which is faster than a copy whose length varies. So a group needs eight bytes for each
        // value.
        const GROUP: usize = 256;
        for group in codes.chunks(GROUP) {
            let begin = out.len();
            out.resize(begin + GROUP * 8, 0);
            let mut room = &mut out[begin..];
            let mut written = 0;
            for &code in group {
                let (bytes, length) = table[usize::from(code)];
                room[..8].copy_from_slice(&bytes.to_le_bytes());
                room = &mut room[length..];
                written += length;
            }
            out.truncate(begin + written);
        }
    }
}
