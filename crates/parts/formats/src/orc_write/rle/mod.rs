//! Encodes integers as runs of version 2 (specification v1, "Integer Run Length Encoding, version
//! 2").

mod pack;
mod patched;
mod runs;
#[cfg(test)]
mod slow_decoder;
#[cfg(test)]
mod tests;

use super::codec::Codec;
use super::error::Result;
use super::stream::Stream;

/// The most values that a run can have.
pub(super) const RUN: usize = 512;

/// A stream of integers, of which the last ones wait until their run is full.
pub(super) struct Integers {
    signed: bool,
    /// The values of the run that is not full yet, `count` of them.
    run: Box<[i64; RUN]>,
    count: usize,
    pub(super) stream: Stream,
}

impl Integers {
    /// `signed` says how readers will take the values, which the column's type decides. Unsigned
    /// ones must not be negative.
    pub(super) fn new(signed: bool) -> Integers {
        Integers {
            signed,
            run: Box::new([0; RUN]),
            count: 0,
            stream: Stream::default(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.stream.clear();
    }

    /// Appends values, each widened to 64 bits.
    #[inline]
    pub(super) fn append<T: Copy>(&mut self, mut values: &[T], widen: impl Fn(T) -> i64) {
        while !values.is_empty() {
            let (now, later) = values.split_at(values.len().min(RUN - self.count));
            for (slot, &value) in self.run[self.count..].iter_mut().zip(now) {
                *slot = widen(value);
            }
            self.count += now.len();
            values = later;
            if self.count == RUN {
                self.end_run();
            }
        }
    }

    /// Ends the current run, so that the next value begins one.
    pub(super) fn end_run(&mut self) {
        runs::encode(&self.run[..self.count], self.signed, &mut self.stream.raw);
        self.count = 0;
    }

    /// Appends the same value `count` times as runs of their own.
    pub(super) fn repeat(&mut self, value: i64, mut count: usize) {
        debug_assert_eq!(self.count, 0, "a repetition begins where a run ends");
        while count > 0 {
            let now = count.min(RUN);
            runs::repeat(value, now, self.signed, &mut self.stream.raw);
            count -= now;
        }
    }

    /// Appends the position of the next value, which must begin a run.
    pub(super) fn mark(&mut self, codec: &mut Codec, positions: &mut Vec<u64>) -> Result<()> {
        debug_assert_eq!(self.count, 0, "positions lie between runs");
        self.stream.mark(self.stream.raw.len(), codec, positions)?;
        positions.push(0);
        Ok(())
    }

    /// Encodes the values that wait, and ends the stream.
    pub(super) fn finish(&mut self, codec: &mut Codec) -> Result<()> {
        self.end_run();
        self.stream.finish(codec)
    }
}
