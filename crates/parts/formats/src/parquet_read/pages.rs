//! The data pages of one column chunk, levels and headers taken off.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::ReadError;
use super::source::Part;

/// A page of a REQUIRED column.
pub(super) enum PlainPage {
    Dictionary {
        bytes: Bytes,
        len: usize,
    },
    Data {
        bytes: Bytes,
        rows: usize,
        encoding: Encoding,
    },
}

/// Reads the pages of one column chunk in order.
pub(super) struct Pages {
    reader: SerializedPageReader<Part>,
    path: PathBuf,
}

impl Pages {
    pub(super) fn new(
        part: Part,
        chunk: &ColumnChunkMetaData,
        path: PathBuf,
    ) -> Result<Self, ReadError> {
        let rows = usize::try_from(chunk.num_values())
            .map_err(|_| ReadError::damaged(format!("chunk of {} values", chunk.num_values())))?;
        match SerializedPageReader::new(Arc::new(part), chunk, rows, None) {
            Ok(reader) => Ok(Self { reader, path }),
            Err(source) => Err(ReadError::Parquet { path, source }),
        }
    }

    /// Passes over data pages of at most `rows` rows together; how many rows those had.
    pub(super) fn skip(&mut self, rows: usize) -> Result<usize, ReadError> {
        let mut skipped = 0;
        let failed = |path: &PathBuf, source| ReadError::Parquet {
            path: path.clone(),
            source,
        };
        loop {
            let page = self.reader.peek_next_page();
            let Some(page) = page.map_err(|source| failed(&self.path, source))? else {
                return Ok(skipped);
            };
            // A flat column has one level for each row.
            let count = page.num_rows.or(page.num_levels);
            match count.filter(|count| !page.is_dict && skipped + count <= rows) {
                Some(count) => {
                    let passed = self.reader.skip_next_page();
                    passed.map_err(|source| failed(&self.path, source))?;
                    skipped += count;
                }
                None => return Ok(skipped),
            }
        }
    }

    /// The next page, none behind the last one.
    pub(super) fn next(&mut self) -> Result<Option<PlainPage>, ReadError> {
        let page = self
            .reader
            .get_next_page()
            .map_err(|source| ReadError::Parquet {
                path: self.path.clone(),
                source,
            })?;
        let Some(page) = page else { return Ok(None) };
        Ok(Some(match page {
            Page::DictionaryPage {
                buf,
                num_values,
                encoding,
                ..
            } => {
                if !matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY) {
                    return Err(ReadError::unsupported(format!("a {encoding} dictionary")));
                }
                PlainPage::Dictionary {
                    bytes: buf,
                    len: num_values as usize,
                }
            }
            Page::DataPage {
                buf,
                num_values,
                encoding,
                ..
            } => PlainPage::Data {
                bytes: buf,
                rows: num_values as usize,
                encoding,
            },
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let levels = def_levels_byte_len as usize + rep_levels_byte_len as usize;
                if num_nulls != 0 || levels > buf.len() {
                    return Err(ReadError::damaged(format!(
                        "page of a required column with {num_nulls} nulls, {levels} level bytes"
                    )));
                }
                let bytes = buf.slice(levels..);
                PlainPage::Data {
                    bytes,
                    rows: num_values as usize,
                    encoding,
                }
            }
        }))
    }
}

/// Splits a page of codes into their width and the runs behind it.
pub(super) fn code_width(bytes: &Bytes) -> Result<(u8, Bytes), ReadError> {
    match bytes.first() {
        Some(width) => Ok((*width, bytes.slice(1..))),
        None => Err(ReadError::damaged("page of codes without their width")),
    }
}
