//! Decodes DELTA_BINARY_PACKED, which is a first value and then blocks of bit-packed differences.

use bytes::Bytes;

use super::ReadError;
use super::bits::{GROUP, MAX_WIDTH, SLACK_BYTES, unpacker};

/// The most values of a miniblock that is read. Writers have 32 or a few hundred; more would only
/// let a few bytes stand for a lot of memory.
const MAX_MINIBLOCK_VALUES: usize = 1 << 16;

/// Decodes the integers of one page, in order.
#[derive(Debug)]
pub struct DeltaDecoder {
    bytes: Bytes,
    at: usize,
    /// Values of the page that have not been handed out, the first one included.
    left: usize,
    miniblocks: usize,
    miniblock_values: usize,
    /// The value to which the next difference is added.
    last: i64,
    first_is_next: bool,
    min_delta: i64,
    widths: Vec<u8>,
    next_width: usize,
    /// The current miniblock: where its bits start, how wide they are, and which value is next.
    packed_at: usize,
    packed_width: u8,
    packed_next: usize,
    /// The differences of the current miniblock, or empty if they are taken one by one.
    unpacked: Vec<[u32; GROUP]>,
}

impl DeltaDecoder {
    /// Reads the header of the encoding at the front of `bytes`.
    ///
    /// # Errors
    /// The header contradicts itself or is cut short.
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
            unpacked: Vec::new(),
        };
        let block_values = decoder.count()?;
        decoder.miniblocks = decoder.count()?;
        decoder.left = decoder.count()?;
        decoder.last = decoder.zigzag()?;
        // All numbers here are the file's. What follows relies on miniblocks that have a multiple
        // of 32 values, so that they are whole bytes at every width, and have not too many.
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
                // A common case: times of spots stay the same for whole miniblocks.
                out.fill(self.last);
                self.packed_next += count;
            } else if !self.unpacked.is_empty() {
                let deltas = &self.unpacked.as_flattened()[self.packed_next..];
                for (value, delta) in out.iter_mut().zip(deltas) {
                    let delta = self.min_delta.wrapping_add(i64::from(*delta));
                    self.last = self.last.wrapping_add(delta);
                    *value = self.last;
                }
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

    /// What follows the values in the page.
    ///
    /// # Errors
    /// Some values have not been read, so it is not known where they end.
    pub(super) fn rest(&self) -> Result<Bytes, ReadError> {
        match self.left {
            0 => Ok(self.bytes.slice(self.at..)),
            left => Err(ReadError::damaged(format!(
                "{left} more delta values than rows"
            ))),
        }
    }

    /// The difference at `index` of the miniblock, whose bytes were checked to be there.
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
        // A wide value may lie in nine bytes, or too close to the end of the page for eight at
        // once.
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
        // Checks that the miniblock is there as a whole, which `packed` and the unpacker rely on.
        self.packed_at = self.at;
        self.advance(self.miniblock_values / 8 * usize::from(self.packed_width))?;
        self.packed_next = 0;
        self.unpack_miniblock()
    }

    /// Unpacks the miniblock at once, unless its differences are too wide or the page ends so soon
    /// behind it that the unpacker would read too far.
    fn unpack_miniblock(&mut self) -> Result<(), ReadError> {
        self.unpacked.clear();
        let packed = &self.bytes[self.packed_at..];
        let size = self.at - self.packed_at + SLACK_BYTES;
        if (1..=MAX_WIDTH).contains(&self.packed_width) && packed.len() >= size {
            let groups = self.miniblock_values / GROUP;
            self.unpacked.resize(groups, [0; GROUP]);
            unpacker(self.packed_width)?(&packed[..size], &mut self.unpacked);
        }
        Ok(())
    }

    /// Moves behind the next `size` bytes, and returns where they begin.
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

    /// A page of one block whose miniblocks are of 32 values.
    fn page(min_delta: i64, widths: [u8; 4], packed: &[u8]) -> Vec<u8> {
        let mut page = vec![128, 1, 4, 129, 1, 6];
        let mut zigzag = (min_delta << 1 ^ min_delta >> 63) as u64;
        while zigzag >= 128 {
            page.push(zigzag as u8 | 128);
            zigzag >>= 7;
        }
        page.push(zigzag as u8);
        page.extend(widths);
        page.extend(packed);
        page
    }

    proptest! {
        /// With bytes behind it every miniblock is unpacked at once, without them the last ones
        /// value by value.
        #[test]
        fn what_lies_behind_a_page_changes_nothing(
            min_delta: i64,
            widths in proptest::array::uniform4(0u8..=64),
            seed: u8,
            pieces in proptest::collection::vec(1usize..60, 1..12),
        ) {
            let size: usize = widths.iter().map(|width| usize::from(*width) * 4).sum();
            let packed: Vec<u8> = (0..size).map(|i| (i * 151) as u8 ^ seed).collect();
            let page = page(min_delta, widths, &packed);
            let longer = [page.as_slice(), &[0xa5; SLACK_BYTES]].concat();
            let mut decoders = [page, longer].map(|page| DeltaDecoder::new(Bytes::from(page)).unwrap());
            let mut left = 129;
            for piece in pieces {
                let count = piece.min(left);
                left -= count;
                let values = decoders.each_mut().map(|decoder| {
                    let mut values = vec![0; count];
                    decoder.read(&mut values).unwrap();
                    values
                });
                prop_assert_eq!(&values[0], &values[1]);
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
