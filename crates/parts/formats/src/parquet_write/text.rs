//! Encodes the text of a page in one of three encodings (parquet-format, Encodings, 0, 6 and 7).

use super::delta;

/// The text of a page. `offsets` has one entry more than there are values.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub offsets: &'a [u32],
    pub bytes: &'a [u8],
}

impl<'a> Text<'a> {
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// The bytes of all values, one after the other.
    pub fn joined(&self) -> &'a [u8] {
        match (self.offsets.first(), self.offsets.last()) {
            (Some(&first), Some(&last)) => &self.bytes[first as usize..last as usize],
            _ => &[],
        }
    }

    pub fn rows(&self, rows: std::ops::Range<usize>) -> Text<'a> {
        Text {
            offsets: &self.offsets[rows.start..=rows.end],
            bytes: self.bytes,
        }
    }

    pub fn lengths(&self) -> impl Iterator<Item = usize> {
        self.offsets
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as usize)
    }

    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        self.offsets
            .windows(2)
            .map(|pair| &self.bytes[pair[0] as usize..pair[1] as usize])
    }

    pub fn value(&self, row: usize) -> &'a [u8] {
        &self.bytes[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    /// Appends the values in PLAIN encoding, each behind its length.
    pub fn plain(&self, out: &mut Vec<u8>) {
        out.reserve(self.joined().len() + 4 * self.len());
        for value in self.iter() {
            out.extend_from_slice(&(value.len() as u32).to_le_bytes());
            out.extend_from_slice(value);
        }
    }

    /// Appends the values in DELTA_LENGTH_BYTE_ARRAY encoding, which is all lengths and then all
    /// bytes.
    pub fn delta_length(&self, lengths: &mut Vec<i32>, out: &mut Vec<u8>) {
        lengths.clear();
        lengths.extend(
            self.offsets
                .windows(2)
                .map(|pair| (pair[1] - pair[0]) as i32),
        );
        delta::encode(lengths, out);
        out.extend_from_slice(self.joined());
    }

    /// Appends the values in DELTA_BYTE_ARRAY encoding, which is how much each shares with the one
    /// before, and then the rest of each.
    pub fn delta_prefix(&self, lengths: &mut Vec<i32>, out: &mut Vec<u8>) {
        lengths.clear();
        let mut previous: &[u8] = &[];
        for value in self.iter() {
            lengths.push(shared(previous, value) as i32);
            previous = value;
        }
        delta::encode(lengths, out);
        let suffixes: usize = self
            .lengths()
            .zip(lengths.iter())
            .map(|(length, &prefix)| length - prefix as usize)
            .sum();
        let mut rest = Vec::with_capacity(suffixes);
        // The prefixes are encoded already, so their memory becomes that of the suffixes' lengths.
        for (value, prefix) in self.iter().zip(lengths.iter_mut()) {
            let suffix = &value[*prefix as usize..];
            rest.extend_from_slice(suffix);
            *prefix = suffix.len() as i32;
        }
        delta::encode(lengths, out);
        out.extend_from_slice(&rest);
    }
}

/// How many bytes two values have in common at their front.
fn shared(a: &[u8], b: &[u8]) -> usize {
    let mut at = 0;
    while let (Some(x), Some(y)) = (a.get(at..at + 8), b.get(at..at + 8)) {
        if x != y {
            break;
        }
        at += 8;
    }
    let rest = a[at..].iter().zip(&b[at..]);
    at + rest.take_while(|(x, y)| x == y).count()
}
