//! Judges one row that a transaction read.

use crate::history::{Key, Value, shown};
use crate::verdict::Rule;

use super::Replay;
use super::model::{Overlay, Written};
use super::writers::Origin;

impl Replay<'_> {
    /// Judges that the transaction at `place` read `seen` in a row.
    pub(super) fn read(
        &mut self,
        place: usize,
        overlay: &mut Overlay,
        key: Key,
        seen: Option<&Value>,
    ) {
        if self.left_alone.contains(&key) {
            if overlay.get(key).is_none() {
                // If the transaction happened, it appended to the list that it saw.
                overlay.insert(key, Written::Is(seen.cloned()));
            }
            return;
        }
        if let Some(own) = overlay.get(key) {
            // What is known of the own write may be less than what was read, for example of a list.
            if own.fits(seen) {
                overlay.insert(key, Written::Is(seen.cloned()));
                return;
            }
            let (own, reader) = (own.to_string(), self.transaction(place));
            self.verdict.add(Rule::OwnWrites, || {
                let seen = shown(seen);
                format!(
                    "T{} read {key} = {seen} after it had written {own}",
                    reader.id
                )
            });
            return;
        }
        let reader = self.transaction(place);
        if seen.is_none() && self.floating.may_delete(key, reader) {
            // It is not known when the row was deleted, so its absence proves nothing.
            return;
        }
        let timestamp = self.timestamp(place);
        let fitting = self.fitting(key, |written| written.fits(seen));
        let Some(&at) = fitting.first() else {
            if !self.float(place, key, seen) {
                self.mismatch(place, key, seen);
            }
            return;
        };
        let version = at.checked_sub(1).map(|at| &self.model.versions(key)[at]);
        self.floating.read(key, timestamp, version, place);
        // If two versions look alike, as two deletes do, it stays open which of them was seen.
        let certain = fitting.len() == 1;
        self.decide(place, key, at, certain);
        if certain {
            match at.checked_sub(1) {
                Some(at) => self.model.settle(key, at, Written::Is(seen.cloned())),
                None => self.model.forget(key),
            }
        }
    }

    /// The versions that fit, newest first, counted from 1; 0 is the absence below all of them.
    /// Versions that contradict what is known of an unknown outcome are returned only if nothing
    /// else fits, and [`Self::decide`] then reports them.
    pub(super) fn fitting(&self, key: Key, fits: impl Fn(&Written) -> bool) -> Vec<usize> {
        let agreeing = self.candidates(key, &fits, true);
        if agreeing.is_empty() {
            return self.candidates(key, &fits, false);
        }
        agreeing
    }

    fn candidates(&self, key: Key, fits: &dyn Fn(&Written) -> bool, agreeing: bool) -> Vec<usize> {
        let mut found = Vec::new();
        for (at, version) in self.model.versions(key).iter().enumerate().rev() {
            let decided = self.decided.get(&version.writer).map(|decided| decided.0);
            let happened = decided.filter(|_| version.maybe && agreeing);
            if happened != Some(false) && fits(&version.written) {
                found.push(at + 1);
            }
            // A version that certainly exists hides everything below it.
            if !version.maybe || happened == Some(true) {
                return found;
            }
        }
        if fits(&Written::Is(None)) {
            found.push(0);
        }
        found
    }

    /// Notes what a reader of version `at` proves: the versions above did not happen and, if it is
    /// certain which version was seen, its writer did. Reports a contradiction to an earlier proof.
    pub(super) fn decide(&mut self, place: usize, key: Key, at: usize, certain: bool) {
        let versions = self.model.versions(key);
        let above = versions[at..]
            .iter()
            .filter(|v| v.maybe)
            .map(|v| (v.writer, false));
        let seen = at.checked_sub(1).map(|at| &versions[at]);
        let seen = seen
            .filter(|v| v.maybe && certain)
            .map(|v| (v.writer, true));
        let news: Vec<(usize, bool)> = above.chain(seen).collect();
        for (writer, happened) in news {
            let (before, witness) = *self.decided.entry(writer).or_insert((happened, place));
            if before != happened {
                let all = &self.history.transactions;
                self.verdict.add(Rule::TornTransaction, || {
                    let (yes, no) = if happened {
                        (place, witness)
                    } else {
                        (witness, place)
                    };
                    format!(
                        "T{} happened in part: T{} saw it, T{} read {key} and did not: {}; {}; {}",
                        all[writer].id, all[yes].id, all[no].id, all[writer], all[yes], all[no]
                    )
                });
            }
        }
    }

    /// Reports a value that no version at the reader's timestamp explains, by the rule that its
    /// origin breaks.
    pub(super) fn mismatch(&mut self, place: usize, key: Key, seen: Option<&Value>) {
        let reader = self.transaction(place);
        let origin = self.writers.origin(self.history, key, seen);
        let expected = self.expected(key);
        let (rule, what) = match origin {
            Origin::Unwritten => (Rule::UnwrittenValue, "which was never written".to_owned()),
            Origin::Failed(by) => (
                Rule::AbortedRead,
                format!("which T{by} wrote, and T{by} failed"),
            ),
            Origin::Replaced(by) => (
                Rule::IntermediateRead,
                format!("which T{by} replaced before it committed"),
            ),
            Origin::At(by, Some(timestamp)) if Some(timestamp) > reader.timestamp => (
                Rule::FutureRead,
                format!("which T{by} wrote at the later timestamp {timestamp}"),
            ),
            Origin::At(by, _) => (Rule::StaleRead, format!("which T{by} wrote")),
            Origin::Absence => (Rule::StaleRead, "as if it were absent".to_owned()),
        };
        let timestamp = self.timestamp(place);
        self.verdict.add(rule, || {
            let (id, seen) = (reader.id, shown(seen));
            format!(
                "T{id} at timestamp {timestamp} read {key} = {seen}, {what}; at that timestamp it is {expected}"
            )
        });
    }

    pub(super) fn expected(&self, key: Key) -> String {
        let mut texts = Vec::new();
        for version in self.model.versions(key).iter().rev() {
            let by = self.transaction(version.writer).id;
            let holds = &version.written;
            texts.push(format!("{holds} (T{by}, timestamp {})", version.timestamp));
            if !version.maybe {
                return texts.join(", or ");
            }
        }
        texts.push("nothing".to_owned());
        texts.join(", or ")
    }
}
