//! In which order the systems of a case are run.
//!
//! A block holds one invocation of each system, and of the control arm. Blocks come in pairs, the
//! second the reverse of the first (ABBA), so that a drift that is linear over a pair favours
//! none of them. Which order a pair begins with is drawn from the plan's seed.

use dyno_record::Arm;

/// One place in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Index into the case's systems.
    pub system: usize,
    /// Main or control.
    pub arm: Arm,
}

/// The blocks of a case: `repeats` of them, each with `systems` slots and one for the control.
pub fn blocks(
    seed: u64,
    case: &str,
    systems: usize,
    control: bool,
    repeats: u32,
) -> Vec<Vec<Slot>> {
    // A case's order depends on its name and not on its place, so that adding a case to a suite
    // leaves the others' order as it was.
    let mut random = SplitMix(seed ^ twox_hash::XxHash3_128::oneshot(case.as_bytes()) as u64);
    let mut slots: Vec<Slot> = (0..systems)
        .map(|system| Slot {
            system,
            arm: Arm::Main,
        })
        .collect();
    if control {
        slots.push(Slot {
            system: 0,
            arm: Arm::Control,
        });
    }
    let mut blocks = Vec::new();
    for block in 0..repeats {
        if block % 2 == 0 {
            shuffle(&mut slots, &mut random);
        } else {
            slots.reverse();
        }
        blocks.push(slots.clone());
    }
    blocks
}

fn shuffle(slots: &mut [Slot], random: &mut SplitMix) {
    for last in (1..slots.len()).rev() {
        let pick = random.below(last as u64 + 1) as usize;
        slots.swap(last, pick);
    }
}

/// Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform below `bound` but for a bias of bound/2^64, which is nothing for a few systems.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_pair_of_blocks_is_balanced(
            seed: u64, systems in 1usize..6, control: bool, repeats in 1u32..12,
        ) {
            let blocks = blocks(seed, "case", systems, control, repeats);
            prop_assert_eq!(blocks.len(), repeats as usize);
            for block in &blocks {
                prop_assert_eq!(block.len(), systems + usize::from(control));
                for system in 0..systems {
                    let mains = block.iter().filter(|s| s.system == system && s.arm == Arm::Main);
                    prop_assert_eq!(mains.count(), 1);
                }
                let controls = block.iter().filter(|s| s.arm == Arm::Control).count();
                prop_assert_eq!(controls, usize::from(control));
            }
            for pair in blocks.chunks_exact(2) {
                let mut reversed = pair[1].clone();
                reversed.reverse();
                prop_assert_eq!(&pair[0], &reversed);
            }
        }
    }

    #[test]
    fn the_seed_decides_and_all_orders_occur() {
        let first = |seed| blocks(seed, "case", 3, false, 1)[0].clone();
        assert_eq!(first(1), first(1));
        let mut seen: Vec<Vec<usize>> = (0..100)
            .map(|seed| first(seed).iter().map(|s| s.system).collect())
            .collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 6);
    }
}
