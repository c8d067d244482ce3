//! Our decoder. Has `unsafe`: far enough from both ends it copies 16 bytes at a time without a
//! check at each copy; near an end the careful way does the rest, which is also the plain twin.
//!
//! On the machine it was tuned on it was as fast as the C library's on pages and no faster. Copies
//! of 16 or 32 bytes, lengths without a branch, offsets without a branch (shuffled patterns),
//! literals behind the branch on their length, and checks of the offset put together were tried,
//! and none was faster by more than the noise. The store reads with the C library, and this one is
//! there where no C is.
//!
//! Where the time goes (a processor with AVX-512, November 2026; pages of sources, 220 sequences
//! each): half of it is branches told wrong. One page decoded again and again, so that they are
//! told right, takes 450 ns instead of 880, by the C library. They are the 58 lengths that go on
//! behind the token, and the ends of copying loops; so three ways without most of them were tried,
//! each in turns with the C library (times of the C library divided by theirs, sources / code /
//! heap): lengths without a branch and one copy of 32 bytes, with a shuffle for any short offset:
//! 0.93 / 0.89 / 0.85 (each sequence waits for the one before, 12 cycles); a table of where the
//! next token is for every byte, made 32 bytes at a time, so that only one load is waited for: 1.00
//! / 0.93 / 0.89 (wide loads of what was just written wait for the stores); copies of 64 bytes into
//! a page with room behind it, no careful end: 0.95 / 0.95 / 0.95. What is below: 0.83 / 0.87 /
//! 0.93.

use super::lanes::Lanes;
use super::{BlockError, PAGE_BYTES, Page};

const MIN_MATCH: usize = 4;
const MORE: usize = 15;
/// A sequence that begins before has room in the page for 14 literals copied as 16 and a match of
/// 18.
const PAGE_FAST: usize = PAGE_BYTES - 48;
/// A short sequence is at most a token, 16 bytes of copied literals and an offset.
const BLOCK_MARGIN: usize = 24;

/// With the widest instructions that this processor has.
pub(super) fn fastest(block: &[u8], page: &mut Page) -> Result<(), BlockError> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
        // SAFETY: the processor has the instructions.
        return unsafe { wide(block, page) };
    }
    decode::<super::lanes::Plain>(block, page)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn wide(block: &[u8], page: &mut Page) -> Result<(), BlockError> {
    decode::<super::lanes::Wide>(block, page)
}

#[inline(always)]
unsafe fn copy<T>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller vouches for `size_of::<T>()` bytes at both; T is an integer.
    unsafe {
        to.cast::<T>()
            .write_unaligned(from.cast::<T>().read_unaligned())
    }
}

#[inline(always)]
fn decode<L: Lanes>(block: &[u8], page: &mut Page) -> Result<(), BlockError> {
    let truncated = Err(BlockError::Truncated {
        block_bytes: block.len(),
    });
    let fast = block.len().saturating_sub(BLOCK_MARGIN);
    let (source, target) = (block.as_ptr(), page.as_mut_ptr());
    let (mut read, mut written) = (0, 0);
    while read < fast && written < PAGE_FAST {
        let sequence = (read, written);
        // SAFETY: `read < fast`.
        let token = usize::from(unsafe { *source.add(read) });
        read += 1;
        let mut literals = token >> 4;
        if literals == MORE {
            let Some(more) = length(block, &mut read) else {
                return truncated;
            };
            literals += more;
            if read + literals + 32 > block.len() || written + literals > PAGE_FAST - 16 {
                return careful(block, page, sequence.0, sequence.1);
            }
            // SAFETY: just checked, with 15 bytes to spare for the last step.
            unsafe { copy_steps(source.add(read), target.add(written), literals) };
        } else {
            // SAFETY: `fast` and PAGE_FAST leave 16 bytes.
            unsafe { copy::<u128>(source.add(read), target.add(written)) };
        }
        read += literals;
        written += literals;
        // SAFETY: two bytes are left by BLOCK_MARGIN or by the check of long literals.
        let offset = usize::from(u16::from_le(unsafe {
            source.add(read).cast::<u16>().read_unaligned()
        }));
        read += 2;
        if offset.wrapping_sub(1) >= written {
            let page_byte = written;
            return Err(BlockError::Offset { page_byte, offset });
        }
        // SAFETY: `0 < offset <= written`, and PAGE_FAST leaves 18 bytes behind `written`.
        let to = unsafe { target.add(written) };
        // SAFETY: see above.
        let from = unsafe { to.sub(offset).cast_const() };
        let mut len = token & MORE;
        if len != MORE && offset >= 8 {
            // SAFETY: 18 bytes, see above; eight at a time, as they may overlap.
            unsafe {
                copy::<u64>(from, to);
                copy::<u64>(from.add(8), to.add(8));
                copy::<u16>(from.add(16), to.add(16));
            }
            written += len + MIN_MATCH;
            continue;
        }
        if len == MORE {
            let Some(more) = length(block, &mut read) else {
                return truncated;
            };
            len += more;
        }
        len += MIN_MATCH;
        let page_bytes = written + len;
        if page_bytes > PAGE_BYTES {
            return Err(BlockError::Length { page_bytes });
        }
        // SAFETY: `len` bytes are inside the page, and so is what lies `offset` before them.
        unsafe { copy_match::<L>(from, to, offset, len, PAGE_BYTES - written) };
        written += len;
    }
    careful(block, page, read, written)
}

