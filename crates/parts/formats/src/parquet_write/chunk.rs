//! Encodes one column of the row group that is being written.

use super::by_code;
use super::choose::{Form, choose};
use super::compress::Compressor;
use super::encode::{Body, How};
use super::error::{Error, Result};
use super::extent::Extent;
use super::flat::{Flat, FlatScratch, ROWS_MAX};
use super::footer::{ChunkMeta, PageCount, Statistics};
use super::intern::Interner;
use super::layout::ColumnPlan;
use super::options::{Compression, Encoding, PageVersion};
use super::page::{Page, encoding};
use super::whole::Whole;
use crate::columns::{Field, Kind, Slices, Values};

/// The most bytes of a dictionary that the options request, or for which the caller has codes.
const DICTIONARY_BYTES_MAX: usize = 8 << 20;
/// The most bytes of a dictionary that was chosen by its first rows. A larger one leaves the cache,
/// and every look-up takes longer.
const CHOSEN_DICTIONARY_BYTES_MAX: usize = 1 << 20;
/// The most bytes of a page, which its header counts in 31 bits. Tests cannot fill that many.
const PAGE_BYTES_MAX: usize = if cfg!(test) {
    64 << 20
} else {
    i32::MAX as usize
};

/// Scratch memory that the columns of a row group use in turn.
#[derive(Default)]
pub(super) struct Scratch {
    flat: FlatScratch,
    body: Body,
    compressor: Compressor,
}

/// What the footer and the page index say of a page.
#[derive(Debug)]
pub(super) struct PageEntry {
    /// Bytes of the page, its header included.
    pub bytes: usize,
    pub rows: usize,
    pub extent: Option<Extent>,
    pub kind: i32,
    pub encoding: i32,
}

/// A column chunk, ready to be written.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The dictionary page with its header, or empty.
    pub dictionary: Vec<u8>,
    /// The data pages with their headers.
    pub pages: Vec<u8>,
    pub entries: Vec<PageEntry>,
    pub meta: ChunkMeta,
}

pub(super) struct ChunkWriter {
    plan: ColumnPlan,
    version: PageVersion,
    /// Chosen by the first batch of the row group.
    form: Option<Form>,
    interner: Interner,
    whole: Whole,
    pages: Vec<u8>,
    entries: Vec<PageEntry>,
    rows: usize,
    raw_bytes: usize,
}

impl ChunkWriter {
    pub fn new(plan: ColumnPlan, version: PageVersion) -> ChunkWriter {
        ChunkWriter {
            plan,
            version,
            form: None,
            interner: Interner::default(),
            whole: Whole::default(),
            pages: Vec::new(),
            entries: Vec::new(),
            rows: 0,
            raw_bytes: 0,
        }
    }

    pub fn field(&self) -> Field {
        self.plan.field
    }

    /// Forgets all rows and the chosen form.
    pub fn clear(&mut self) {
        self.form = None;
        self.interner.clear();
        self.pages.clear();
        self.entries.clear();
        self.rows = 0;
        self.raw_bytes = 0;
    }

    /// Bytes of all pages so far, where the dictionary counts uncompressed.
    pub fn encoded_bytes(&self) -> usize {
        let dictionary = match self.form.map(|form| form.how) {
            Some(How::Whole) => self.whole.plain.len(),
            _ => self.interner.plain().len(),
        };
        self.pages.len() + dictionary
    }

