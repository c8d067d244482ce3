//! Judges that a transaction which ended before another began has the lower timestamp.

use crate::history::{History, Outcome};
use crate::verdict::{Rule, Verdict};

/// Sweeps through time, with the highest timestamp of the transactions that have ended so far. That
/// one is enough: if it is lower than a new one, so are all others.
pub(super) fn judge(history: &History, verdict: &mut Verdict) {
    let all = &history.transactions;
    let committed = |place: &usize| all[*place].outcome == Outcome::Ok;
    let mut begins: Vec<usize> = (0..all.len()).filter(committed).collect();
    let mut ends = begins.clone();
    begins.sort_by_key(|&place| all[place].begin_ns);
    ends.sort_by_key(|&place| all[place].end_ns);
    let mut ends = ends.into_iter().peekable();
    let mut highest: Option<usize> = None;
    for begun in begins {
        let ended = |place: &usize| {
            all[*place]
                .end_ns
                .is_some_and(|end| end < all[begun].begin_ns)
        };
        while let Some(place) = ends.next_if(ended) {
            if highest.is_none_or(|before| all[before].timestamp < all[place].timestamp) {
                highest = Some(place);
            }
        }
        if let Some(before) = highest
            && all[before].timestamp >= all[begun].timestamp
        {
            let (a, b) = (&all[before], &all[begun]);
            verdict.add(Rule::Strictness, || {
                format!(
                    "T{} ended before T{} began, but its timestamp is not lower: {a}; {b}",
                    a.id, b.id
                )
            });
        }
    }
}
