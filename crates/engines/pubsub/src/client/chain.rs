//! A hash over what a producer with a name sent to a partition, so that other records under the
//! same name are not taken for those that are in the log already.

use crate::key;

/// A hash over records in their order, and the same hash after the 1st, 2nd, 4th, 8th... of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    /// How many records it covers.
    pub records: i64,
    /// The hash over all of them.
    pub hash: i64,
    /// The hash after 2^i records.
    pub marks: Vec<i64>,
}

impl Chain {
    /// Adds a record as it is stored, but for its time, which differs between two runs with the
    /// same lines.
    pub fn add(&mut self, encoded: &[u8]) {
        // FNV-1a, as for keys: the hash is stored, so it may not change with a library.
        let before = self.hash.to_le_bytes();
        self.hash = key::hash(before.iter().chain(encoded)).cast_signed();
        self.records += 1;
        if self.records.cast_unsigned().is_power_of_two() {
            self.marks.push(self.hash);
        }
    }

    /// Whether these records are the first ones of those that `sent` covers; `None` where only a
    /// later record will tell.
    pub fn is_of(&self, sent: &Chain) -> Option<bool> {
        // Only the hashes at powers of two are stored, because one for each record would grow with
        // the log. So a difference is found at the next of them, or at the end.
        if self.records == sent.records {
            return Some(self.hash == sent.hash);
        }
        if !self.records.cast_unsigned().is_power_of_two() {
            return None;
        }
        let at = self.marks.len() - 1;
        sent.marks.get(at).map(|mark| *mark == self.marks[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(records: &[&str]) -> Chain {
        let mut chain = Chain::default();
        records
            .iter()
            .for_each(|record| chain.add(record.as_bytes()));
        chain
    }

    #[test]
    fn other_records_are_found_at_the_next_mark_or_at_the_end() {
        let sent = chain(&["a", "b", "c", "d", "e", "f"]);
        assert_eq!(chain(&["a"]).is_of(&sent), Some(true));
        assert_eq!(chain(&["b"]).is_of(&sent), Some(false));
        assert_eq!(chain(&["a", "b", "x"]).is_of(&sent), None);
        assert_eq!(chain(&["a", "b", "x", "d"]).is_of(&sent), Some(false));
        assert_eq!(
            chain(&["a", "b", "c", "d", "e", "x"]).is_of(&sent),
            Some(false)
        );
        assert_eq!(
            chain(&["a", "b", "c", "d", "e", "f"]).is_of(&sent),
            Some(true)
        );
    }

    #[test]
    fn where_a_record_ends_counts() {
        assert_ne!(chain(&["ab", "c"]).hash, chain(&["a", "bc"]).hash);
    }
}
