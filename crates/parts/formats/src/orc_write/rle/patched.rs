//! Runs of the kind "patched base", for narrow values with a few wide ones among them.

use super::RUN;
use super::pack::{pack, packed_bytes, width_code, width_for};
use crate::vectorised::{Work, vectorised};

const PATCHED_BASE: u8 = 2;

/// The most patches that a header can count, in five bits.
const MOST_PATCHES: usize = 31;

/// Bits of a gap between patches. Patches have whole bytes too, so that entries are whole bytes
/// wide and readers cannot disagree on how they are packed.
const GAP_BITS: u32 = 8;
const LONGEST_GAP: usize = 255;

/// Appends the values as one run if that takes at least a tenth less than `width` bits for each of
/// them. Returns whether it did.
pub(super) fn encode(values: &[i64], coded: &[u64], width: u32, out: &mut Vec<u8>) -> bool {
    // Narrower or fewer values hardly ever gain anything, and looking for a plan costs time.
    if width < 16 || values.len() < 64 {
        return false;
    }
    // A quick look that needs no base: if more values need the upper byte than can be patched, only
    // another base could help, which is rare.
    let limit = 1u64 << (width - 8);
    let wide = vectorised(CountFrom { coded, limit });
    if wide > MOST_PATCHES as u64 {
        return false;
    }
    let Some(plan) = Plan::from_values(values) else {
        return false;
    };
    let bytes = plan.bytes(values.len());
    if bytes * 10 > packed_bytes(values.len(), width) * 9 {
        return false;
    }
    plan.write(values, out);
    true
}

/// Counts the values that are not below a limit.
struct CountFrom<'a> {
    coded: &'a [u64],
    limit: u64,
}

impl Work for CountFrom<'_> {
    type Output = u64;

    #[inline(always)]
    fn work(self) -> u64 {
        let is_wide = |&value: &u64| u64::from(value >= self.limit);
        self.coded.iter().map(is_wide).sum()
    }
}

struct Plan {
    base: i64,
    width: u32,
    patch_width: u32,
    /// The gap and the patch of each entry, packed into one number.
    patches: Vec<u64>,
}

impl Plan {
    fn from_values(values: &[i64]) -> Option<Plan> {
        let base = *values.iter().min()?;
        let most = *values.iter().max()?;
        let bits_of = |value: i64| 64 - (value.wrapping_sub(base) as u64).leading_zeros();
        let most_bits = bits_of(most);
        // A base of eight bytes with its sign is read differently by different readers.
        if base.unsigned_abs() >= 1 << 55 || most_bits > 56 {
            return None;
        }
        let mut wider = [0usize; 66];
        for &value in values {
            wider[bits_of(value) as usize] += 1;
        }
        for bits in (0..65).rev() {
            wider[bits] += wider[bits + 1];
        }
        // The narrowest width for which the patches suffice, those included that bridge long gaps.
        [1, 2, 4, 8, 16, 24, 32, 40]
            .into_iter()
            .filter(|&width| width < most_bits && wider[width as usize + 1] <= MOST_PATCHES)
            .find_map(|width| Plan::with_width(values, base, width, most_bits))
    }

    fn with_width(values: &[i64], base: i64, width: u32, most_bits: u32) -> Option<Plan> {
        let patch_width = (most_bits - width).next_multiple_of(8);
        if patch_width + GAP_BITS > 56 {
            return None;
        }
        let mut patches = Vec::new();
        let mut last = 0;
        for (at, &value) in values.iter().enumerate() {
            let patch = (value.wrapping_sub(base) as u64) >> width;
            if patch == 0 {
                continue;
            }
            while at - last > LONGEST_GAP {
                patches.push((LONGEST_GAP as u64) << patch_width);
                last += LONGEST_GAP;
            }
            patches.push(((at - last) as u64) << patch_width | patch);
            last = at;
        }
        // Some readers refuse a run without any patch.
        (1..=MOST_PATCHES).contains(&patches.len()).then_some(Plan {
            base,
            width,
            patch_width,
            patches,
        })
    }

    fn base_bytes(&self) -> usize {
        let bits = 64 - self.base.unsigned_abs().leading_zeros() + 1;
        bits.div_ceil(8) as usize
    }

    fn bytes(&self, count: usize) -> usize {
        let entry_width = self.patch_width + GAP_BITS;
        4 + self.base_bytes()
            + packed_bytes(count, self.width)
            + packed_bytes(self.patches.len(), entry_width)
    }

    fn write(&self, values: &[i64], out: &mut Vec<u8>) {
        let count = values.len() - 1;
        let base_bytes = self.base_bytes();
        let patch_code = width_code(width_for(self.patch_width));
        out.push(PATCHED_BASE << 6 | width_code(self.width) << 1 | (count >> 8) as u8);
        out.push(count as u8);
        out.push((base_bytes as u8 - 1) << 5 | patch_code);
        out.push((GAP_BITS as u8 - 1) << 5 | self.patches.len() as u8);
        let sign = u64::from(self.base < 0) << (8 * base_bytes - 1);
        let base = self.base.unsigned_abs() | sign;
        out.extend_from_slice(&base.to_be_bytes()[8 - base_bytes..]);
        let mut narrow = [0; RUN];
        let mask = (1u64 << self.width) - 1;
        for (narrow, &value) in narrow.iter_mut().zip(values) {
            *narrow = value.wrapping_sub(self.base) as u64 & mask;
        }
        pack(&narrow[..values.len()], self.width, out);
        pack(&self.patches, self.patch_width + GAP_BITS, out);
    }
}
