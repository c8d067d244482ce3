//! DELTA_BINARY_PACKED: a first value, then blocks of bit-packed differences.

use bytes::Bytes;

use super::ReadError;

/// Miniblocks hold a multiple of 32 values; one of more than this many is not worth trusting.
const MAX_MINIBLOCK_VALUES: usize = 1 << 16;

/// Decodes integers of one page, in order.
#[derive(Debug)]
pub struct DeltaDecoder {
    bytes: Bytes,
    at: usize,
    /// Values of the page not yet handed out, the first one included.
    left: usize,
    miniblocks: usize,
    miniblock_values: usize,
    /// The value that the next difference is added to.
    last: i64,
    first_is_next: bool,
    min_delta: i64,
    widths: Vec<u8>,
    next_width: usize,
    /// Bits of the current miniblock: where it starts, how wide, which value is next.
    packed_at: usize,
    packed_width: u8,
    packed_next: usize,
}

impl DeltaDecoder {
    /// Reads the page header of `bytes`.
    ///
    /// # Errors
    /// A header that contradicts itself.
    pub fn new(bytes: Bytes) -> Result<Self, ReadError> {
        let mut decoder = Self {
            bytes,
            at: 0,
            left: 0,
            miniblocks: 0,
            miniblock_values: 0,
            last: 0,
            first_is_next: true,
            min_delta: 0,
            widths: Vec::new(),
            next_width: 0,
            packed_at: 0,
            packed_width: 0,
            packed_next: 0,
        };
        let block_values = decoder.count()?;
        decoder.miniblocks = decoder.count()?;
        decoder.left = decoder.count()?;
        decoder.last = decoder.zigzag()?;
        let values = block_values.checked_div(decoder.miniblocks).unwrap_or(0);
        if values == 0 || values % 32 != 0 || values > MAX_MINIBLOCK_VALUES {
            return Err(ReadError::damaged(format!(
                "delta block of {block_values} values in {} miniblocks",
                decoder.miniblocks
            )));
        }
        decoder.miniblock_values = values;
        decoder.packed_next = values;
        Ok(decoder)
    }

    /// Fills `out` with the next values, computed modulo 2^64.
    ///
    /// # Errors
    /// The page has fewer values left, or its bytes end early.
    pub fn read(&mut self, out: &mut [i64]) -> Result<(), ReadError> {
        if out.len() > self.left {
            return Err(ReadError::damaged(format!(
                "{} delta values left, {} rows follow",
                self.left,
                out.len()
            )));
        }
        self.left -= out.len();
        let mut done = 0;
        if self.first_is_next && !out.is_empty() {
            out[0] = self.last;
            self.first_is_next = false;
            done = 1;
        }
        while done < out.len() {
            if self.packed_next == self.miniblock_values {
                self.enter_miniblock()?;
            }
            let count = (out.len() - done).min(self.miniblock_values - self.packed_next);
            let out = &mut out[done..done + count];
            if self.packed_width == 0 && self.min_delta == 0 {
                // Times of spots stay the same for whole miniblocks.
                out.fill(self.last);
                self.packed_next += count;
            } else {
                for value in out {
                    let delta = self.packed(self.packed_next) as i64;
                    self.packed_next += 1;
                    self.last = self.last.wrapping_add(self.min_delta).wrapping_add(delta);
                    *value = self.last;
                }
            }
            done += count;
        }
        Ok(())
    }

    /// The value at `index` of the miniblock, whose bytes were checked to be there.
    fn packed(&self, index: usize) -> u64 {
        let width = usize::from(self.packed_width);
        if width == 0 {
            return 0;
        }
        let bit = index * width;
        let start = self.packed_at + bit / 8;
        let rest = &self.bytes[start..];
        if width <= 56
            && let Some(word) = rest.first_chunk::<8>()
        {
            return u64::from_le_bytes(*word) >> (bit % 8) & (u64::MAX >> (64 - width));
        }
        let mut word = [0u8; 16];
        let size = rest.len().min(16);
        word[..size].copy_from_slice(&rest[..size]);
        let mask = u64::MAX >> (64 - width);
        (u128::from_le_bytes(word) >> (bit % 8)) as u64 & mask
    }

    fn enter_miniblock(&mut self) -> Result<(), ReadError> {
        if self.next_width == self.widths.len() {
            self.min_delta = self.zigzag()?;
            let at = self.advance(self.miniblocks)?;
            self.widths.clear();
            let widths = &self.bytes[at..at + self.miniblocks];
            self.widths.extend_from_slice(widths);
            self.next_width = 0;
        }
        self.packed_width = self.widths[self.next_width];
        self.next_width += 1;
        if self.packed_width > 64 {
            return Err(ReadError::damaged(format!(
                "delta width {}",
                self.packed_width
            )));
        }
        self.packed_at = self.at;
        self.advance(self.miniblock_values / 8 * usize::from(self.packed_width))?;
        self.packed_next = 0;
        Ok(())
    }

    /// Goes over the next `size` bytes, and says where they begin.
    fn advance(&mut self, size: usize) -> Result<usize, ReadError> {
        let end = self.at.saturating_add(size);
        if end > self.bytes.len() {
            return Err(ReadError::damaged(format!(
                "delta values need {end} bytes, the page has {}",
                self.bytes.len()
            )));
        }
        Ok(std::mem::replace(&mut self.at, end))
    }

    fn varint(&mut self) -> Result<u64, ReadError> {
        let mut value = 0u64;
        for shift in (0..u64::BITS).step_by(7) {
            let at = self.advance(1)?;
            let byte = self.bytes[at];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ReadError::damaged(
            "number of more than 10 bytes in a delta page",
        ))
    }

    fn count(&mut self) -> Result<usize, ReadError> {
        let value = self.varint()?;
        usize::try_from(value).map_err(|_| ReadError::damaged(format!("count {value}")))
    }

    fn zigzag(&mut self) -> Result<i64, ReadError> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // That right pages are read right is tested on files of the parquet crate, in `tests/`.
    proptest! {
        #[test]
        fn any_bytes_end_in_values_or_an_error(bytes: Vec<u8>) {
            if let Ok(mut decoder) = DeltaDecoder::new(Bytes::from(bytes)) {
                let _ = decoder.read(&mut [0; 200]);
            }
        }
    }

    #[test]
    fn a_block_without_miniblocks_is_damage() {
        let error = DeltaDecoder::new(Bytes::from_static(&[128, 1, 0, 1, 2])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "damaged page: delta block of 128 values in 0 miniblocks"
        );
    }
}