/// Any match, as much of it in steps as goes without a step past the page, the rest byte by byte.
///
/// # Safety
/// `from` is `offset` bytes before `to`, with `0 < offset`, `left` bytes of the page are behind
/// `to`, and `len` is at most `left`.
#[inline(always)]
unsafe fn copy_match<L: Lanes>(
    from: *const u8,
    to: *mut u8,
    offset: usize,
    len: usize,
    left: usize,
) {
    let stepped = len.min(left.saturating_sub(32));
    // SAFETY: the caller's word; `stepped` bytes and 16 more are inside the page.
    unsafe {
        if offset >= 16 {
            copy_steps(from, to, stepped);
        } else {
            L::repeat(from, to, offset, stepped);
        }
        for at in stepped..len {
            to.add(at).write(from.add(at).read());
        }
    }
}

/// # Safety
/// `len` bytes and 15 more may be read at `from` and written at `to`, which do not overlap within
/// 16.
#[inline(always)]
unsafe fn copy_steps(from: *const u8, to: *mut u8, len: usize) {
    let mut done = 0;
    while done < len {
        // SAFETY: the caller's word.
        unsafe { copy::<u128>(from.add(done), to.add(done)) };
        done += 16;
    }
}

/// The rest of a length whose nibble was full; nothing at the block's end.
#[inline(always)]
fn length(block: &[u8], read: &mut usize) -> Option<usize> {
    let mut sum = 0;
    loop {
        let byte = *block.get(*read)?;
        *read += 1;
        sum += usize::from(byte);
        if byte != 255 {
            return Some(sum);
        }
    }
}

/// Decodes from `read` and `written` on with every step checked.
pub(super) fn careful(
    block: &[u8],
    page: &mut Page,
    mut read: usize,
    mut written: usize,
) -> Result<(), BlockError> {
    let truncated = BlockError::Truncated {
        block_bytes: block.len(),
    };
    loop {
        let token = usize::from(*block.get(read).ok_or(truncated)?);
        read += 1;
        let mut literals = token >> 4;
        if literals == MORE {
            literals += length(block, &mut read).ok_or(truncated)?;
        }
        let bytes = block.get(read..read + literals).ok_or(truncated)?;
        let page_bytes = written + literals;
        let place = page.get_mut(written..page_bytes);
        place
            .ok_or(BlockError::Length { page_bytes })?
            .copy_from_slice(bytes);
        read += literals;
        written += literals;
        if read == block.len() {
            let whole = written == PAGE_BYTES;
            return if whole {
                Ok(())
            } else {
                Err(BlockError::Length { page_bytes })
            };
        }
        let pair = block.get(read..read + 2).ok_or(truncated)?;
        let offset = usize::from(u16::from_le_bytes([pair[0], pair[1]]));
        read += 2;
        if offset == 0 || offset > written {
            return Err(BlockError::Offset {
                page_byte: written,
                offset,
            });
        }
        let mut len = (token & MORE) + MIN_MATCH;
        if token & MORE == MORE {
            len += length(block, &mut read).ok_or(truncated)?;
        }
        let page_bytes = written + len;
        if page_bytes > PAGE_BYTES {
            return Err(BlockError::Length { page_bytes });
        }
        for at in written..page_bytes {
            page[at] = page[at - offset];
        }
        written = page_bytes;
    }
}
