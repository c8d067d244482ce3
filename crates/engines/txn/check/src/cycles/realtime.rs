//! Adds the order of real time to the graph. Moments between the transactions keep the number of
//! edges linear in the history; one edge for each pair would be quadratic.

use crate::history::Outcome;

use super::graph::{Graph, Why};
use super::observed::Observed;

/// Links each transaction to all that began after it had ended. A transaction of unknown outcome
/// never ended.
pub(super) fn dependencies(observed: &Observed, graph: &mut Graph) {
    let all = &observed.history.transactions;
    let happened = |place: &usize| observed.happened[*place];
    let mut begins: Vec<usize> = (0..all.len()).filter(happened).collect();
    let ended = |place: &usize| all[*place].outcome == Outcome::Ok;
    let mut ends: Vec<usize> = begins.iter().copied().filter(ended).collect();
    begins.sort_by_key(|&place| all[place].begin_ns);
    ends.sort_by_key(|&place| all[place].end_ns);
    let mut ends = ends.into_iter().peekable();
    let mut moment = None;
    for begun in begins {
        let before = |place: &usize| {
            all[*place]
                .end_ns
                .is_some_and(|end| end < all[begun].begin_ns)
        };
        let mut now = moment;
        // A new moment is needed only if a transaction has ended since the last one.
        while let Some(place) = ends.next_if(before) {
            if now == moment {
                let next = graph.moment();
                if let Some(last) = moment {
                    graph.link(last, next, Why::Then);
                }
                now = Some(next);
            }
            if let Some(now) = now {
                graph.link(place, now, Why::Ended);
            }
        }
        moment = now;
        if let Some(moment) = moment {
            graph.link(moment, begun, Why::Then);
        }
    }
}
