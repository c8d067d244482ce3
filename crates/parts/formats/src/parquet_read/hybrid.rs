//! Decodes the RLE/bit-packed hybrid, in which codes of dictionaries and levels are stored.

use bytes::Bytes;

use super::ReadError;
use super::bits::{GROUP, MAX_WIDTH, SLACK_BYTES, Unpack, unpacker};

/// Decodes a stream of runs. Each is either one value many times, or groups of 8 packed values.
#[derive(Debug)]
pub struct HybridDecoder {
    bytes: Bytes,
    at: usize,
    width: u8,
    unpack: Unpack,
    run: Run,
    /// Unpacked values that the last call had no room for, `spare[spare_at..spare_end]`. They still
    /// count as left in `run`.
    spare: [u32; GROUP],
    spare_at: usize,
    spare_end: usize,
}

#[derive(Debug, Clone, Copy)]
enum Run {
    Same { value: u32, left: usize },
    Packed { left: usize },
}

impl HybridDecoder {
    /// Decodes values of `width` bits from `bytes`, which start with a run header.
    ///
    /// # Errors
    /// The width, which the file states, is above 32.
    pub fn new(bytes: Bytes, width: u8) -> Result<Self, ReadError> {
        Ok(Self {
            bytes,
            at: 0,
            width,
            unpack: unpacker(width)?,
            run: Run::Packed { left: 0 },
            spare: [0; GROUP],
            spare_at: 0,
            spare_end: 0,
        })
    }

    /// If the next `rows` values lie in one run of the same value, consumes them and returns the
    /// value. Otherwise consumes nothing.
    ///
    /// # Errors
    /// Damaged run headers.
    pub fn take_same(&mut self, rows: usize) -> Result<Option<u32>, ReadError> {
        // Spare values come first, and they are from a packed run.
        if self.spare_at < self.spare_end {
            return Ok(None);
        }
        self.enter_run()?;
        match &mut self.run {
            Run::Same { value, left } if *left >= rows => {
                *left -= rows;
                Ok(Some(*value))
            }
            _ => Ok(None),
        }
    }

    /// Fills `out` with the next values.
    ///
    /// # Errors
    /// The stream ends before `out` is full, or a run header is damaged.
    pub fn read(&mut self, out: &mut [u32]) -> Result<(), ReadError> {
        let mut done = self.take_spare(out);
        while done < out.len() {
            self.enter_run()?;
            let rest = &mut out[done..];
            match &mut self.run {
                Run::Same { value, left } => {
                    let count = rest.len().min(*left);
                    rest[..count].fill(*value);
                    *left -= count;
                    done += count;
                }
                Run::Packed { left } => {
                    let count = rest.len().min(*left);
                    *left -= count;
                    self.read_packed(&mut rest[..count])?;
                    done += count;
                }
            }
        }
        Ok(())
    }

    /// Skips the next `rows` values. Packed ones are not unpacked, except for up to seven of a
    /// group.
    ///
    /// # Errors
    /// As [`HybridDecoder::read`].
    pub fn skip(&mut self, mut rows: usize) -> Result<(), ReadError> {
        let mut tail = [0; 8];
        while rows > 0 {
            if self.spare_at < self.spare_end {
                rows -= self.take_spare(&mut tail[..rows.min(8)]);
                continue;
            }
            self.enter_run()?;
            match &mut self.run {
                Run::Same { left, .. } => {
                    let count = rows.min(*left);
                    *left -= count;
                    rows -= count;
                }
                Run::Packed { left } if rows.min(*left) >= 8 => {
                    // Groups of 8 are whole bytes at every width. The count is the file's, so a
                    // product or sum may overflow and the place may lie behind the page.
                    let count = rows.min(*left) / 8 * 8;
                    *left -= count;
                    rows -= count;
                    self.at = count
                        .checked_mul(usize::from(self.width))
                        .and_then(|bits| self.at.checked_add(bits / 8))
                        .filter(|at| *at <= self.bytes.len())
                        .ok_or_else(|| ReadError::damaged("packed codes leave their page"))?;
                }
                Run::Packed { left } => {
                    let count = rows.min(*left);
                    self.read(&mut tail[..count])?;
                    rows -= count;
                }
            }
        }
        Ok(())
    }

