//! Judges scans and look-ups: the rows that they found, and those that they must not have missed.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Key, Lookup, Scan, Value};
use crate::verdict::Rule;

use super::Replay;
use super::model::{Overlay, Written};

impl Replay<'_> {
    /// Judges the shape of a scan, each row that it found, and the absence of each row that it did
    /// not find.
    pub(super) fn scan(&mut self, place: usize, overlay: &mut Overlay, scan: &Scan) {
        let ids: Vec<u64> = scan.rows.iter().map(|row| row.0).collect();
        let ordered = ids
            .windows(2)
            .all(|pair| (pair[0] < pair[1]) != scan.reverse && pair[0] != pair[1]);
        let within = ids.iter().all(|id| (scan.from..scan.to).contains(id));
        if !ordered || !within || scan.limit.is_some_and(|limit| ids.len() > limit) {
            let reader = self.transaction(place);
            self.verdict.add(Rule::ScanShape, || {
                format!("rows out of order, out of range or too many: {ids:?} in {reader}")
            });
        }
        let covered = scan.covered();
        let found: BTreeMap<u64, &Value> = scan.rows.iter().map(|row| (row.0, &row.1)).collect();
        let range = Key::new(scan.table, covered.start)..Key::new(scan.table, covered.end);
        // Rows that were written but not found are judged as reads of absence. Else a scan could
        // miss rows unnoticed.
        let mut keys: BTreeSet<Key> = self.model.keys(range.clone()).into_iter().collect();
        keys.extend(overlay.keys(range));
        keys.extend(found.keys().map(|&id| Key::new(scan.table, id)));
        for key in keys {
            self.read(place, overlay, key, found.get(&key.id).copied());
        }
    }

    /// Judges the order of a look-up, each row that it found, and that no other row has a value in
    /// the range.
    pub(super) fn lookup(&mut self, place: usize, overlay: &mut Overlay, lookup: &Lookup) {
        let number = |value: &Value| match value {
            Value::Register { n, .. } => Some(*n),
            _ => None,
        };
        let range = lookup.from..lookup.to;
        let places: Vec<_> = lookup
            .rows
            .iter()
            .map(|row| (number(&row.1), row.0))
            .collect();
        let ordered = places.windows(2).all(|pair| pair[0] < pair[1]);
        let within = places
            .iter()
            .all(|row| row.0.is_some_and(|n| range.contains(&n)));
        if !ordered || !within {
            let reader = self.transaction(place);
            self.verdict.add(Rule::ScanShape, || {
                format!("rows out of order or out of range: {places:?} in {reader}")
            });
        }
        let found: BTreeMap<u64, &Value> = lookup.rows.iter().map(|row| (row.0, &row.1)).collect();
        // Any row of the table may have the value, so all of them are judged.
        let table = Key::new(lookup.table, 0)..=Key::new(lookup.table, u64::MAX);
        let mut keys: BTreeSet<Key> = self.model.keys(table.clone()).into_iter().collect();
        keys.extend(overlay.keys(table));
        keys.extend(found.keys().map(|&id| Key::new(lookup.table, id)));
        for key in keys {
            let outside = |written: &Written| match written {
                Written::Is(Some(value)) => number(value).is_none_or(|n| !range.contains(&n)),
                _ => true,
            };
            match found.get(&key.id) {
                Some(&value) => self.read(place, overlay, key, Some(value)),
                None => self.not_found(place, overlay, key, outside),
            }
        }
    }

    /// Judges that a look-up did not find a row. At least one version that it may have seen must be
    /// outside of the range.
    fn not_found(
        &mut self,
        place: usize,
        overlay: &Overlay,
        key: Key,
        outside: impl Fn(&Written) -> bool,
    ) {
        if self.left_alone.contains(&key) {
            return;
        }
        let reader = self.transaction(place);
        let missed = match overlay.get(key) {
            Some(own) => !outside(own),
            // The value that a floating transaction left in a row is not known.
            None => !self.floating.touches(key, reader) && self.fitting(key, &outside).is_empty(),
        };
        if missed {
            let row = match overlay.get(key) {
                Some(own) => own.to_string(),
                None => self.expected(key),
            };
            self.verdict.add(Rule::StaleRead, || {
                format!("a look-up did not find {key}, which is {row}: {reader}")
            });
        }
    }
}
