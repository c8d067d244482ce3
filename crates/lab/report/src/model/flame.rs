//! Where a system spends its processor time in a case, as a tree of functions.

use std::collections::BTreeMap;

use dyno_record::{CasePlan, Profile, StoredRun};
use serde::Serialize;

/// Functions that were on the processor for less than this share of the samples are left out. They
/// would be thinner than a line, and there are thousands of them.
const SHARE_MIN: f64 = 0.003;

/// The profile of one system in one case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Flame {
    /// The system that ran.
    pub system: String,
    /// All processes of the invocation; its functions are the names of the processes.
    pub root: Frame,
}

/// A function as one chain of callers called it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Frame {
    /// Name of the function.
    pub name: String,
    /// Samples in which it was running, or one that it called.
    pub samples: u64,
    /// The functions that it called, the one with the most samples first, without those that were
    /// seen too rarely.
    pub called: Vec<Frame>,
}

/// The profiles of a case, in the order of its systems.
pub(crate) fn for_case(stored: &StoredRun, case: &CasePlan) -> Vec<Flame> {
    let profiles = stored.profiles.iter();
    let own = profiles.filter(|profile| profile.case == case.name);
    own.map(|profile| Flame {
        system: profile.system.clone(),
        root: tree(profile),
    })
    .collect()
}

#[derive(Default)]
struct Node<'a> {
    samples: u64,
    called: BTreeMap<&'a str, Node<'a>>,
}

fn tree(profile: &Profile) -> Frame {
    let mut root = Node::default();
    for (stack, count) in &profile.stacks {
        root.samples += count;
        let mut node = &mut root;
        for name in stack.split(';') {
            node = node.called.entry(name).or_default();
            node.samples += count;
        }
    }
    let least = (root.samples as f64 * SHARE_MIN).ceil() as u64;
    frame("all processes", root, least)
}

fn frame(name: &str, node: Node<'_>, least: u64) -> Frame {
    let often = node
        .called
        .into_iter()
        .filter(|(_, node)| node.samples >= least);
    let mut called: Vec<Frame> = often.map(|(name, node)| frame(name, node, least)).collect();
    called.sort_by_key(|frame| std::cmp::Reverse(frame.samples));
    Frame {
        name: name.to_owned(),
        samples: node.samples,
        called,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_has_the_samples_of_what_it_called_and_rare_ones_are_left_out() {
        let stacks = [
            ("p;main", 10),
            ("p;main;load;inflate", 600),
            ("p;main;load;parse", 390),
            ("p;rare", 1),
        ];
        let stacks = stacks.map(|(stack, count)| (stack.to_owned(), count));
        let profile = Profile {
            stacks: BTreeMap::from(stacks),
            ..Profile::default()
        };
        let root = tree(&profile);
        assert_eq!(root.samples, 1_001);
        let [process] = root.called.as_slice() else {
            panic!("one process: {root:?}");
        };
        let names: Vec<&str> = process
            .called
            .iter()
            .map(|frame| frame.name.as_str())
            .collect();
        assert_eq!(names, ["main"]);
        let load = &process.called[0].called[0];
        assert_eq!((load.name.as_str(), load.samples), ("load", 990));
        let below: Vec<(&str, u64)> = load
            .called
            .iter()
            .map(|f| (f.name.as_str(), f.samples))
            .collect();
        assert_eq!(below, [("inflate", 600), ("parse", 390)]);
    }
}