    fn take_spare(&mut self, out: &mut [u32]) -> usize {
        let count = out.len().min(self.spare_end - self.spare_at);
        out[..count].copy_from_slice(&self.spare[self.spare_at..self.spare_at + count]);
        self.spare_at += count;
        if let Run::Packed { left } = &mut self.run {
            *left -= count;
        }
        count
    }

    /// Reads run headers until one has values left. Each takes a byte at least, so that a stream of
    /// empty runs ends with the page.
    fn enter_run(&mut self) -> Result<(), ReadError> {
        while matches!(
            self.run,
            Run::Same { left: 0, .. } | Run::Packed { left: 0 }
        ) {
            let header = self.header()?;
            let count = usize::try_from(header >> 1)
                .map_err(|_| ReadError::damaged(format!("run header {header}")))?;
            self.run = if header & 1 == 1 {
                // A page may promise any number of groups. Whether their bytes are there is checked
                // when they are unpacked.
                Run::Packed {
                    left: count.saturating_mul(8),
                }
            } else {
                Run::Same {
                    value: self.repeated_value()?,
                    left: count,
                }
            };
        }
        Ok(())
    }

    fn header(&mut self) -> Result<u64, ReadError> {
        let mut value = 0u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or_else(|| {
                ReadError::damaged(format!(
                    "codes end after {} bytes, more rows follow",
                    self.at
                ))
            })?;
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ReadError::damaged("run header of more than 10 bytes"))
    }

    fn repeated_value(&mut self) -> Result<u32, ReadError> {
        let size = usize::from(self.width.div_ceil(8));
        let stored = self.bytes.get(self.at..self.at + size).ok_or_else(|| {
            ReadError::damaged(format!("codes end inside of a run at byte {}", self.at))
        })?;
        let mut word = [0u8; 4];
        word[..size].copy_from_slice(stored);
        self.at += size;
        let value = u32::from_le_bytes(word);
        // The value has whole bytes, and bits above the width would make a code that packed values
        // cannot have.
        if self.width < MAX_WIDTH && value >> self.width != 0 {
            return Err(ReadError::damaged(format!(
                "code {value} has over {} bits",
                self.width
            )));
        }
        Ok(value)
    }

    /// Unpacks `out.len()` values of the current packed run, which has that many left.
    fn read_packed(&mut self, out: &mut [u32]) -> Result<(), ReadError> {
        let group_bytes = GROUP / 8 * usize::from(self.width);
        let (groups, tail) = out.as_chunks_mut::<GROUP>();
        let packed = &self.bytes[self.at.min(self.bytes.len())..];
        // The unpackers read up to `SLACK_BYTES` behind their last group, so that only those groups
        // are unpacked in place which have that many bytes of the page behind them.
        let within = packed.len().saturating_sub(SLACK_BYTES);
        let whole = within
            .checked_div(group_bytes)
            .unwrap_or(0)
            .min(groups.len());
        let (whole, at_end) = groups.split_at_mut(whole);
        if !whole.is_empty() {
            (self.unpack)(packed, whole);
        }
        self.at += whole.len() * group_bytes;
        for group in at_end {
            self.unpack_at_end(group, GROUP)?;
        }
        if !tail.is_empty() {
            // A run is made of groups of 8, so what lies behind the tail up to there is its own.
            let stored = tail.len().next_multiple_of(8);
            let mut group = [0; GROUP];
            self.unpack_at_end(&mut group, stored)?;
            tail.copy_from_slice(&group[..tail.len()]);
            self.spare = group;
            self.spare_at = tail.len();
            self.spare_end = stored;
        }
        Ok(())
    }

    /// Unpacks `count` values (a multiple of 8) from a padded copy, because a whole group or its
    /// slack might lie behind the end of the page.
    fn unpack_at_end(&mut self, out: &mut [u32; GROUP], count: usize) -> Result<(), ReadError> {
        let size = count / 8 * usize::from(self.width);
        let end = self.at + size;
        let stored = self.bytes.get(self.at..end).ok_or_else(|| {
            ReadError::damaged(format!(
                "packed codes need {end} bytes, the page has {}",
                self.bytes.len()
            ))
        })?;
        let mut padded = [0u8; 4 * MAX_WIDTH as usize + SLACK_BYTES];
        padded[..size].copy_from_slice(stored);
        (self.unpack)(&padded, std::slice::from_mut(out));
        self.at = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Piece {
        Same(u32, usize),
        Packed(Vec<u32>),
    }

    fn header(bytes: &mut Vec<u8>, mut value: u64) {
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    }

    fn encode(pieces: &[Piece], width: u8) -> (Vec<u8>, Vec<u32>) {
        let (mut bytes, mut values) = (Vec::new(), Vec::new());
        for piece in pieces {
            match piece {
                Piece::Same(value, count) => {
                    header(&mut bytes, (*count as u64) << 1);
                    bytes.extend(&value.to_le_bytes()[..usize::from(width.div_ceil(8))]);
                    values.extend(std::iter::repeat_n(*value, *count));
                }
                Piece::Packed(packed) => {
                    header(&mut bytes, (packed.len() as u64 / 8) << 1 | 1);
                    let start = bytes.len();
                    bytes.resize(start + packed.len() / 8 * usize::from(width), 0);
                    for (i, value) in packed.iter().enumerate() {
                        for bit in 0..usize::from(width) {
                            let at = i * usize::from(width) + bit;
                            bytes[start + at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
                        }
                    }
                    values.extend(packed);
                }
            }
        }
        (bytes, values)
    }

    fn pieces() -> impl Strategy<Value = (u8, Vec<Piece>)> {
        (0u8..=32).prop_flat_map(|width| {
            let limit = (1u64 << width) as u128;
            let value = any::<u32>().prop_map(move |v| (u128::from(v) % limit) as u32);
            let packed = proptest::collection::vec(value.clone(), 8..200).prop_map(|mut v| {
                v.truncate(v.len() / 8 * 8);
                Piece::Packed(v)
            });
            let same = (value, 1usize..300).prop_map(|(v, n)| Piece::Same(v, n));
            let piece = prop_oneof![same, packed];
            (Just(width), proptest::collection::vec(piece, 0..8))
        })
    }

    proptest! {
        #[test]
        fn reads_back_what_was_encoded((width, pieces) in pieces(), step in 1usize..400) {
            let (bytes, values) = encode(&pieces, width);
            let mut decoder = HybridDecoder::new(Bytes::from(bytes), width).unwrap();
            let mut out = vec![0; step];
            for expected in values.chunks(step) {
                let out = &mut out[..expected.len()];
                match decoder.take_same(expected.len()).unwrap() {
                    Some(value) => out.fill(value),
                    None => decoder.read(out).unwrap(),
                }
                prop_assert_eq!(&*out, expected);
            }
            prop_assert!(decoder.read(&mut [0; 8]).is_err());
        }

        #[test]
        fn skipping_ends_where_reading_does(
            (width, pieces) in pieces(),
            steps in proptest::collection::vec((0usize..100, 1usize..100), 1..20),
        ) {
            let (bytes, values) = encode(&pieces, width);
            let mut decoder = HybridDecoder::new(Bytes::from(bytes), width).unwrap();
            let mut at = 0;
            for (over, take) in steps {
                if at + over + take > values.len() {
                    break;
                }
                decoder.skip(over).unwrap();
                let mut out = vec![0; take];
                decoder.read(&mut out).unwrap();
                prop_assert_eq!(&out, &values[at + over..at + over + take]);
                at += over + take;
            }
            prop_assert!(decoder.skip(values.len() - at + 8).is_err());
        }

        #[test]
        fn any_bytes_end_in_values_or_an_error(bytes: Vec<u8>, width in 0u8..=32) {
            let mut decoder = HybridDecoder::new(Bytes::from(bytes), width).unwrap();
            let mut out = [0; 100];
            // Each call either uses up a part of the bytes or of a run; a thousand is plenty.
            for _ in 0..1000 {
                if decoder.read(&mut out).is_err() {
                    break;
                }
            }
        }
    }
}
