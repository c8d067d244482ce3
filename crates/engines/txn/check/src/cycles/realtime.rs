//! The order of real time, with moments between the transactions: so it takes a number of edges
//! that is linear in the history, and not one for each pair.

use crate::history::Outcome;

use super::graph::{Graph, Why};
use super::observed::Observed;

/// Links each transaction to all that began after it had ended. One whose outcome is unknown never
/// ended.
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
