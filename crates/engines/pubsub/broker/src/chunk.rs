//! Rows that were appended together, in the form in which consumers receive them.

use bytes::Bytes;
use dyno_net::carried;
use dyno_pubsub::wire::{ROW_HEADER_BYTES, RowHead, Rows};

/// Rows of consecutive offsets in one piece of memory, which all fetches share.
#[derive(Debug, Clone)]
pub struct Chunk {
    pub base_offset: i64,
    pub end_offset: i64,
    /// The rows' headers, as on the wire.
    heads: Bytes,
    /// The rows' bodies, one after the other.
    bodies: Bytes,
    /// For each row: the offset after its last record, relative to the base, and where its body
    /// ends.
    ends: Vec<(u32, u32)>,
}

impl Chunk {
    /// Rows with these heads and bodies. `charge` pays for their memory and is dropped with the
    /// last reference to them. `None` if there are no rows.
    pub fn new<C>(heads: &[RowHead], bodies: Vec<u8>, charge: C) -> Option<Chunk>
    where
        C: Send + Sync + 'static,
    {
        let first = heads.first()?;
        let mut encoded = Vec::with_capacity(heads.len() * ROW_HEADER_BYTES);
        let mut ends = Vec::with_capacity(heads.len());
        let mut end = (0, 0);
        for head in heads {
            encoded.extend_from_slice(&head.encode());
            end = (end.0 + head.count, end.1 + head.bytes);
            ends.push(end);
        }
        Some(Chunk {
            base_offset: first.base_offset,
            end_offset: first.base_offset + i64::from(end.0),
            heads: Bytes::from(encoded),
            bodies: carried(charge, bodies),
            ends,
        })
    }

    /// How many bytes it takes, heads and bodies.
    pub fn bytes(&self) -> usize {
        self.heads.len() + self.bodies.len()
    }

    /// The row that holds an offset of this chunk.
    fn row_of(&self, offset: i64) -> usize {
        let relative = (offset - self.base_offset).max(0);
        self.ends
            .partition_point(|end| i64::from(end.0) <= relative)
    }

    /// Where the body of a row begins. For the row after the last one this is where all bodies end.
    fn begin(&self, row: usize) -> usize {
        row.checked_sub(1)
            .map_or(0, |before| self.ends[before].1 as usize)
    }

    /// Bytes of bodies from the row that holds `offset` on.
    pub fn bytes_from(&self, offset: i64) -> usize {
        self.bodies.len() - self.begin(self.row_of(offset))
    }

    /// Appends a group of rows to `parts`: those from the row that holds `offset` on, with at most
    /// `most_bytes` of bodies, but at least one row if `first` is set. Returns their bytes and the
    /// offset after the last row, or `None` if no row was added.
    pub fn push_rows(
        &self,
        offset: i64,
        most_bytes: usize,
        first: bool,
        parts: &mut Vec<Bytes>,
    ) -> Option<(usize, i64)> {
        let from = self.row_of(offset);
        let begin = self.begin(from);
        let fit = self.ends[from..].partition_point(|end| end.1 as usize - begin <= most_bytes);
        let until = from + fit.max(usize::from(first));
        let (relative, _) = self.ends[from..until].last()?;
        let end = self.begin(until);
        parts.push(Bytes::copy_from_slice(&Rows::group(until - from)));
        parts.push(
            self.heads
                .slice(from * ROW_HEADER_BYTES..until * ROW_HEADER_BYTES),
        );
        parts.push(self.bodies.slice(begin..end));
        Some((end - begin, self.base_offset + i64::from(*relative)))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::memory::Memory;

    /// `rows` rows of 10 bytes with 5 records each, from `base_offset` on.
    pub fn chunk(base_offset: i64, rows: i64) -> Chunk {
        let heads: Vec<RowHead> = (0..rows)
            .map(|row| RowHead {
                base_offset: base_offset + 5 * row,
                count: 5,
                bytes: 10,
                first_time_us: 0,
                last_time_us: 0,
                appended_at_us: 0,
                crc: None,
                codec: 0,
            })
            .collect();
        let charge = Memory::new(0).tails.charge(0);
        Chunk::new(&heads, vec![7; 10 * rows as usize], charge).expect("rows")
    }

    fn rows_from(offset: i64, most_bytes: usize, first: bool) -> Option<(i64, usize, i64)> {
        let mut parts = Vec::new();
        let (_, end) = chunk(100, 3).push_rows(offset, most_bytes, first, &mut parts)?;
        let rows: Vec<_> = Rows::new(Bytes::from(parts.concat()))
            .map(|row| row.unwrap().0.base_offset)
            .collect();
        Some((rows[0], rows.len(), end))
    }

    #[test]
    fn a_fetch_begins_with_the_row_that_holds_the_offset() {
        for (offset, base, rows) in [(100, 100, 3), (104, 100, 3), (105, 105, 2), (114, 110, 1)] {
            assert_eq!(rows_from(offset, 1000, true), Some((base, rows, 115)));
            assert_eq!(chunk(100, 3).bytes_from(offset), 10 * rows);
        }
    }

    #[test]
    fn a_fetch_ends_before_the_bound_but_the_first_row_always_comes() {
        assert_eq!(rows_from(100, 29, true), Some((100, 2, 110)));
        assert_eq!(rows_from(100, 20, true), Some((100, 2, 110)));
        assert_eq!(rows_from(100, 19, true), Some((100, 1, 105)));
        assert_eq!(rows_from(100, 3, true), Some((100, 1, 105)));
        assert_eq!(rows_from(100, 3, false), None);
        assert_eq!(rows_from(112, 3, true), Some((110, 1, 115)));
    }
}
