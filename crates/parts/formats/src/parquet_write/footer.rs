//! Writes the footer, which says what the file is and where everything lies (parquet.thrift,
//! FileMetaData).

use std::io;

use super::schema::Field;
use super::thrift::Struct;

pub(super) const MAGIC: &[u8; 4] = b"PAR1";

/// What the footer says of a column chunk, except for its location.
#[derive(Debug, Clone, Default)]
pub(super) struct ChunkMeta {
    pub codec: i32,
    pub values: usize,
    /// Bytes of all pages and headers, before the codec and after it.
    pub raw_bytes: usize,
    pub stored_bytes: usize,
    /// Bytes of the dictionary page at the front, or 0 if there is none.
    pub dictionary_bytes: usize,
    pub encodings: Vec<i32>,
    /// How many pages there are of each kind and encoding.
    pub pages: Vec<PageCount>,
    pub statistics: Option<Statistics>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PageCount {
    pub kind: i32,
    pub encoding: i32,
    pub pages: i32,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Statistics {
    /// How many rows have no value.
    pub nulls: usize,
    pub min: Vec<u8>,
    pub max: Vec<u8>,
    pub min_exact: bool,
    pub max_exact: bool,
    pub distinct: Option<usize>,
}

/// Where an index lies in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Location {
    pub offset: u64,
    pub bytes: usize,
}

/// A column chunk and where it lies in the file.
#[derive(Debug, Clone)]
pub(super) struct PlacedChunk {
    pub offset: u64,
    pub meta: ChunkMeta,
    pub column_index: Option<Location>,
    pub offset_index: Option<Location>,
}

#[derive(Debug, Clone)]
pub(super) struct PlacedGroup {
    pub rows: usize,
    pub chunks: Vec<PlacedChunk>,
}

pub(super) struct Footer<'a> {
    pub fields: &'a [Field],
    pub groups: &'a [PlacedGroup],
    pub key_values: &'a [(String, String)],
    /// Numbers of the columns by which the rows of each group are sorted.
    pub sorted_by: &'a [usize],
}

impl Footer<'_> {
    pub fn rows(&self) -> u64 {
        self.groups.iter().map(|group| group.rows as u64).sum()
    }

    /// Encodes the footer, with its length and the magic behind it.
    ///
    /// # Errors
    /// When it has more bytes than its length can say.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut footer = Vec::new();
        Struct::write(&mut footer, |file| self.describe(file));
        let length = stored_length(footer.len())?;
        footer.extend_from_slice(&length);
        footer.extend_from_slice(MAGIC);
        Ok(footer)
    }

    fn describe(&self, file: &mut Struct<'_>) {
        const VERSION: i32 = 2;
        file.i32(1, VERSION);
        // The root element comes first, then its leaves.
        file.struct_list(2, 0..self.fields.len() + 1, |element, i| match i {
            0 => {
                element.binary(4, b"schema");
                element.i32(5, self.fields.len() as i32);
            }
            _ => self.fields[i - 1].write(element),
        });
        file.i64(3, self.rows() as i64);
        let groups = self.groups.iter().enumerate();
        file.struct_list(4, groups, |group, (ordinal, placed)| {
            self.describe_group(placed, ordinal, group);
        });
        if !self.key_values.is_empty() {
            file.struct_list(5, self.key_values.iter(), |pair, (key, value)| {
                pair.binary(1, key.as_bytes());
                pair.binary(2, value.as_bytes());
            });
        }
        file.binary(
            6,
            concat!("dyno version ", env!("CARGO_PKG_VERSION")).as_bytes(),
        );
        // Column orders. Readers ignore the bounds of columns for which none is stated.
        file.struct_list(7, self.fields.iter(), |order, _| order.structure(1, |_| {}));
    }

    fn describe_group(&self, placed: &PlacedGroup, ordinal: usize, group: &mut Struct<'_>) {
        let sum = |bytes: fn(&ChunkMeta) -> usize| -> i64 {
            placed
                .chunks
                .iter()
                .map(|chunk| bytes(&chunk.meta) as i64)
                .sum()
        };
        let columns = placed.chunks.iter().zip(self.fields);
        group.struct_list(1, columns, |column, (chunk, field)| {
            column.i64(2, chunk.offset as i64);
            column.structure(3, |meta| chunk.describe(field, meta));
            for (id, location) in [(4, chunk.offset_index), (6, chunk.column_index)] {
                if let Some(location) = location {
                    column.i64(id, location.offset as i64);
                    column.i32(id + 1, location.bytes as i32);
                }
            }
        });
        group.i64(2, sum(|meta| meta.raw_bytes));
        group.i64(3, placed.rows as i64);
        if !self.sorted_by.is_empty() {
            group.struct_list(4, self.sorted_by.iter(), |sorting, &column| {
                sorting.i32(1, column as i32);
                sorting.bool(2, false);
                sorting.bool(3, false);
            });
        }
        let offset = placed.chunks.first().map_or(0, |chunk| chunk.offset);
        group.i64(5, offset as i64);
        group.i64(6, sum(|meta| meta.stored_bytes));
        // The ordinal is 16 bits wide and optional; a file with more row groups goes without.
        if let Ok(ordinal) = i16::try_from(ordinal) {
            group.i16(7, ordinal);
        }
    }
}

