//! Writes what stands around the stripes of a file: magic, statistics, footer and postscript.

use std::io::Write;
use std::sync::Arc;

use super::codec::Codec;
use super::error::{Error, Result};
use super::layout::Layout;
use super::protobuf::{bytes, message, packed, uint};
use super::schema;
use super::statistics::Statistics;
use super::stripe::{Extent, Stripe};

const MAGIC: &[u8] = b"ORC";

/// The file version 0.12, which Hive 0.12 and all later readers know.
const VERSION: [u64; 2] = [0, 12];

/// Which program wrote it. Numbers below 64 are given out by the ORC project; this one is not
/// registered, and readers take it for an unknown writer.
const WRITER: u64 = 0x4459;

/// Tells readers which mistakes of earlier writers they need not expect. 6 stands for ORC-135:
/// statistics of strings are in UTF-8, and those of strides, stripes and file agree.
const WRITER_VERSION: u64 = 6;

/// Dates are days of the Gregorian calendar extended to all times.
const PROLEPTIC_GREGORIAN: u64 = 2;

/// Writes one ORC file, stripe by stripe. After an error the output is not an ORC file, and the
/// writer must be dropped.
pub struct FileWriter<W> {
    out: W,
    layout: Arc<Layout>,
    offset: u64,
    rows: u64,
    stripes: Vec<StripeEntry>,
    statistics: Vec<Statistics>,
}

struct StripeEntry {
    offset: u64,
    extent: Extent,
    rows: u64,
    statistics: Vec<Statistics>,
}

/// The size of a finished file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Rows of all stripes together.
    pub rows: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Stripes that have rows.
    pub stripes: usize,
}

impl<W: Write> FileWriter<W> {
    /// Begins a file by writing its magic.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn new(mut out: W, layout: Arc<Layout>) -> Result<FileWriter<W>> {
        out.write_all(MAGIC)?;
        Ok(FileWriter {
            out,
            offset: MAGIC.len() as u64,
            rows: 0,
            stripes: Vec::new(),
            statistics: vec![Statistics::default(); layout.fields().len() + 1],
            layout,
        })
    }

    /// Appends a stripe of the same layout. One without rows is left out.
    ///
    /// # Errors
    /// When the stripe has another number of columns, or the output fails.
    pub fn append(&mut self, stripe: Stripe) -> Result<()> {
        let expected = self.layout.fields().len();
        if stripe.columns() != expected {
            return Err(Error::Stripe {
                expected,
                given: stripe.columns(),
            });
        }
        if stripe.rows() > 0 {
            stripe.write(&mut self.out)?;
            let entry = StripeEntry {
                offset: self.offset,
                extent: stripe.extent(),
                rows: stripe.rows() as u64,
                statistics: stripe.statistics(),
            };
            for (all, stripe) in self.statistics.iter_mut().zip(&entry.statistics) {
                all.merge(stripe);
            }
            // Only now: a stripe whose write failed is not listed, so that no footer can point at
            // it.
            self.offset += stripe.bytes() as u64;
            self.rows += entry.rows;
            self.stripes.push(entry);
        }
        self.layout.give_columns(stripe.into_columns());
        Ok(())
    }

    /// Bytes that the output has taken so far.
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    /// The output, for callers that want to know how far it is.
    pub fn output(&self) -> &W {
        &self.out
    }

    /// Writes the tail and returns the output, which the caller makes durable.
    ///
    /// # Errors
    /// When the codec or the output fails.
    pub fn finish(mut self) -> Result<(W, Summary)> {
        let options = self.layout.options();
        let mut codec = Codec::new(options.compression, options.chunk_bytes)?;
        let metadata = codec.section(self.metadata())?;
        let footer = codec.section(self.footer())?;
        // The postscript itself is never compressed, because a reader learns from it how the rest
        // is. Its length is the last byte of the file, so it stays below 256 bytes.
        let mut postscript = Vec::new();
        uint(&mut postscript, 1, footer.len() as u64);
        uint(&mut postscript, 2, options.compression.kind());
        if !codec.is_none() {
            uint(&mut postscript, 3, options.chunk_bytes as u64);
        }
        packed(&mut postscript, 4, &VERSION);
        uint(&mut postscript, 5, metadata.len() as u64);
        uint(&mut postscript, 6, WRITER_VERSION);
        bytes(&mut postscript, 8000, MAGIC);
        let mut tail = metadata;
        tail.extend_from_slice(&footer);
        tail.extend_from_slice(&postscript);
        tail.push(postscript.len() as u8);
        self.out.write_all(&tail)?;
        self.out.flush()?;
        let summary = Summary {
            rows: self.rows,
            bytes: self.offset + tail.len() as u64,
            stripes: self.stripes.len(),
        };
        Ok((self.out, summary))
    }

    /// The message `Metadata`, which has the statistics of each stripe.
    fn metadata(&self) -> Vec<u8> {
        let mut metadata = Vec::new();
        for stripe in &self.stripes {
            message(&mut metadata, 1, |out| {
                for column in &stripe.statistics {
                    message(out, 1, |out| column.write(out));
                }
            });
        }
        metadata
    }

    fn footer(&self) -> Vec<u8> {
        let mut footer = Vec::new();
        uint(&mut footer, 1, MAGIC.len() as u64);
        uint(&mut footer, 2, self.offset);
        for stripe in &self.stripes {
            message(&mut footer, 3, |out| {
                uint(out, 1, stripe.offset);
                uint(out, 2, stripe.extent.index_bytes as u64);
                uint(out, 3, stripe.extent.data_bytes as u64);
                uint(out, 4, stripe.extent.footer_bytes as u64);
                uint(out, 5, stripe.rows);
            });
        }
        schema::write(self.layout.fields(), &mut footer);
        uint(&mut footer, 6, self.rows);
        for column in &self.statistics {
            message(&mut footer, 7, |out| column.write(out));
        }
        uint(&mut footer, 8, self.layout.options().stride_rows as u64);
        uint(&mut footer, 9, WRITER);
        uint(&mut footer, 11, PROLEPTIC_GREGORIAN);
        bytes(
            &mut footer,
            12,
            concat!("dynolab ", env!("CARGO_PKG_VERSION")).as_bytes(),
        );
        footer
    }
}
