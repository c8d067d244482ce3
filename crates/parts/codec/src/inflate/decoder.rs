//! The native decoder: block headers, stored blocks and the careful loop. [`super::fast`] has the
//! loop that does most of the work.

use std::io::Read;

use super::fast::{self, Exit};
use super::input::Input;
use super::tables::{
    Alphabet, DISTANCE_BITS, END, EXCEPTION, LENGTH_CODE_BITS, LITERAL, LITERAL_BITS, SUBTABLE,
    build,
};
use super::{InflateError, InflateErrorKind, OUTPUT_MARGIN};

/// The order in which a dynamic block lists the code lengths of its length code.
const LENGTH_ORDER: [usize; 19] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];

/// Which part of a stream the decoder is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Within {
    Header,
    Stored { left: usize },
    Coded,
    Finished,
}

/// The state of one raw deflate stream.
pub(super) struct Decoder {
    pub(super) bits: u64,
    pub(super) bit_count: u32,
    within: Within,
    last_block: bool,
    pub(super) literals: Vec<u32>,
    pub(super) distances: Vec<u32>,
    /// Whether the tables are those of the fixed code, which then need not be rebuilt.
    fixed: bool,
    /// Bytes of this stream that were written so far: no match may reach further back.
    pub(super) produced: u64,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Decoder {
            bits: 0,
            bit_count: 0,
            within: Within::Header,
            last_block: false,
            literals: Vec::new(),
            distances: Vec::new(),
            fixed: false,
            produced: 0,
        }
    }

    /// Begins another stream right behind the one that ended. The tables keep their memory.
    pub(super) fn restart(&mut self) {
        self.within = Within::Header;
        self.last_block = false;
        self.fixed = false;
        self.produced = 0;
    }

    pub(super) fn finished(&self) -> bool {
        self.within == Within::Finished
    }

    /// Inflates to `out[at..]` until fewer than [`OUTPUT_MARGIN`] bytes are free or the stream
    /// ends. Returns the new write position.
    pub(super) fn inflate<R: Read>(
        &mut self,
        input: &mut Input<R>,
        out: &mut [u8],
        mut at: usize,
    ) -> Result<usize, InflateError> {
        while out.len().saturating_sub(at) >= OUTPUT_MARGIN {
            let before = at;
            match self.within {
                Within::Header => self.header(input)?,
                Within::Stored { left } => at = self.stored(input, out, at, left)?,
                Within::Coded => at = self.coded(input, out, at)?,
                Within::Finished => break,
            }
            self.produced += (at - before) as u64;
        }
        Ok(at)
    }

    /// Reads until at least `n` bits are in the buffer, or reports that the stream is cut off.
    fn need<R: Read>(&mut self, input: &mut Input<R>, n: u32) -> Result<(), InflateError> {
        while self.bit_count < n {
            let byte = input.byte("a deflate block")?;
            self.bits |= u64::from(byte) << self.bit_count;
            self.bit_count += 8;
        }
        Ok(())
    }

    fn take<R: Read>(&mut self, input: &mut Input<R>, n: u32) -> Result<u32, InflateError> {
        self.need(input, n)?;
        let value = (self.bits & ((1 << n) - 1)) as u32;
        self.drop_bits(n);
        Ok(value)
    }

    fn drop_bits(&mut self, n: u32) {
        self.bits >>= n;
        self.bit_count -= n;
    }

    fn header<R: Read>(&mut self, input: &mut Input<R>) -> Result<(), InflateError> {
        if self.last_block {
            // What is left of the last byte is padding; whole bytes in the buffer belong to what
            // follows.
            self.drop_bits(self.bit_count % 8);
            self.within = Within::Finished;
            return Ok(());
        }
        self.last_block = self.take(input, 1)? == 1;
        match self.take(input, 2)? {
            0 => self.stored_header(input),
            1 => self.fixed_tables(input),
            2 => self.dynamic_tables(input),
            _ => Err(corrupt(input, "block type 3")),
        }
    }

    fn stored_header<R: Read>(&mut self, input: &mut Input<R>) -> Result<(), InflateError> {
        self.drop_bits(self.bit_count % 8);
        let length = self.take(input, 16)?;
        let complement = self.take(input, 16)?;
        if length != !complement & 0xffff {
            return Err(corrupt(
                input,
                "a stored block's length and its complement disagree",
            ));
        }
        self.within = Within::Stored {
            left: length as usize,
        };
        Ok(())
    }

    fn stored<R: Read>(
        &mut self,
        input: &mut Input<R>,
        out: &mut [u8],
        mut at: usize,
        mut left: usize,
    ) -> Result<usize, InflateError> {
        // Whole bytes may be in the bit buffer already; they come first.
        while left > 0 && self.bit_count >= 8 && at < out.len() {
            out[at] = self.bits as u8;
            self.drop_bits(8);
            at += 1;
            left -= 1;
        }
        if left > 0 && at < out.len() {
            let waiting = input.want(1)?;
            if waiting == 0 {
                return Err(input.error(InflateErrorKind::Truncated("a stored block")));
            }
            let n = left.min(waiting).min(out.len() - at);
            out[at..at + n].copy_from_slice(&input.waiting()[..n]);
            input.consume(n);
            at += n;
            left -= n;
        }
        self.within = if left == 0 {
            Within::Header
        } else {
            Within::Stored { left }
        };
        Ok(at)
    }

    fn fixed_tables<R: Read>(&mut self, input: &Input<R>) -> Result<(), InflateError> {
        self.within = Within::Coded;
        if self.fixed {
            return Ok(());
        }
        let mut lengths = [8u8; 288];
        lengths[144..256].fill(9);
        lengths[256..280].fill(7);
        build(&mut self.literals, Alphabet::Literals, &lengths).map_err(|e| corrupt(input, e))?;
        build(&mut self.distances, Alphabet::Distances, &[5; 32]).map_err(|e| corrupt(input, e))?;
        self.fixed = true;
        Ok(())
    }

    fn dynamic_tables<R: Read>(&mut self, input: &mut Input<R>) -> Result<(), InflateError> {
        let literal_count = self.take(input, 5)? as usize + 257;
        let distance_count = self.take(input, 5)? as usize + 1;
        let length_count = self.take(input, 4)? as usize + 4;
        // The fields can express more symbols than the format has. Beyond these limits the arrays
        // below would overflow.
        if literal_count > 286 || distance_count > 30 {
            return Err(corrupt(input, "too many length or distance symbols"));
        }
        let mut code_lengths = [0u8; 19];
        for &symbol in &LENGTH_ORDER[..length_count] {
            code_lengths[symbol] = self.take(input, 3)? as u8;
        }
        let mut table = Vec::new();
        build(&mut table, Alphabet::CodeLengths, &code_lengths).map_err(|e| corrupt(input, e))?;

        let mut lengths = [0u8; 286 + 30];
        let total = literal_count + distance_count;
        let mut filled = 0;
        while filled < total {
            let entry = self.symbol(input, &table, LENGTH_CODE_BITS)?;
            let (value, repeat) = match entry >> 16 {
                16 if filled == 0 => return Err(corrupt(input, "a length repeats nothing")),
                16 => (lengths[filled - 1], 3 + self.take(input, 2)? as usize),
                17 => (0, 3 + self.take(input, 3)? as usize),
                18 => (0, 11 + self.take(input, 7)? as usize),
                length => (length as u8, 1),
            };
            // A repetition may run from the literal lengths into the distance lengths, but not past
            // both.
            if filled + repeat > total {
                return Err(corrupt(input, "code lengths run over their number"));
            }
            lengths[filled..filled + repeat].fill(value);
            filled += repeat;
        }
        // Without an end code the block could only end with the stream.
        if lengths[256] == 0 {
            return Err(corrupt(input, "a block without an end code"));
        }
        let (literals, distances) = lengths[..total].split_at(literal_count);
        self.fixed = false;
        build(&mut self.literals, Alphabet::Literals, literals).map_err(|e| corrupt(input, e))?;
        build(&mut self.distances, Alphabet::Distances, distances)
            .map_err(|e| corrupt(input, e))?;
        self.within = Within::Coded;
        Ok(())
    }

    /// Decodes one symbol, reading bits one at a time so that it reads no further than the stream
    /// goes. Extra bits stay in the buffer.
    fn symbol<R: Read>(
        &mut self,
        input: &mut Input<R>,
        table: &[u32],
        main_bits: u32,
    ) -> Result<u32, InflateError> {
        loop {
            let mut entry = table[(self.bits & ((1 << main_bits) - 1)) as usize];
            let mut code_bits = if entry & (LITERAL | EXCEPTION) == 0 {
                entry >> 8 & 15
            } else {
                entry & 0xff
            };
            if entry & LITERAL == 0 && entry & SUBTABLE != 0 && entry & EXCEPTION != 0 {
                let index = self.bits >> main_bits & ((1 << (entry >> 8 & 15)) - 1);
                entry = table[(entry >> 16) as usize + index as usize];
                let sub_bits = if entry & (LITERAL | EXCEPTION) == 0 {
                    entry >> 8 & 15
                } else {
                    entry & 0xff
                };
                code_bits = main_bits + sub_bits;
            }
            let invalid = entry & LITERAL == 0 && entry & EXCEPTION != 0 && entry & END == 0;
            // The index was padded with zeros for bits that are not read yet, so an entry whose
            // code is longer than the bits in the buffer may be the wrong one.
            if code_bits <= self.bit_count && !invalid {
                self.drop_bits(code_bits);
                return Ok(entry);
            }
            if invalid && self.bit_count >= 15 {
                return Err(corrupt(input, "a code that no symbol has"));
            }
            self.need(input, self.bit_count + 1)?;
        }
    }

    fn coded<R: Read>(
        &mut self,
        input: &mut Input<R>,
        out: &mut [u8],
        mut at: usize,
    ) -> Result<usize, InflateError> {
        let start = at;
        while out.len() - at >= OUTPUT_MARGIN {
            // The fast loop needs margins in both buffers. Near the end of the stream one careful
            // step at a time takes its place.
            if input.want(fast::INPUT_MARGIN)? >= fast::INPUT_MARGIN {
                let reach = self.produced + (at - start) as u64;
                let (exit, now) = fast::run(self, input, out, at, reach);
                at = now;
                match exit {
                    Exit::Margin => {}
                    Exit::EndOfBlock => {
                        self.within = Within::Header;
                        break;
                    }
                    Exit::Corrupt(what) => return Err(corrupt(input, what)),
                }
                if out.len() - at < OUTPUT_MARGIN {
                    break;
                }
            }
            let reach = self.produced + (at - start) as u64;
            match self.careful_step(input, out, at, reach)? {
                Some(now) => at = now,
                None => {
                    self.within = Within::Header;
                    break;
                }
            }
        }
        Ok(at)
    }

    /// Decodes one literal or match with every check; `None` at the end of the block.
    fn careful_step<R: Read>(
        &mut self,
        input: &mut Input<R>,
        out: &mut [u8],
        at: usize,
        reach: u64,
    ) -> Result<Option<usize>, InflateError> {
        let literals = std::mem::take(&mut self.literals);
        let entry = self.symbol(input, &literals, LITERAL_BITS);
        self.literals = literals;
        let entry = entry?;
        if entry & LITERAL != 0 {
            out[at] = (entry >> 16) as u8;
            return Ok(Some(at + 1));
        }
        if entry & END != 0 && entry & EXCEPTION != 0 {
            return Ok(None);
        }
        let length = (entry >> 16) + self.take(input, (entry & 0xff) - (entry >> 8 & 15))?;
        let distances = std::mem::take(&mut self.distances);
        let entry = self.symbol(input, &distances, DISTANCE_BITS);
        self.distances = distances;
        let entry = entry?;
        let distance = (entry >> 16) + self.take(input, (entry & 0xff) - (entry >> 8 & 15))?;
        let (length, distance) = (length as usize, distance as usize);
        if distance as u64 > reach || distance > at {
            return Err(corrupt(input, "a match reaches back before the beginning"));
        }
        // A match may overlap itself, so bytes are copied in order, one at a time.
        for i in at..at + length {
            out[i] = out[i - distance];
        }
        Ok(Some(at + length))
    }
}

fn corrupt<R: Read>(input: &Input<R>, what: &'static str) -> InflateError {
    input.error(InflateErrorKind::Corrupt(what))
}