/// The length of a footer as the file stores it.
///
/// # Errors
/// When it does not fit into the 31 bits that readers accept.
fn stored_length(bytes: usize) -> io::Result<[u8; 4]> {
    i32::try_from(bytes).map(i32::to_le_bytes).map_err(|_| {
        let reason = format!(
            "the footer would have {bytes} bytes, and Parquet counts to {}: use larger row groups, \
             so that there are fewer of them",
            i32::MAX
        );
        io::Error::new(io::ErrorKind::InvalidInput, reason)
    })
}

impl PlacedChunk {
    fn describe(&self, field: &Field, out: &mut Struct<'_>) {
        let meta = &self.meta;
        out.i32(1, field.logical.physical() as i32);
        out.i32_list(2, &meta.encodings);
        out.binary_list(3, &[field.name.as_bytes()]);
        out.i32(4, meta.codec);
        out.i64(5, meta.values as i64);
        out.i64(6, meta.raw_bytes as i64);
        out.i64(7, meta.stored_bytes as i64);
        out.i64(9, self.offset as i64 + meta.dictionary_bytes as i64);
        if meta.dictionary_bytes > 0 {
            out.i64(11, self.offset as i64);
        }
        if let Some(statistics) = &meta.statistics {
            out.structure(12, |out| statistics.describe(out));
        }
        if !meta.pages.is_empty() {
            out.struct_list(13, meta.pages.iter(), |out, count| {
                out.i32(1, count.kind);
                out.i32(2, count.encoding);
                out.i32(3, count.pages);
            });
        }
    }
}

impl Statistics {
    fn describe(&self, out: &mut Struct<'_>) {
        out.i64(3, self.nulls as i64);
        if let Some(distinct) = self.distinct {
            out.i64(4, distinct as i64);
        }
        out.binary(5, &self.max);
        out.binary(6, &self.min);
        out.bool(7, self.max_exact);
        out.bool(8, self.min_exact);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footer_that_its_length_cannot_count_is_refused() {
        let most = i32::MAX as usize;
        assert_eq!(stored_length(258).unwrap(), [2, 1, 0, 0]);
        assert_eq!(stored_length(most).unwrap(), i32::MAX.to_le_bytes());
        // Wrapped to 32 bits, the second one would be a footer of four bytes.
        for bytes in [most + 1, (1 << 32) + 4] {
            let error = stored_length(bytes).unwrap_err().to_string();
            assert!(error.contains("larger row groups"), "{error}");
        }
    }
}
