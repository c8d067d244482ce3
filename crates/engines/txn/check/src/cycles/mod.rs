//! Finds cycles in what transactions depended on, from what they read alone: no stamp is believed.
//!
//! After Adya ("Weak Consistency", 1999) and Elle (Kingsbury and Alvaro, VLDB 2020): lists that are
//! appended to and read whole show the order of their versions; registers show it where a
//! transaction read the version that it replaced. From that follow dependencies: ww (replaced what
//! the other wrote), wr (read what the other wrote), rw (read what the other replaced), and rt (the
//! other ended before it began). Strictly serializable means: no cycle. Linear in the history, but
//! for appends that were never read.

mod classes;
mod graph;
mod lists;
mod observed;
mod realtime;
mod registers;

use crate::history::History;
use crate::verdict::Verdict;

/// Judges a history by its dependencies.
pub fn judge(history: &History) -> Verdict {
    let mut verdict = Verdict::default();
    let observed = observed::Observed::of(history, &mut verdict);
    let mut graph = graph::Graph::new(history.transactions.len());
    lists::dependencies(&observed, &mut graph, &mut verdict);
    registers::dependencies(&observed, &mut graph, &mut verdict);
    realtime::dependencies(&observed, &mut graph);
    classes::report(history, &graph, &mut verdict);
    verdict
}
