use std::marker::PhantomData;

use crate::{Protocol, Wire};

/// Levels of nesting that a reader follows before it refuses the bytes.
const DEPTH_MAX: u32 = 32;

/// Reads values from the front of borrowed bytes.
#[derive(Debug)]
pub struct Reader<'a, P> {
    left: &'a [u8],
    depth: u32,
    protocol: PhantomData<P>,
}

/// # Errors
/// Those of all readers are [`Protocol::damaged`].
impl<'a, P: Protocol> Reader<'a, P> {
    /// A reader of all of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            left: bytes,
            depth: 0,
            protocol: PhantomData,
        }
    }

    /// Borrows the next `count` bytes.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], P::Error> {
        if count > self.left.len() {
            return Err(self.damaged("end too early"));
        }
        let (front, left) = self.left.split_at(count);
        self.left = left;
        Ok(front)
    }

    /// Reads the next byte as a number.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, P::Error> {
        Ok(self.bytes(1)?[0])
    }

    /// A count of elements, each of which has at least one byte: a larger count is damage, and is
    /// refused before anything is allocated for it.
    #[inline]
    pub fn count(&mut self) -> Result<usize, P::Error> {
        let count = u32::read(self)? as usize;
        if count > self.left.len() {
            return Err(self.damaged("count more than they hold"));
        }
        Ok(count)
    }

    /// Borrows the bytes that [`crate::write_bytes`] wrote.
    #[inline]
    pub fn counted(&mut self) -> Result<&'a [u8], P::Error> {
        let count = self.count()?;
        self.bytes(count)
    }

    /// Borrows the bytes that [`crate::write_short`] wrote.
    #[inline]
    pub fn short(&mut self) -> Result<&'a [u8], P::Error> {
        let count = u16::read(self)?;
        self.bytes(count.into())
    }

    /// Borrows all bytes that were not read yet, and leaves none.
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.left)
    }

    /// Reads a value whose type contains itself, such as a filter, and refuses one that is nested
    /// too deeply for the stack.
    pub fn nested<T: Wire<P>>(&mut self) -> Result<T, P::Error> {
        if self.depth == DEPTH_MAX {
            return Err(self.damaged("are nested too deeply"));
        }
        self.depth += 1;
        let value = T::read(self);
        self.depth -= 1;
        value
    }

    /// The error for the bytes that were just read.
    #[cold]
    pub fn damaged(&self, what: &'static str) -> P::Error {
        P::damaged(what, self.left.len())
    }

    /// Refuses bytes that continue behind the value.
    pub fn finish(self) -> Result<(), P::Error> {
        if self.left.is_empty() {
            return Ok(());
        }
        Err(self.damaged("go on after their end"))
    }
}
