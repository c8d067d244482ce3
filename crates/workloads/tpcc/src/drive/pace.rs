//! Decides when terminals enter their inputs: at once, or after the times that people take (clause
//! 5.2.5.7).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use crate::input::{Input, Kind, Terminal};

/// Seconds of keying, and mean seconds of thinking.
fn times_s(kind: Kind) -> (f64, f64) {
    match kind {
        Kind::NewOrder => (18.0, 12.0),
        Kind::Payment => (3.0, 12.0),
        Kind::OrderStatus => (2.0, 10.0),
        Kind::Delivery | Kind::StockLevel => (2.0, 5.0),
    }
}

/// Which terminal enters its input next, and when.
pub(super) struct Pace {
    paced: bool,
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Inputs that have been drawn but not entered yet.
    keyed: Vec<Option<Input>>,
}

impl Pace {
    /// All terminals begin to key in at `now`.
    pub fn new(paced: bool, terminals: &mut [Terminal], now: Instant, now_ms: i64) -> Pace {
        let mut pace = Pace {
            paced,
            due: BinaryHeap::with_capacity(terminals.len()),
            keyed: vec![None; terminals.len()],
        };
        for (at, terminal) in terminals.iter_mut().enumerate() {
            pace.begin(at, terminal, None, now, now_ms);
        }
        pace
    }

    /// A terminal's transaction has ended: it thinks, keys in the next input, and will enter that.
    pub fn begin(
        &mut self,
        at: usize,
        terminal: &mut Terminal,
        over: Option<Kind>,
        now: Instant,
        now_ms: i64,
    ) {
        let input = terminal.next(now_ms);
        let due = if self.paced {
            // The times count from the end of the last transaction, so a slow engine lowers the
            // load, as it does with people.
            let think = over.map_or(0.0, |kind| terminal.think_s(times_s(kind).1));
            let keying = times_s(input.kind()).0;
            now + Duration::from_secs_f64(think + keying)
        } else {
            now
        };
        self.keyed[at] = Some(input);
        self.due.push(Reverse((due, at)));
    }

    /// When the next terminal enters; `None` if all wait for answers.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((due, _))| *due)
    }

    /// The terminal that enters at `now`, with the time at which it was due and its input.
    pub fn enter(&mut self, now: Instant) -> Option<(usize, Instant, Input)> {
        let Reverse((due, at)) = *self.due.peek()?;
        if due > now {
            return None;
        }
        self.due.pop();
        let input = self.keyed[at].take()?;
        // Without pacing no input is due before it can be entered.
        Some((at, if self.paced { due } else { now }, input))
    }
}
