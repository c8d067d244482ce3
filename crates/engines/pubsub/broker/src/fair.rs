//! Things that wait to be done, in a line for each connection. The lines take turns, so a client
//! that asks for much makes only itself wait.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// How often it is checked whether a client that waits for room is still there.
const ASK: Duration = Duration::from_millis(250);

/// A line for each connection that has something in it, and the order of their turns.
pub struct Lines<T> {
    lines: HashMap<u64, VecDeque<T>>,
    /// Connections with something in their line, the next first.
    turns: VecDeque<u64>,
}

impl<T> Default for Lines<T> {
    fn default() -> Lines<T> {
        Lines {
            lines: HashMap::new(),
            turns: VecDeque::new(),
        }
    }
}

impl<T> Lines<T> {
    /// Puts a thing at the end of its connection's line.
    pub fn push(&mut self, connection: u64, thing: T) {
        let line = self.lines.entry(connection).or_default();
        if line.is_empty() {
            self.turns.push_back(connection);
        }
        line.push_back(thing);
    }

    /// How many wait in a connection's line.
    pub fn waiting(&self, connection: u64) -> usize {
        self.lines.get(&connection).map_or(0, VecDeque::len)
    }

    /// Removes the first thing of the line whose turn it is.
    pub fn pop(&mut self) -> Option<T> {
        self.pop_if(|_| true)
    }

    /// Removes the first thing, in the order of the turns, that is first in its line and `fits`.
    pub fn pop_if(&mut self, mut fits: impl FnMut(&T) -> bool) -> Option<T> {
        let at = self.turns.iter().position(|connection| {
            let first = self.lines.get(connection).and_then(VecDeque::front);
            first.is_some_and(&mut fits)
        })?;
        let connection = self.turns.remove(at)?;
        let line = self.lines.get_mut(&connection)?;
        let thing = line.pop_front();
        if line.is_empty() {
            self.lines.remove(&connection);
        } else {
            self.turns.push_back(connection);
        }
        thing
    }

    /// The first thing, in the order of the turns, that is first in its line and `fits`.
    pub fn find(&self, fits: impl Fn(&T) -> bool) -> Option<&T> {
        let firsts = self
            .turns
            .iter()
            .filter_map(|connection| self.lines.get(connection)?.front());
        firsts.into_iter().find(|first| fits(first))
    }

    /// Removes everything, in no order.
    pub fn drain(&mut self) -> Vec<T> {
        self.turns.clear();
        let lines = std::mem::take(&mut self.lines);
        lines.into_values().flatten().collect()
    }
}

/// Lines that threads wait at. Each line has a bound, and a full line holds its connection back.
pub struct Fair<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
    room: Condvar,
    most_each: usize,
}

struct State<T> {
    lines: Lines<T>,
    stopped: bool,
}

impl<T> Fair<T> {
    /// Empty lines of up to `most_each`.
    pub fn new(most_each: usize) -> Fair<T> {
        Fair {
            state: Mutex::new(State {
                lines: Lines::default(),
                stopped: false,
            }),
            arrived: Condvar::new(),
            room: Condvar::new(),
            most_each,
        }
    }

    /// Puts a thing into its connection's line, and blocks while the line is full and `still`
    /// holds. Returns the thing if `still` holds no more or the lines are stopped.
    pub fn push(&self, connection: u64, thing: T, still: impl Fn() -> bool) -> Result<(), T> {
        let mut state = self.state.lock();
        while !state.stopped && state.lines.waiting(connection) >= self.most_each {
            if !still() {
                return Err(thing);
            }
            // Nothing wakes this thread when its client goes, so it looks by itself now and then.
            self.room.wait_for(&mut state, ASK);
        }
        if state.stopped {
            return Err(thing);
        }
        state.lines.push(connection, thing);
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// Waits for the next thing. `None` means that the lines are stopped.
    pub fn next(&self) -> Option<T> {
        self.pop(1).pop()
    }

    /// Waits for some things and removes up to `most` in turn. Nothing means that the lines are
    /// stopped.
    pub fn pop(&self, most: usize) -> Vec<T> {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return Vec::new();
            }
            let taken: Vec<T> = std::iter::from_fn(|| state.lines.pop())
                .take(most)
                .collect();
            if !taken.is_empty() {
                drop(state);
                self.room.notify_all();
                return taken;
            }
            self.arrived.wait(&mut state);
        }
    }

    /// Removes up to `most` of the things that are there, without waiting.
    pub fn take_now(&self, most: usize) -> Vec<T> {
        let mut state = self.state.lock();
        let taken = std::iter::from_fn(|| state.lines.pop())
            .take(most)
            .collect();
        drop(state);
        self.room.notify_all();
        taken
    }

    /// Refuses further things and hands none out. Returns those that waited, for the caller to
    /// refuse.
    pub fn stop(&self) -> Vec<T> {
        let mut state = self.state.lock();
        state.stopped = true;
        let waited = state.lines.drain();
        drop(state);
        self.arrived.notify_all();
        self.room.notify_all();
        waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_take_turns_however_long_one_of_them_is() {
        let mut lines = Lines::default();
        for at in 0..100 {
            lines.push(1, (1, at));
        }
        lines.push(2, (2, 0));
        lines.push(3, (3, 0));
        let order: Vec<(u64, i32)> = std::iter::from_fn(|| lines.pop()).take(5).collect();
        assert_eq!(order, [(1, 0), (2, 0), (3, 0), (1, 1), (1, 2)]);
        assert_eq!(lines.drain().len(), 97);
        assert!(lines.pop().is_none());
    }

    #[test]
    fn a_line_whose_first_does_not_fit_is_passed_over_and_keeps_its_turn() {
        let mut lines = Lines::default();
        for (connection, size) in [(1, 9), (1, 1), (2, 2), (3, 3)] {
            lines.push(connection, size);
        }
        assert_eq!(lines.pop_if(|size| *size < 5), Some(2));
        assert_eq!(lines.find(|size| *size > 2), Some(&9));
        assert_eq!(lines.pop(), Some(9));
        assert_eq!(lines.pop(), Some(3));
        assert_eq!(lines.pop(), Some(1));
    }

    #[test]
    fn a_full_line_holds_back_its_own_connection_alone() {
        let fair = Fair::new(2);
        let still = || false;
        assert!(fair.push(1, 'a', still).is_ok() && fair.push(1, 'b', still).is_ok());
        assert_eq!(fair.push(1, 'c', still), Err('c'));
        assert!(fair.push(2, 'd', still).is_ok());
        std::thread::scope(|scope| {
            let held_back = scope.spawn(|| fair.push(1, 'c', || true));
            assert_eq!(fair.pop(1), ['a']);
            assert_eq!(held_back.join().unwrap(), Ok(()));
        });
        assert_eq!(fair.take_now(9).len(), 3);
    }

    #[test]
    fn stopped_lines_hand_nothing_out_and_give_back_what_waited() {
        let fair = Fair::new(1);
        fair.push(1, 'a', || true).unwrap();
        std::thread::scope(|scope| {
            let held_back = scope.spawn(|| fair.push(1, 'b', || true));
            assert_eq!(fair.stop(), ['a']);
            assert_eq!(held_back.join().unwrap(), Err('b'));
        });
        assert_eq!(fair.next(), None);
        assert_eq!(fair.push(2, 'c', || true), Err('c'));
    }
}
