//! Memory at addresses that O_DIRECT accepts.

use std::ops::{Deref, DerefMut};

/// Addresses, positions and lengths of direct I/O are multiples of this: the largest logical block
/// size in common use, so that no device has to be asked for its own.
pub const ALIGNMENT_BYTES: usize = 4096;

/// A buffer of fixed length whose first byte sits on a multiple of [`ALIGNMENT_BYTES`].
pub struct AlignedBuffer {
    /// Longer than needed, and never resized, because that would move it.
    memory: Box<[u8]>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    /// Zeroed bytes; the length is rounded up to the alignment.
    pub fn zeroed(len_bytes: usize) -> Self {
        let len = len_bytes.next_multiple_of(ALIGNMENT_BYTES);
        let memory = vec![0u8; len + ALIGNMENT_BYTES].into_boxed_slice();
        let address = memory.as_ptr() as usize;
        let start = address.next_multiple_of(ALIGNMENT_BYTES) - address;
        Self { memory, start, len }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

impl std::fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBuffer({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_even_after_a_move() {
        for len_bytes in [1, 4096, 4097, 1 << 20] {
            let moved = Box::new(AlignedBuffer::zeroed(len_bytes));
            assert_eq!(moved.as_ptr() as usize % ALIGNMENT_BYTES, 0);
            assert_eq!(moved.len(), len_bytes.next_multiple_of(ALIGNMENT_BYTES));
        }
    }
}
