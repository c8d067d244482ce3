//! Writes the page index, which has the bounds and the locations of all pages of each chunk
//! (parquet.thrift, ColumnIndex and OffsetIndex).

use super::chunk::PageEntry;
use super::footer::{Location, PlacedGroup};
use super::thrift::Struct;

const UNORDERED: i32 = 0;
const ASCENDING: i32 = 1;
const DESCENDING: i32 = 2;

/// The page index of a file that is being written, chunk by chunk in the order of the file.
#[derive(Default)]
pub(super) struct PageIndex {
    chunks: Vec<ChunkIndex>,
}

struct ChunkIndex {
    column: Option<Vec<u8>>,
    offset: Vec<u8>,
}

impl PageIndex {
    /// Adds the next chunk, whose first data page begins at `first_page` in the file.
    pub fn add(&mut self, entries: &[PageEntry], first_page: u64) {
        self.chunks.push(ChunkIndex {
            column: column_index(entries),
            offset: offset_index(entries, first_page),
        });
    }

    /// Returns all column indexes and then all offset indexes, which stand behind the row groups at
    /// `offset` in the file, and enters their locations into the chunks.
    pub fn place(&self, groups: &mut [PlacedGroup], offset: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut place = |index: &[u8]| {
            let location = Location {
                offset: offset + bytes.len() as u64,
                bytes: index.len(),
            };
            bytes.extend_from_slice(index);
            location
        };
        let chunks = groups.iter_mut().flat_map(|group| &mut group.chunks);
        let mut chunks: Vec<_> = chunks.zip(&self.chunks).collect();
        // Readers fetch the indexes of one kind for all chunks at once, so they lie together.
        for (chunk, index) in &mut chunks {
            chunk.column_index = index.column.as_deref().map(&mut place);
        }
        for (chunk, index) in &mut chunks {
            chunk.offset_index = Some(place(&index.offset));
        }
        bytes
    }
}

/// Encodes the bounds of the pages. `None` if a page has none, because the format wants those of
/// all pages or none.
fn column_index(entries: &[PageEntry]) -> Option<Vec<u8>> {
    let extents: Vec<_> = entries
        .iter()
        .map(|entry| entry.extent.as_ref())
        .collect::<Option<_>>()?;
    let lower: Vec<_> = extents.iter().map(|extent| extent.lower().bytes).collect();
    let upper: Vec<_> = extents.iter().map(|extent| extent.upper().bytes).collect();
    let order = if extents.windows(2).all(|two| two[1].follows(two[0])) {
        ASCENDING
    } else if extents.windows(2).all(|two| two[0].follows(two[1])) {
        DESCENDING
    } else {
        UNORDERED
    };
    let mut out = Vec::new();
    Struct::write(&mut out, |index| {
        index.bool_list(1, &vec![false; entries.len()]);
        index.binary_list(2, &lower);
        index.binary_list(3, &upper);
        index.i32(4, order);
        index.i64_list(5, &vec![0; entries.len()]);
    });
    Some(out)
}

/// Encodes the locations of the pages, the first of which begins at `offset` in the file.
fn offset_index(entries: &[PageEntry], mut offset: u64) -> Vec<u8> {
    let mut first_row = 0;
    let mut out = Vec::new();
    Struct::write(&mut out, |index| {
        index.struct_list(1, entries.iter(), |location, entry| {
            location.i64(1, offset as i64);
            location.i32(2, entry.bytes as i32);
            location.i64(3, first_row);
            offset += entry.bytes as u64;
            first_row += entry.rows as i64;
        });
    });
    out
}
