//! The store against the obvious one: a map of all versions of all keys.

use std::collections::BTreeMap;

use dyno_txn_api::{Direction, TableId};
use proptest::prelude::*;

use super::*;

const TABLE: TableId = TableId(3);

#[derive(Debug, Clone)]
enum Step {
    Write(u8, Option<u8>),
    Intend(u8, bool),
    Forget(u8),
    Read(u8, u8),
    Scan(u8, bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..12u8, any::<Option<u8>>()).prop_map(|(key, value)| Step::Write(key, value)),
        (0..12u8, any::<bool>()).prop_map(|(key, keep)| Step::Intend(key, keep)),
        (0..30u8).prop_map(Step::Forget),
        (0..12u8, 0..30u8).prop_map(|(key, back)| Step::Read(key, back)),
        (0..30u8, any::<bool>()).prop_map(|(back, forward)| Step::Scan(back, forward)),
    ]
}

struct Both {
    store: Store,
    slow: BTreeMap<Vec<u8>, BTreeMap<Timestamp, Option<u8>>>,
    now: Timestamp,
    horizon: Timestamp,
}

impl Both {
    fn slot(&mut self, key: u8) -> Slot {
        let hash = self.store.hash(TABLE, &[key]);
        match self.store.find(hash, TABLE, &[key]) {
            Some(slot) => slot,
            None => self.store.add(hash, TABLE, &[key], 0),
        }
    }

    fn write(&mut self, key: u8, value: Option<u8>) {
        self.now += 1;
        let slot = self.slot(key);
        let bytes = value.map(|value| [value]);
        let bytes = bytes.as_ref().map(|value| &value[..]);
        self.store.install(slot, self.now, bytes);
        self.slow
            .entry(vec![key])
            .or_default()
            .insert(self.now, value);
    }

    fn read(&self, key: u8, at: Timestamp) -> Option<u8> {
        let hash = self.store.hash(TABLE, &[key]);
        let slot = self.store.find(hash, TABLE, &[key])?;
        self.store
            .value(self.store.version(slot, at).1)
            .map(|value| value[0])
    }

    fn intend(&mut self, key: u8, keep: bool) {
        self.now += 1;
        let head = Head {
            timestamp: self.now,
            holder: 0,
            priority: 0,
        };
        let slot = self.slot(key);
        self.store.intend(slot, head, Some(&[1, 2]));
        self.store.intend(slot, head, Some(&[key]));
        if keep {
            self.store.keep_intent(slot);
            self.slow
                .entry(vec![key])
                .or_default()
                .insert(self.now, Some(key));
        } else {
            self.store.drop_intent(slot);
        }
    }

    /// Keys from 2 to 8 whose rows a scan at this timestamp sees.
    fn keys(&mut self, at: Timestamp, direction: Direction) -> Vec<u8> {
        let range = Range {
            table: TABLE,
            start: &[2],
            end: Some(&[9]),
            direction,
            after: None,
            deleted_after: at,
            most: Order::CHUNK,
        };
        let slots = self.store.order(TABLE).range(&range);
        for &slot in &slots {
            match self.store.row(slot).visibility() {
                Visibility::Living => {}
                Visibility::Deleted(deleted) => assert!(deleted > at, "a step for nothing"),
                Visibility::Blank => panic!("nothing was ever there"),
            }
        }
        let rows = slots.into_iter();
        rows.filter(|&slot| !self.store.version(slot, at).1.is_none())
            .map(|slot| self.store.key(slot)[0])
            .collect()
    }

    /// The same by the obvious way.
    fn wanted_keys(&self, at: Timestamp, direction: Direction) -> Vec<u8> {
        let seen = |versions: &BTreeMap<Timestamp, Option<u8>>| {
            versions
                .range(..=at)
                .next_back()
                .is_some_and(|(_, value)| value.is_some())
        };
        let rows = self
            .slow
            .iter()
            .filter(|(key, versions)| (2..9).contains(&key[0]) && seen(versions));
        let mut keys: Vec<u8> = rows.map(|(key, _)| key[0]).collect();
        if direction == Direction::Backward {
            keys.reverse();
        }
        keys
    }
}

proptest! {
    #[test]
    fn it_reads_what_the_slow_one_reads(steps in prop::collection::vec(step(), 0..120), late: bool) {
        let slow = BTreeMap::new();
        let mut both = Both { store: Store::new(1), slow, now: 0, horizon: 0 };
        if !late {
            both.store.keep_order(TABLE);
        }
        for step in steps {
            match step {
                Step::Write(key, value) => both.write(key, value),
                Step::Intend(key, keep) => both.intend(key, keep),
                Step::Forget(back) => {
                    both.horizon = both.horizon.max(both.now.saturating_sub(u64::from(back)));
                    both.store.forget_before(both.horizon, usize::MAX, |_, _| {});
                }
                Step::Read(key, back) => {
                    let at = both.now.saturating_sub(u64::from(back)).max(both.horizon);
                    let versions = both.slow.get(&[key][..]);
                    let wanted = versions.and_then(|v| *v.range(..=at).next_back()?.1);
                    prop_assert_eq!(both.read(key, at), wanted);
                }
                Step::Scan(back, forward) => {
                    let at = both.now.saturating_sub(u64::from(back)).max(both.horizon);
                    let direction = if forward { Direction::Forward } else { Direction::Backward };
                    prop_assert_eq!(both.keys(at, direction), both.wanted_keys(at, direction));
                }
            }
        }
        for direction in [Direction::Forward, Direction::Backward] {
            prop_assert_eq!(both.keys(both.now, direction), both.wanted_keys(both.now, direction));
        }
    }

    #[test]
    fn what_is_all_deleted_takes_no_memory(keys in prop::collection::vec(0..20u8, 1..60)) {
        let slow = BTreeMap::new();
        let mut both = Both { store: Store::new(1), slow, now: 0, horizon: 0 };
        let empty = both.store.bytes();
        for &key in &keys {
            both.write(key, Some(1));
            both.intend(key, key % 2 == 0);
        }
        prop_assert!(both.store.bytes() > empty);
        for &key in &keys {
            both.write(key, None);
        }
        both.store.forget_before(Timestamp::MAX - 1, usize::MAX, |_, _| {});
        prop_assert_eq!(both.store.bytes(), empty);
    }

    #[test]
    fn a_deleted_row_goes_although_it_is_read_again_and_again(reads in prop::collection::vec(1..9u64, 1..20)) {
        let slow = BTreeMap::new();
        let mut both = Both { store: Store::new(1), slow, now: 0, horizon: 0 };
        let empty = both.store.bytes();
        both.write(3, Some(1));
        both.write(3, None);
        let slot = both.slot(3);
        let newest = both.now + reads.iter().max().copied().unwrap_or(0);
        for read in reads {
            both.store.note_read(slot, both.now + read);
        }
        let mut forgotten = Vec::new();
        both.store.forget_before(both.now, usize::MAX, |hash, read| forgotten.push((hash, read)));
        prop_assert_eq!(forgotten, vec![(both.store.hash(TABLE, &[3]), newest)]);
        prop_assert_eq!(both.store.bytes(), empty);
    }
}
