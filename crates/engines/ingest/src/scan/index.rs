//! Finds commas, line ends and odd bytes, 64 bytes at a time.
//!
//! This module uses `unsafe` to call the vector versions after checking the processor's features;
//! each only loads from a `[u8; 64]`. Tests compare them with the plain version.

use super::block::Block;

/// The positions of delimiters and odd bytes in a block.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Positions of commas and line feeds.
    pub(super) delimiters: Vec<u32>,
    /// Which of the delimiters are line feeds: indexes into them.
    pub(super) line_ends: Vec<u32>,
    /// Positions of bytes that only the careful parser understands: quotes, backslashes, control
    /// characters, and everything that is not ASCII.
    pub(super) odd: Vec<u32>,
}

/// One bit for each of 64 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Masks {
    delimiters: u64,
    line_feeds: u64,
    odd: u64,
}

impl Index {
    /// Finds the structure of `block`'s text.
    pub(super) fn fill(&mut self, block: &Block) {
        assert!(
            // The last chunk of 64 bytes is loaded whole, although the text may end in its first
            // byte.
            block.end + 64 <= block.bytes.len(),
            "a block has its margin"
        );
        assert!(
            u32::try_from(block.end).is_ok(),
            "a block is shorter than 4 GiB"
        );
        self.delimiters.clear();
        self.line_ends.clear();
        self.odd.clear();
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512bw") {
                // SAFETY: the feature was detected.
                return unsafe { x86::fill_avx512(self, block) };
            }
            if std::arch::is_x86_feature_detected!("avx2") {
                // SAFETY: the feature was detected.
                return unsafe { x86::fill_avx2(self, block) };
            }
        }
        self.fill_with(block, masks_plain);
    }

    #[inline(always)]
    fn fill_with(&mut self, block: &Block, masks: impl Fn(&[u8; 64]) -> Masks) {
        let covering = (block.end - block.start).next_multiple_of(64);
        let text = &block.bytes[block.start..block.start + covering];
        let mut at = block.start;
        for chunk in text.chunks_exact(64) {
            let chunk: &[u8; 64] = chunk.try_into().expect("chunks_exact gives 64 bytes");
            let mut found = masks(chunk);
            // Behind the text the last chunk has bytes of an earlier block, which must not be
            // found.
            if block.end - at < 64 {
                let inside = (1 << (block.end - at)) - 1;
                found.delimiters &= inside;
                found.line_feeds &= inside;
                found.odd &= inside;
            }
            self.push(found, at as u32);
            at += 64;
        }
    }

    #[inline(always)]
    fn push(&mut self, masks: Masks, at: u32) {
        let known = self.delimiters.len() as u32;
        let mut line_feeds = masks.line_feeds;
        while line_feeds != 0 {
            // A line feed is a delimiter, too, and as many delimiters precede it as there are set
            // bits below its own.
            let bit = line_feeds & line_feeds.wrapping_neg();
            self.line_ends
                .push(known + (masks.delimiters & (bit - 1)).count_ones());
            line_feeds ^= bit;
        }
        push_positions(&mut self.delimiters, masks.delimiters, at);
        if masks.odd != 0 {
            push_positions(&mut self.odd, masks.odd, at);
        }
    }
}

/// Appends the positions of the set bits, eight at a time: text has about eleven delimiters in 64
/// bytes, and a loop that tests after each one mispredicts its end.
#[inline(always)]
fn push_positions(positions: &mut Vec<u32>, mut mask: u64, at: u32) {
    let count = mask.count_ones() as usize;
    let len = positions.len();
    positions.reserve(64);
    let spare = &mut positions.spare_capacity_mut()[..64];
    let mut done = 0;
    while done < count {
        for slot in &mut spare[done..done + 8] {
            // Past the last bit this writes a position that `set_len` leaves out.
            slot.write(at.wrapping_add(mask.trailing_zeros()));
            mask &= mask.wrapping_sub(1);
        }
        done += 8;
    }
    // SAFETY: the first `count` of the spare elements were written above.
    unsafe { positions.set_len(len + count) };
}

