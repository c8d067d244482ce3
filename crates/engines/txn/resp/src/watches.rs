//! Watched keys that are absent.
//!
//! The version in a row tells a watching client of every change but one: a key that was absent, was
//! set and was removed again has no row in which a version could be. All commands of clients pass
//! through the front, so it notes for each such key whether a command that may have set it was sent
//! to the engine since. A command that was refused in the end counts as well: the client is then
//! told of a change that there was not, and tries again.

use std::collections::{HashMap, HashSet};

use crate::arguments::arguments;
use crate::batch::{CHANGED, Unit, Watched};
use crate::commands;

/// The absent keys that connections watch.
#[derive(Debug, Default)]
pub struct Watches {
    /// Whether others may have set each key, by the connection that watches it.
    by_connection: HashMap<u64, HashMap<Vec<u8>, bool>>,
    by_key: HashMap<Vec<u8>, Vec<u64>>,
    /// Batches under way of connections that are gone.
    left: HashMap<u64, Vec<Unit>>,
}

impl Watches {
    /// Brings what a connection watches up to date, before its next batch.
    pub fn apply(&self, id: u64, watched: &mut [Watched]) {
        let Some(keys) = self.by_connection.get(&id) else {
            return;
        };
        for (key, version) in watched {
            if *version == 0 && keys.get(key) == Some(&true) {
                *version = CHANGED;
            }
        }
    }

    /// Notes a batch that goes to the engine. `others` are the batches that are under way, of all
    /// connections.
    pub fn submitted<'a>(
        &mut self,
        id: u64,
        units: &[Unit],
        others: impl Iterator<Item = (u64, &'a [Unit])>,
    ) {
        if !self.by_key.is_empty() {
            for key in set_by(units) {
                self.note(id, &key);
            }
        }
        let watched = watched_by(units);
        if watched.is_empty() {
            return;
        }
        for key in watched {
            let own = self.by_connection.entry(id).or_default();
            // Of a key that was watched before, the change is in its version by now.
            if own.insert(key.to_vec(), false).is_none() {
                self.by_key.entry(key.to_vec()).or_default().push(id);
            }
        }
        // What is under way may be carried out after the WATCH, and was noted before it.
        for (other, units) in others {
            for key in set_by(units) {
                self.note(other, &key);
            }
        }
        for (other, units) in std::mem::take(&mut self.left) {
            for key in set_by(&units) {
                self.note(other, &key);
            }
            self.left.insert(other, units);
        }
    }

    /// Notes that a connection may have set a key, for the others that watch it.
    fn note(&mut self, by: u64, key: &[u8]) {
        for id in self.by_key.get(key).into_iter().flatten() {
            if *id != by
                && let Some(keys) = self.by_connection.get_mut(id)
                && let Some(is_set) = keys.get_mut(key)
            {
                *is_set = true;
            }
        }
    }

    /// Forgets what a connection does not watch any more, or watches while it is there. No batch of
    /// it is under way.
    pub fn settle(&mut self, id: u64, watched: &[Watched]) {
        self.left.remove(&id);
        let Some(keys) = self.by_connection.get_mut(&id) else {
            return;
        };
        // A set, because one `WATCH` may name very many keys.
        let absent = watched.iter().filter(|(_, at)| *at == 0);
        let kept: HashSet<&[u8]> = absent.map(|(key, _)| &key[..]).collect();
        let is_gone = |key: &&Vec<u8>| !kept.contains(key.as_slice());
        let gone: Vec<Vec<u8>> = keys.keys().filter(is_gone).cloned().collect();
        for key in gone {
            keys.remove(&key);
            if let Some(watching) = self.by_key.get_mut(&key) {
                watching.retain(|other| *other != id);
                if watching.is_empty() {
                    self.by_key.remove(&key);
                }
            }
        }
        if keys.is_empty() {
            self.by_connection.remove(&id);
        }
    }

    /// Forgets a connection that is gone, except for what it has sent and is not answered.
    pub fn closed(&mut self, id: u64, under_way: &[Unit]) {
        self.settle(id, &[]);
        if !under_way.is_empty() {
            self.left.insert(id, under_way.to_vec());
        }
    }
}