    /// Encodes the values of a batch as one page or more. After an error some of them may be there.
    pub fn append(&mut self, values: &Values<'_>, scratch: &mut Scratch) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let form = match self.form {
            Some(form) => form,
            None => self.start(values, scratch)?,
        };
        match (form.how, *values) {
            (How::Whole, _) => self.append_whole(values, scratch),
            (How::ByCode, _) => self.append_codes(values, scratch),
            (How::Delta, Values::Slices(slices)) if slices.lengths().len() <= ROWS_MAX => {
                self.append_slices(slices, scratch)
            }
            _ => self.append_flat(values, scratch),
        }
    }

    /// Chooses the form of the chunk by its first batch.
    fn start(&mut self, values: &Values<'_>, scratch: &mut Scratch) -> Result<Form> {
        self.clear();
        let asked = self.plan.encoding;
        if matches!(asked, Encoding::Auto | Encoding::Dictionary) {
            if Whole::codes(values).is_some() {
                self.whole.start(values);
                return self.start_with(How::Whole);
            }
            if by_code::dictionary_bytes(values)
                .is_some_and(|bytes| asked == Encoding::Dictionary || bytes <= DICTIONARY_BYTES_MAX)
            {
                return self.start_with(How::ByCode);
            }
        }
        // Nothing is tried where the options request an encoding.
        match asked {
            Encoding::Auto => {}
            Encoding::Plain => return self.start_with(How::Plain),
            Encoding::Delta => return self.start_with(How::Delta),
            Encoding::Prefix => return self.start_with(How::Prefix),
            Encoding::Dictionary => return self.start_with(How::ByHash),
        }
        // No codes are kept from here on. Those of the caller are still checked, because `flatten`
        // indexes its dictionary by them.
        by_code::check(values, self.plan.field.name)?;
        let values = scratch.flat.flatten(values);
        let ways: &[How] = match values {
            Flat::Text(_) if self.plan.plain_text => &[How::Plain, How::ByHash],
            Flat::Text(_) => &[How::Delta, How::Prefix, How::ByHash],
            _ => &[How::Delta, How::Plain, How::ByHash],
        };
        let (interner, body) = (&mut self.interner, &mut scratch.body);
        let form = choose(
            &self.plan,
            ways,
            values,
            interner,
            body,
            &mut scratch.compressor,
        )?;
        self.form = Some(form);
        Ok(form)
    }

    /// Chooses without trying anything. The codec is that of the options until the first page has
    /// shown whether it pays.
    fn start_with(&mut self, how: How) -> Result<Form> {
        let form = Form {
            how,
            codec: self.plan.compression,
            is_tried: false,
        };
        self.form = Some(form);
        Ok(form)
    }

    fn append_whole(&mut self, values: &Values<'_>, scratch: &mut Scratch) -> Result<()> {
        let column = self.plan.field.name;
        let codes = Whole::codes(values).filter(|_| self.whole.is_of(values));
        // Pages of one chunk share one dictionary page, so another dictionary cannot be written any
        // more.
        let codes = codes.ok_or(Error::OtherDictionary { column })?;
        for codes in codes.chunks(ROWS_MAX) {
            let extent = self.whole.note(codes, column)?;
            let encoding = scratch.body.pack(codes, self.whole.entries);
            self.finish_page(encoding, codes.len(), extent, scratch)?;
        }
        Ok(())
    }

    fn append_codes(&mut self, values: &Values<'_>, scratch: &mut Scratch) -> Result<()> {
        let column = self.plan.field.name;
        let codes = by_code::wide_codes(values).ok_or(Error::OtherDictionary { column })?;
        by_code::check(values, column)?;
        for codes in codes.chunks(ROWS_MAX) {
            let (interner, places) = (&mut self.interner, &mut scratch.body.codes);
            let extent = by_code::intern(values, codes, interner, places);
            let encoding = scratch.body.pack_interned(self.interner.len());
            self.finish_page(encoding, codes.len(), extent, scratch)?;
        }
        self.limit_dictionary(DICTIONARY_BYTES_MAX)
    }

    /// Encodes text that lies scattered by lengths. This is the short way, which copies it once,
    /// into the page.
    fn append_slices(&mut self, slices: &dyn Slices, scratch: &mut Scratch) -> Result<()> {
        let Body { bytes, lengths, .. } = &mut scratch.body;
        lengths.clear();
        lengths.extend(slices.lengths().iter().map(|&length| i32::from(length)));
        bytes.clear();
        super::delta::encode(lengths, bytes);
        // The slices are copied in wide moves, which need room behind the last one.
        let start = bytes.len();
        let total = slices.total_bytes();
        bytes.resize(start + total + slices.padding_bytes(), 0);
        slices.copy_to(&mut bytes[start..]);
        let each = slices.lengths().iter().map(|&length| length.into());
        let extent = Extent::from_text(each, &bytes[start..]);
        bytes.truncate(start + total);
        let rows = slices.lengths().len();
        self.finish_page(encoding::DELTA_LENGTH_BYTE_ARRAY, rows, extent, scratch)
    }

    fn append_flat(&mut self, values: &Values<'_>, scratch: &mut Scratch) -> Result<()> {
        by_code::check(values, self.plan.field.name)?;
        // Moved out of the room, so that values can lie there while pages are made with the rest of
        // the room.
        let mut flat = std::mem::take(&mut scratch.flat);
        let done = self.append_pages(flat.flatten(values), scratch);
        scratch.flat = flat;
        done
    }

    fn append_pages(&mut self, mut values: Flat<'_>, scratch: &mut Scratch) -> Result<()> {
        while values.len() > 0 {
            let (page, rest) = values.split_page();
            values = rest;
            let extent = match page {
                Flat::Int32(values) => Extent::from_i32(values),
                Flat::Int64(values) => Extent::from_i64(values),
                Flat::Text(text) => Extent::from_text(text.lengths(), text.joined()),
            };
            let how = self.form.map_or(How::Plain, |form| form.how);
            let encoding = scratch.body.fill(how, page, &mut self.interner);
            self.finish_page(encoding, page.len(), extent, scratch)?;
            if how == How::ByHash {
                self.limit_dictionary(CHOSEN_DICTIONARY_BYTES_MAX)?;
            }
        }
        Ok(())
    }

    /// Gives up a dictionary that has grown too large, from the next page on.
    fn limit_dictionary(&mut self, chosen_bytes_max: usize) -> Result<()> {
        let bytes = self.interner.plain().len();
        let was_asked = self.plan.encoding == Encoding::Dictionary;
        if was_asked && bytes > DICTIONARY_BYTES_MAX {
            return Err(Error::DictionaryTooLarge {
                column: self.plan.field.name,
                rows: self.rows,
                limit_bytes: DICTIONARY_BYTES_MAX,
            });
        }
        if let Some(form) = &mut self.form
            && !was_asked
            && bytes > chosen_bytes_max
        {
            form.how = match self.plan.field.kind {
                Kind::Text | Kind::Char(_) | Kind::Varchar(_) if self.plan.plain_text => How::Plain,
                _ => How::Delta,
            };
        }
        Ok(())
    }

    /// Compresses the page whose body is in `room`, and appends it behind a header.
    fn finish_page(
        &mut self,
        encoding: i32,
        rows: usize,
        extent: Option<Extent>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let body = &scratch.body.bytes;
        let mut stored = scratch.compressor.compress(self.codec(), body)?;
        if let Some(form) = &mut self.form {
            form.decide_codec(&self.plan, stored.len(), body.len());
        }
        let codec = self.codec();
        if codec == Compression::None {
            stored = body;
        }
        // Only version 2 can say of a single page that it is not compressed. In version 1 the codec
        // of the chunk is used, even if the page grows.
        let is_smaller = stored.len() < body.len();
        if self.version == PageVersion::V2 && !is_smaller {
            stored = body;
        }
        check_page(self.plan.field.name, body.len().max(stored.len()))?;
        let page = Page::Data {
            version: self.version,
            rows,
            encoding,
            is_compressed: codec != Compression::None && is_smaller,
        };
        let header_bytes = page.write(body.len(), stored, &mut self.pages);
        self.entries.push(PageEntry {
            bytes: header_bytes + stored.len(),
            rows,
            extent,
            kind: page.kind(),
            encoding,
        });
        self.rows += rows;
        self.raw_bytes += header_bytes + body.len();
        Ok(())
    }

    fn codec(&self) -> Compression {
        self.form.map_or(self.plan.compression, |form| form.codec)
    }

    /// Returns the chunk and forgets all rows. The next pages go into the spare buffer.
    pub fn finish(&mut self, spare: Vec<u8>, scratch: &mut Scratch) -> Result<Chunk> {
        let mut meta = ChunkMeta {
            codec: self.codec().codec(),
            values: self.rows,
            raw_bytes: self.raw_bytes,
            encodings: vec![encoding::RLE],
            ..ChunkMeta::default()
        };
        let dictionary = self.write_dictionary(&mut meta, scratch)?;
        meta.dictionary_bytes = dictionary.len();
        meta.stored_bytes = dictionary.len() + self.pages.len();
        for entry in &self.entries {
            meta.count(entry.kind, entry.encoding);
        }
        meta.statistics = self.statistics();
        let chunk = Chunk {
            dictionary,
            pages: std::mem::replace(&mut self.pages, spare),
            entries: std::mem::take(&mut self.entries),
            meta,
        };
        self.clear();
        Ok(chunk)
    }

    fn write_dictionary(&self, meta: &mut ChunkMeta, scratch: &mut Scratch) -> Result<Vec<u8>> {
        let is_whole = self.form.is_some_and(|form| form.how == How::Whole);
        let (entries, plain) = if is_whole {
            (self.whole.entries, &self.whole.plain[..])
        } else {
            (self.interner.len(), self.interner.plain())
        };
        // A dictionary may have been begun and given up before any page used it.
        let mut framed = Vec::new();
        if !self
            .entries
            .iter()
            .any(|entry| entry.encoding == encoding::RLE_DICTIONARY)
        {
            return Ok(framed);
        }
        // A header could not count its bytes. No limit has been met before where the dictionary is
        // the caller's own.
        check_page(self.plan.field.name, plain.len())?;
        let page = Page::Dictionary { entries };
        let stored = scratch.compressor.compress(self.codec(), plain)?;
        let header_bytes = page.write(plain.len(), stored, &mut framed);
        meta.raw_bytes += header_bytes + plain.len();
        meta.count(page.kind(), encoding::PLAIN);
        Ok(framed)
    }

    fn statistics(&self) -> Option<Statistics> {
        let mut extents = self
            .entries
            .iter()
            .filter_map(|entry| entry.extent.as_ref());
        let mut all = extents.next()?.clone();
        for extent in extents {
            all.merge(extent);
        }
        // The number of distinct values is known only if every value went through the dictionary.
        let (lower, upper) = (all.lower(), all.upper());
        let is_coded = |entry: &PageEntry| entry.encoding == encoding::RLE_DICTIONARY;
        let distinct = match self.form.map(|form| form.how) {
            Some(How::Whole) => Some(self.whole.distinct()),
            _ if self.entries.iter().all(is_coded) => Some(self.interner.len()),
            _ => None,
        };
        Some(Statistics {
            nulls: 0,
            min: lower.bytes,
            max: upper.bytes,
            min_exact: lower.exact,
            max_exact: upper.exact,
            distinct,
        })
    }
}

/// Refuses a page whose bytes its header could not count.
///
/// # Errors
/// [`Error::PageTooLarge`].
fn check_page(column: &'static str, bytes: usize) -> Result<()> {
    if bytes > PAGE_BYTES_MAX {
        return Err(Error::PageTooLarge { column, bytes });
    }
    Ok(())
}

impl ChunkMeta {
    fn count(&mut self, kind: i32, encoding: i32) {
        if !self.encodings.contains(&encoding) {
            self.encodings.push(encoding);
        }
        let same = |count: &&mut PageCount| count.kind == kind && count.encoding == encoding;
        match self.pages.iter_mut().find(same) {
            Some(count) => count.pages += 1,
            None => self.pages.push(PageCount {
                kind,
                encoding,
                pages: 1,
            }),
        }
    }
}