fn masks_plain(chunk: &[u8; 64]) -> Masks {
    let mut masks = Masks {
        delimiters: 0,
        line_feeds: 0,
        odd: 0,
    };
    for (i, &byte) in chunk.iter().enumerate() {
        let line_feed = u64::from(byte == b'\n');
        masks.line_feeds |= line_feed << i;
        masks.delimiters |= (line_feed | u64::from(byte == b',')) << i;
        let odd = (byte < b' ' && byte != b'\n') || byte >= 0x80 || byte == b'"' || byte == b'\\';
        masks.odd |= u64::from(odd) << i;
    }
    masks
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Block, Index, Masks};

    #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn fill_avx512(index: &mut Index, block: &Block) {
        index.fill_with(block, |chunk| {
            // SAFETY: 64 bytes are loaded from a [u8; 64].
            let bytes = unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) };
            let equals = |byte: u8| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8));
            let line_feeds = equals(b'\n');
            // As signed numbers, control characters and bytes of 0x80 and above are below a space.
            let low = _mm512_cmplt_epi8_mask(bytes, _mm512_set1_epi8(b' ' as i8));
            Masks {
                delimiters: line_feeds | equals(b','),
                line_feeds,
                odd: (low & !line_feeds) | equals(b'"') | equals(b'\\'),
            }
        });
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn fill_avx2(index: &mut Index, block: &Block) {
        index.fill_with(block, |chunk| {
            // SAFETY: twice 32 bytes are loaded from a [u8; 64].
            let (low_half, high_half) = unsafe {
                (
                    _mm256_loadu_si256(chunk.as_ptr().cast()),
                    _mm256_loadu_si256(chunk.as_ptr().add(32).cast()),
                )
            };
            let mask = |low: __m256i, high: __m256i| {
                u64::from(_mm256_movemask_epi8(low) as u32)
                    | u64::from(_mm256_movemask_epi8(high) as u32) << 32
            };
            let equals = |byte: u8| {
                let wanted = _mm256_set1_epi8(byte as i8);
                mask(
                    _mm256_cmpeq_epi8(low_half, wanted),
                    _mm256_cmpeq_epi8(high_half, wanted),
                )
            };
            let space = _mm256_set1_epi8(b' ' as i8);
            let low = mask(
                _mm256_cmpgt_epi8(space, low_half),
                _mm256_cmpgt_epi8(space, high_half),
            );
            let line_feeds = equals(b'\n');
            Masks {
                delimiters: line_feeds | equals(b','),
                line_feeds,
                odd: (low & !line_feeds) | equals(b'"') | equals(b'\\'),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_version_finds_the_same(text in proptest::collection::vec(
            prop_oneof![3 => b' '..b'z', 2 => Just(b','), 1 => Just(b'\n'), 1 => any::<u8>()], 0..400)) {
            let block = Block::from_text(&text);
            let (mut best, mut plain) = (Index::default(), Index::default());
            best.fill(&block);
            plain.fill_with(&block, masks_plain);
            prop_assert_eq!(&best.delimiters, &plain.delimiters);
            prop_assert_eq!(&best.line_ends, &plain.line_ends);
            prop_assert_eq!(&best.odd, &plain.odd);
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                let mut avx2 = Index::default();
                // SAFETY: the feature was detected.
                unsafe { x86::fill_avx2(&mut avx2, &block) };
                prop_assert_eq!(&avx2.delimiters, &plain.delimiters);
                prop_assert_eq!(&avx2.odd, &plain.odd);
            }
            let expected: Vec<u32> = (block.start..block.end)
                .filter(|&i| matches!(block.bytes[i], b',' | b'\n'))
                .map(|i| i as u32)
                .collect();
            prop_assert_eq!(plain.delimiters, expected);
        }
    }
}
