//! A stream of a column, whose bytes are cut into chunks when the file is compressed.

use super::codec::Codec;
use super::error::Result;

/// A stream of a column. Its buffers are kept from stripe to stripe.
#[derive(Default)]
pub(super) struct Stream {
    /// What was written and is not yet compressed; all of it when the file is not compressed.
    pub(super) raw: Vec<u8>,
    packed: Vec<u8>,
    /// Bytes at the front of `raw` that are in `packed`.
    done: usize,
}

impl Stream {
    /// Forgets all bytes and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.raw.clear();
        self.packed.clear();
        self.done = 0;
    }

    /// Bytes that the stream will have, where what waits for the codec counts as it is.
    pub(super) fn len(&self) -> usize {
        self.packed.len() + self.raw.len() - self.done
    }

    /// Appends where a reader must seek to for the byte at `at` in `raw`: the offset in the stream,
    /// and in a compressed file also the offset in the chunk that begins there.
    pub(super) fn mark(
        &mut self,
        at: usize,
        codec: &mut Codec,
        positions: &mut Vec<u64>,
    ) -> Result<()> {
        if codec.is_none() {
            positions.push(at as u64);
            return Ok(());
        }
        // A position is the start of a chunk and an offset in what it decompresses to. All chunks
        // before `at` must therefore be packed, and the one that holds it must not be.
        self.pack_to(at, codec)?;
        positions.push(self.packed.len() as u64);
        positions.push((at - self.done) as u64);
        Ok(())
    }

    /// Compresses the chunks that are full and forgets their bytes. Bytes that [`Stream::mark`] may
    /// still be called for must not be among them, so callers settle at the end of a batch.
    pub(super) fn settle(&mut self, codec: &mut Codec) -> Result<()> {
        if !codec.is_none() && self.raw.len() - self.done >= codec.chunk_bytes() {
            self.pack_to(self.raw.len(), codec)?;
        }
        if self.done > 0 {
            self.raw.drain(..self.done);
            self.done = 0;
        }
        Ok(())
    }

    /// Compresses what is left as a last, shorter chunk.
    pub(super) fn finish(&mut self, codec: &mut Codec) -> Result<()> {
        if codec.is_none() {
            return Ok(());
        }
        self.settle(codec)?;
        if !self.raw.is_empty() {
            codec.pack(&self.raw, &mut self.packed)?;
            self.raw.clear();
        }
        Ok(())
    }

    /// The bytes of a finished stream as they go into the file.
    pub(super) fn bytes(&self) -> &[u8] {
        if self.packed.is_empty() {
            &self.raw
        } else {
            &self.packed
        }
    }

    fn pack_to(&mut self, end: usize, codec: &mut Codec) -> Result<()> {
        let chunk_bytes = codec.chunk_bytes();
        while end - self.done >= chunk_bytes {
            let chunk = &self.raw[self.done..self.done + chunk_bytes];
            codec.pack(chunk, &mut self.packed)?;
            self.done += chunk_bytes;
        }
        Ok(())
    }
}