/// The keys that commands may set that are absent before.
fn set_by(units: &[Unit]) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    for unit in units {
        match unit {
            Unit::Command(bytes) => {
                let list = arguments(bytes).unwrap_or_default();
                let command = list.first().and_then(|name| commands::find(name));
                if let Some(command) = command.filter(|command| command.may_create()) {
                    keys.extend(command.keys_of(&list).map(<[u8]>::to_vec));
                }
            }
            Unit::Exec(units) => keys.extend(set_by(units)),
            _ => {}
        }
    }
    keys
}

fn watched_by(units: &[Unit]) -> Vec<&[u8]> {
    let words = units.iter().map(|unit| match unit {
        Unit::Watch(bytes) => arguments(bytes).unwrap_or_default(),
        _ => Vec::new(),
    });
    words.flat_map(|list| list.into_iter().skip(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::ArgumentsBuilder;

    fn encoded(line: &str) -> Vec<u8> {
        let mut builder = ArgumentsBuilder::default();
        line.split(' ')
            .for_each(|word| builder.push(word.as_bytes()));
        builder.finish()
    }

    fn command(line: &str) -> Vec<Unit> {
        vec![Unit::Command(encoded(line))]
    }

    fn none<'a>() -> impl Iterator<Item = (u64, &'a [Unit])> {
        std::iter::empty()
    }

    /// What the next batch of connection 1 is told of its key `k`, which was absent.
    fn version_of_k(watches: &Watches) -> u64 {
        let mut watched = vec![(b"k".to_vec(), 0)];
        watches.apply(1, &mut watched);
        watched[0].1
    }

    fn watching(others: &[(u64, Vec<Unit>)]) -> Watches {
        let mut watches = Watches::default();
        let watch = [Unit::Watch(encoded("watch k"))];
        let others = others.iter().map(|(id, units)| (*id, &units[..]));
        watches.submitted(1, &watch, others);
        watches
    }

    #[test]
    fn a_command_that_may_set_the_key_counts_and_no_other() {
        for (line, changes) in [
            ("set k 1", true),
            ("mset a 1 k 1", true),
            ("HSET k f v", true),
            ("set other 1", false),
            ("del k", false),
            ("get k", false),
            ("expire k 5", false),
        ] {
            let mut watches = watching(&[]);
            watches.submitted(2, &[Unit::Exec(command(line))], none());
            assert_eq!(version_of_k(&watches) == CHANGED, changes, "{line}");
            // What the client does itself, its own batch sees.
            let mut watches = watching(&[]);
            watches.submitted(1, &command(line), none());
            assert_eq!(version_of_k(&watches), 0, "{line}");
        }
    }

    #[test]
    fn what_was_under_way_counts_even_if_its_connection_is_gone() {
        assert_eq!(version_of_k(&watching(&[(2, command("set k 1"))])), CHANGED);
        let mut watches = Watches::default();
        watches.closed(2, &command("set k 1"));
        watches.submitted(1, &[Unit::Watch(encoded("watch k"))], none());
        assert_eq!(version_of_k(&watches), CHANGED);
        watches.settle(2, &[]);
        watches.submitted(1, &[Unit::Watch(encoded("watch k"))], none());
        assert_eq!(version_of_k(&watches), 0, "it was answered before");
    }

    #[test]
    fn nothing_is_kept_of_what_nobody_watches() {
        let mut watches = watching(&[]);
        watches.settle(1, &[(b"k".to_vec(), 0)]);
        watches.submitted(2, &command("set k 1"), none());
        assert_eq!(version_of_k(&watches), CHANGED);
        watches.settle(1, &[(b"k".to_vec(), 7)]);
        assert!(watches.by_key.is_empty() && watches.by_connection.is_empty());
        let mut watches = watching(&[]);
        watches.closed(1, &[]);
        assert!(watches.by_key.is_empty() && watches.left.is_empty());
    }
}
