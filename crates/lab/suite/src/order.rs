//! In which order the systems of a case are run.
//!
//! A block holds one invocation of each system, and of the control arm. Blocks come in pairs, the
//! second the reverse of the first (ABBA), so that a drift that is linear over a pair favours
//! none of them. Which order a pair begins with is drawn from the plan's seed.

use dyno_random::Random;
use dyno_record::Arm;

/// One place in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Index into the case's systems.
    pub system: usize,
    /// Main, control, or beside a load.
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
    balanced(seed, case, slots(systems, control), repeats)
}

/// As [`blocks`], with a second slot for each system, beside a load. The two have places of their
/// own in the block: a load right before or after its own comparison would favour neither.
pub(crate) fn blocks_beside(
    seed: u64,
    case: &str,
    systems: usize,
    control: bool,
    repeats: u32,
) -> Vec<Vec<Slot>> {
    let mut slots = slots(systems, control);
    slots.extend((0..systems).map(|system| Slot {
        system,
        arm: Arm::Beside,
    }));
    balanced(seed, case, slots, repeats)
}

fn slots(systems: usize, control: bool) -> Vec<Slot> {
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
    slots
}

fn balanced(seed: u64, case: &str, mut slots: Vec<Slot>, repeats: u32) -> Vec<Vec<Slot>> {
    // A case's order depends on its name and not on its place, so that adding a case to a suite
    // leaves the others' order as it was.
    let mut random = Random::new(seed ^ twox_hash::XxHash3_128::oneshot(case.as_bytes()) as u64);
    // Only the first block of a pair is drawn: its reverse gives each system the mean place of the
    // pair, so that a machine that grows warmer or slower favours no system.
    let mut blocks = Vec::new();
    for block in 0..repeats {
        if block % 2 == 0 {
            random.shuffle(&mut slots);
        } else {
            slots.reverse();
        }
        blocks.push(slots.clone());
    }
    blocks
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
    fn each_system_of_a_block_runs_once_alone_and_once_beside_the_load() {
        for block in blocks_beside(7, "case", 3, true, 4) {
            assert_eq!(block.len(), 7);
            for system in 0..3 {
                for arm in [Arm::Main, Arm::Beside] {
                    let there = |slot: &&Slot| slot.system == system && slot.arm == arm;
                    assert_eq!(block.iter().filter(there).count(), 1);
                }
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
