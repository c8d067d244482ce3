//! What happened, as a hash and as the last few lines.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};

/// Lines that are kept for a reader of a failure.
const MOST_LINES: usize = 4096;

/// Everything that happened, folded into 64 bits, and the last lines of it. Two runs of one seed
/// have the same hash, or something in them is not decided by the seed.
#[derive(Debug, Clone)]
pub struct Trace {
    hash: u64,
    entries: u64,
    lines: Option<VecDeque<String>>,
}

impl Trace {
    /// Nothing yet. `lines` says whether to keep the last 4096 entries as text, which costs time.
    pub fn new(lines: bool) -> Self {
        Self {
            hash: 0xcbf2_9ce4_8422_2325,
            entries: 0,
            lines: lines.then(VecDeque::new),
        }
    }

    /// Adds what happened at `at_ns`.
    pub fn add(&mut self, at_ns: u64, what: fmt::Arguments<'_>) {
        self.entries += 1;
        // The text is folded while it is printed, without a string in between: most runs keep no
        // lines and only need the hash.
        let mut fold = Fold(self.hash ^ at_ns.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // A `Fold` takes everything; an argument that fails to print is cut short in every run.
        let _ = fold.write_fmt(what);
        self.hash = fold.0.rotate_left(5).wrapping_mul(0x0100_0000_01b3);
        if let Some(lines) = &mut self.lines {
            if lines.len() == MOST_LINES {
                lines.pop_front();
            }
            lines.push_back(format!("{at_ns:>14} {what}"));
        }
    }

    /// The hash of all entries in their order.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// How many entries were added, printed or not.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The last of them as lines, oldest first; empty when lines are not kept.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().flatten().map(String::as_str)
    }
}

/// FNV-1a over what is printed into it.
struct Fold(u64);

impl fmt::Write for Fold {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}
