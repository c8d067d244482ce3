//! Makes strings that are neither coded nor from the pool, which are addresses, telephone numbers
//! and names of parts.

use crate::random::{Reader, Stream};
use crate::values::Values;

/// Text, one value after the other, in the layout of [`Values::Bytes`].
#[derive(Default)]
pub(crate) struct Strings {
    pub(crate) offsets: Vec<u32>,
    pub(crate) bytes: Vec<u8>,
}

impl Strings {
    /// Forgets all values and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.offsets.clear();
        self.offsets.push(0);
    }

    /// Ends the value that was written last.
    pub(crate) fn end(&mut self) {
        self.offsets.push(self.bytes.len() as u32);
    }

    pub(crate) fn values(&self) -> Values<'_> {
        Values::Bytes {
            offsets: &self.offsets,
            bytes: &self.bytes,
        }
    }
}

/// The characters of an address, six bits each.
const ADDRESS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,";
/// The least and the greatest length of an address, four tenths and sixteen tenths of 25.
const ADDRESS_LENGTHS: (u32, u32) = (10, 40);
/// Draws of an address, which are one for the length and one for every five characters of the
/// longest.
const ADDRESS_DRAWS: u32 = 9;
/// The most bytes that an address has.
pub(crate) const ADDRESS_LONGEST: u8 = ADDRESS_LENGTHS.1 as u8;

/// Makes addresses of random characters, five from each draw.
pub(crate) fn addresses(seed: u32, first: u64, rows: usize, out: &mut Strings) {
    out.clear();
    let stream = Stream::new(seed, ADDRESS_DRAWS);
    let (shortest, longest) = ADDRESS_LENGTHS;
    let mut start = stream.before(first);
    for _ in 0..rows {
        let mut reader = Reader::at(start);
        let length = shortest + reader.below(longest - shortest + 1);
        let mut text = [0; ADDRESS_LENGTHS.1 as usize];
        // All characters are made, whatever the length, because a loop of fixed length is faster
        // than one that ends at the last character wanted.
        for five in text.chunks_exact_mut(5) {
            let mut bits = address_bits(reader.draw());
            for character in five {
                *character = ADDRESS[(bits & 63) as usize];
                bits >>= 6;
            }
        }
        out.bytes.extend_from_slice(&text[..length as usize]);
        out.end();
        start = crate::random::times(start, stream.stride());
    }
}

/// The bits of a draw for an address. dbgen wants a number of 0..=2^31-1 and computes the width of
/// that range in 32 bits, where it is -2^31. The draw is therefore negative.
fn address_bits(state: u32) -> i32 {
    (f64::from(state) / f64::from(crate::random::MODULUS) * f64::from(i32::MIN)) as i32
}

/// How many bytes every telephone number has.
pub(crate) const PHONE_BYTES: u8 = 15;

/// Telephone numbers: the country is the nation's key plus 10, the rest is at random.
pub(crate) fn phones(seed: u32, first: u64, nations: &[i64], out: &mut Strings) {
    out.clear();
    let stream = Stream::new(seed, 3);
    // Every unit uses all of its draws, so the stream is read on from one to the next.
    let mut reader = Reader::at(stream.before(first));
    for &nation in nations {
        let area = 100 + reader.below(900);
        let exchange = 100 + reader.below(900);
        let number = 1000 + reader.below(9000);
        let mut text = *b"00-000-000-0000";
        digits(&mut text[0..2], 10 + nation as u32);
        digits(&mut text[3..6], area);
        digits(&mut text[7..10], exchange);
        digits(&mut text[11..15], number);
        out.bytes.extend_from_slice(&text);
        out.end();
    }
}

/// Writes a number into exactly these bytes, with zeros in front.
fn digits(places: &mut [u8], mut number: u32) {
    for place in places.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
}
