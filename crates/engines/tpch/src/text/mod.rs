//! The text pool, which is 300 MiB of sentences of which every comment is a slice (clause
//! 4.2.2.10).
//!
//! The sentences are one stream of draws. The state of that stream is known at 256 offsets, so that
//! threads can make pieces side by side. The pool is made on first use, once in a process.

mod checkpoints;
mod gather;
#[rustfmt::skip]
mod grammar;
mod sentences;

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use checkpoints::CHECKPOINTS;

/// The state with which dbgen's stream for the pool begins.
#[cfg(test)]
const SEED: u32 = 933_588_178;

/// The size of the pool in bytes.
pub const POOL_BYTES: usize = 300 * 1024 * 1024;
/// How many zeros stand behind the pool, for readers that copy more than a passage has.
pub const PADDING_BYTES: usize = 256;

/// The text that comments are slices of.
pub struct TextPool {
    bytes: Vec<u8>,
}

static SHARED: OnceLock<TextPool> = OnceLock::new();

impl TextPool {
    /// The pool of this process, which is made on first use by all cores. It takes 300 MiB of
    /// memory until the process ends.
    pub fn shared() -> &'static TextPool {
        // Counting the cores reads files, which is too much for each of many calls.
        SHARED.get_or_init(|| {
            TextPool::build(thread::available_parallelism().map_or(1, |cores| cores.get()))
        })
    }

    /// The same pool, made by so many threads unless it was made before.
    pub fn shared_by(threads: usize) -> &'static TextPool {
        SHARED.get_or_init(|| TextPool::build(threads))
    }

    /// Makes another pool, by so many threads, for measurements. All other callers want
    /// [`TextPool::shared`].
    ///
    /// Its memory has ordinary pages. Large ones did not make copying comments faster, because
    /// [`crate::Passages::copy_to`] has enough reads under way. Where the kernel or a hypervisor
    /// must look for large pages first, they cost more time than all of the text.
    pub fn build(threads: usize) -> TextPool {
        let mut bytes = vec![0; POOL_BYTES + PADDING_BYTES];
        let pieces = Mutex::new(pieces(&mut bytes[..POOL_BYTES]).into_iter());
        // The lock is held only while a piece is taken. Pieces do not overlap, so threads write
        // them without any lock.
        let take = || pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            while let Some(piece) = take() {
                // A piece must end with a sentence, in the state of the next one, or the pool would
                // depend on how it was cut. Only the pool's own end cuts a sentence.
                let end = sentences::write(piece.state, piece.text);
                debug_assert!(end.past_piece == 0 || piece.next_state.is_none());
                debug_assert!(piece.next_state.is_none_or(|state| state == end.state));
            }
        };
        thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        TextPool { bytes }
    }

    /// The text, all of it ASCII.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..POOL_BYTES]
    }

    /// The text and [`PADDING_BYTES`] zeros.
    pub fn padded(&self) -> &[u8] {
        &self.bytes
    }
}

/// A stretch of the pool that can be written by itself, because it begins with a sentence.
struct Piece<'a> {
    /// The state of the stream before it.
    state: u32,
    /// The state before the next piece, if there is one.
    next_state: Option<u32>,
    text: &'a mut [u8],
}

/// Cuts the pool at the checkpoints.
fn pieces(mut pool: &mut [u8]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::with_capacity(CHECKPOINTS.len());
    for (index, &(offset, state)) in CHECKPOINTS.iter().enumerate() {
        let next = CHECKPOINTS.get(index + 1);
        let end = next.map_or(POOL_BYTES, |&(offset, _)| offset as usize);
        let (text, rest) = pool.split_at_mut(end - offset as usize);
        pieces.push(Piece {
            state,
            next_state: next.map(|&(_, state)| state),
            text,
        });
        pool = rest;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Together with the seed at the beginning this makes every checkpoint right.
    #[test]
    fn each_piece_ends_where_the_next_one_begins() {
        let mut pool = vec![0; POOL_BYTES];
        let pieces = pieces(&mut pool);
        assert_eq!(pieces[0].state, SEED);
        for piece in pieces {
            let end = sentences::write(piece.state, piece.text);
            if let Some(next_state) = piece.next_state {
                assert_eq!((end.state, end.past_piece), (next_state, 0));
            }
        }
    }
}
