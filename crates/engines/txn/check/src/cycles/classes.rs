//! Classifies cycles by what they prove, the worst class first.

use std::collections::BTreeSet;

use crate::history::History;
use crate::verdict::{Rule, Verdict};

use super::graph::{Graph, Step, Taking, Why};

/// Transactions of a cycle that are printed with their operations.
const MEMBERS_MAX: usize = 12;
/// Edges that are tried as the only read of a G-single cycle, in each component.
const TRIES_MAX: usize = 256;

const WW: Taking = Taking {
    wr: false,
    rw: false,
    time: false,
};
const WW_WR: Taking = Taking { wr: true, ..WW };
const DATA: Taking = Taking { rw: true, ..WW_WR };
const ALL: Taking = Taking { time: true, ..DATA };

/// Reports one cycle for each component and class. The classes by data come first, and a component
/// that has a cycle only with real time gets that one.
pub(super) fn report(history: &History, graph: &Graph, verdict: &mut Verdict) {
    let mut named = BTreeSet::new();
    let whole = graph.parts(ALL);
    for (rule, taking) in [
        (Rule::G0, WW),
        (Rule::G1c, WW_WR),
        (Rule::G2, DATA),
        (Rule::RealTime, ALL),
    ] {
        let parts = graph.parts(taking);
        let mut seen = BTreeSet::new();
        for node in 0..graph.transactions {
            let (Some(part), Some(all)) = (parts[node], whole[node]) else {
                continue;
            };
            // A component with a worse cycle is done: its other cycles most likely come from the
            // same bug.
            if named.contains(&all) || !seen.insert(part) {
                continue;
            }
            let within = |node: usize| parts[node] == Some(part);
            // A cycle with one read proves more than one with several, so it is looked for first.
            let single = (rule == Rule::G2).then(|| single(graph, &within)).flatten();
            if let Some(cycle) = single {
                add(history, graph, Rule::GSingle, &cycle, verdict);
            } else if let Some(cycle) = graph.path(node, node, taking, within) {
                add(history, graph, rule, &cycle, verdict);
            }
        }
        let found = (0..graph.transactions).filter(|&node| parts[node].is_some());
        named.extend(found.filter_map(|node| whole[node]));
    }
}

/// Finds a cycle with exactly one rw edge. Only the first [`TRIES_MAX`] edges are tried, because
/// each costs a search; without a hit the cycle counts as G2, which is true of it, too.
fn single(graph: &Graph, within: &impl Fn(usize) -> bool) -> Option<Vec<Step>> {
    let nodes = (0..graph.transactions).filter(|&node| within(node));
    let edges = nodes.flat_map(|from| graph.edges(from).map(move |(to, why)| (from, to, why)));
    edges
        .filter(|(_, to, why)| matches!(why, Why::Rw(_)) && within(*to))
        .take(TRIES_MAX)
        .find_map(|(from, to, why)| {
            let mut cycle = graph.path(to, from, WW_WR, within)?;
            cycle.push((from, why));
            Some(cycle)
        })
}

fn add(history: &History, graph: &Graph, rule: Rule, cycle: &[Step], verdict: &mut Verdict) {
    verdict.add(rule, || {
        let mut text = String::new();
        let mut members = Vec::new();
        for &(node, why) in cycle {
            if node < graph.transactions {
                let id = history.transactions[node].id;
                members.push(node);
                text.push_str(&match why {
                    Why::Ww(key) => format!("T{id} -ww {key}-> "),
                    Why::Wr(key) => format!("T{id} -wr {key}-> "),
                    Why::Rw(key) => format!("T{id} -rw {key}-> "),
                    Why::Ended | Why::Then => format!("T{id} -ended before-> "),
                });
            }
        }
        if let Some(&first) = members.first() {
            text.push_str(&format!("T{}", history.transactions[first].id));
        }
        for &member in members.iter().take(MEMBERS_MAX) {
            text.push_str(&format!("\n    {}", history.transactions[member]));
        }
        text
    });
}
