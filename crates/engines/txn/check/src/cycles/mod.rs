//! Finds cycles in the dependencies between transactions. They are derived from what transactions
//! read, and timestamps are not used at all.
//!
//! The method is that of Adya ("Weak Consistency", 1999) and Elle (Kingsbury and Alvaro, VLDB
//! 2020). Lists that are appended to and read as a whole show the order of their versions.
//! Registers show it where a transaction read the version that it replaced. From the versions
//! follow the dependencies: ww (replaced what the other wrote), wr (read what the other wrote), rw
//! (read what the other replaced), and rt (the other ended before it began). A history is strictly
//! serializable if these have no cycle. The cost is linear in the history, except for appends that
//! were never read.

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
    let observed = observed::Observed::from_history(history, &mut verdict);
    let mut graph = graph::Graph::new(history.transactions.len());
    lists::dependencies(&observed, &mut graph, &mut verdict);
    registers::dependencies(&observed, &mut graph, &mut verdict);
    realtime::dependencies(&observed, &mut graph);
    classes::report(history, &graph, &mut verdict);
    verdict
}
