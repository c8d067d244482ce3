//! The fetches of a consumer that are under way at brokers, and the answers that have come.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::error::Result;
use crate::topic::Position;
use crate::wire;

/// The answer to a fetch.
pub type Answer = Result<wire::Fetched>;

/// At most one fetch of each partition. An answer counts only if no later fetch of its partition
/// was begun, because a consumer that loses a partition and wins it again asks from another offset
/// while the first answer is still under way.
#[derive(Default)]
pub struct Fetches {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    begun: u64,
    /// The last fetch of each partition.
    current: HashMap<i32, Current>,
}

struct Current {
    number: u64,
    offset: i64,
    /// `None` while the fetch is under way.
    answer: Option<Answer>,
}

impl Fetches {
    /// Whether a fetch from this position is under way, or its answer waits to be taken.
    pub fn is_begun(&self, from: Position) -> bool {
        let state = self.state.lock();
        let current = state.current.get(&from.partition);
        current.is_some_and(|current| current.offset == from.offset)
    }

    /// Begins a fetch, in place of the one that the partition had. Its number goes to
    /// [`Self::arrive`].
    pub fn begin(&self, from: Position) -> u64 {
        let mut state = self.state.lock();
        state.begun += 1;
        let number = state.begun;
        let current = Current {
            number,
            offset: from.offset,
            answer: None,
        };
        state.current.insert(from.partition, current);
        number
    }

    /// Keeps an answer, unless a later fetch of the partition was begun or the partition forgotten.
    pub fn arrive(&self, partition: i32, number: u64, answer: Answer) {
        let mut state = self.state.lock();
        // An answer to an earlier fetch must not take the place of the present one's: then the
        // present one would look as if it were under way for ever, and never be sent again.
        let current = state.current.get_mut(&partition);
        if let Some(current) = current.filter(|current| current.number == number) {
            current.answer = Some(answer);
            drop(state);
            self.arrived.notify_all();
        }
    }

    /// Removes the answers that have come for these positions.
    pub fn drain(&self, positions: &[Position]) -> Vec<(Position, Answer)> {
        let mut state = self.state.lock();
        let mut taken = Vec::new();
        for at in positions {
            let current = state.current.get_mut(&at.partition);
            let answer = current
                .filter(|current| current.offset == at.offset)
                .and_then(|current| current.answer.take());
            if let Some(answer) = answer {
                state.current.remove(&at.partition);
                taken.push((*at, answer));
            }
        }
        taken
    }

    /// Forgets all partitions but these. What still comes for the others is dropped.
    pub fn retain(&self, is_kept: impl Fn(i32) -> bool) {
        let mut state = self.state.lock();
        state.current.retain(|partition, _| is_kept(*partition));
    }

    /// Waits until an answer for one of these positions is there, for at most `wait`.
    pub fn wait(&self, positions: &[Position], wait: Duration) {
        // An answer for a partition that the caller does not read now must not end the wait, or the
        // caller, which never takes it, would spin.
        let nothing = |state: &mut State| {
            !positions.iter().any(|at| {
                let current = state.current.get(&at.partition);
                current.is_some_and(|is| is.offset == at.offset && is.answer.is_some())
            })
        };
        let mut state = self.state.lock();
        self.arrived.wait_while_for(&mut state, nothing, wait);
    }
}

#[cfg(test)]
mod tests;
