//! Draws keys and values from a seed, and checks what was read.

use super::K2Error;
use super::params::{K2Params, Keys};
use dyno_random::{Random, mix};

/// The shortest value: its key, the transaction that wrote it, and a mark over both.
pub(super) const VALUE_LEAST: usize = 24;
/// K2's keys: uniform below this.
const FRESH: u64 = 1 << 31;
/// The writer's number in rows that are loaded.
pub(super) const LOADER: u64 = 0;

/// A transaction, which may take several attempts.
#[derive(Debug, Clone, Default)]
pub(super) struct Transaction {
    /// Unique number, which the values that it writes carry.
    pub id: u64,
    pub writes: Vec<u64>,
    pub reads: Vec<u64>,
}

/// The transactions of one client, one after the other.
pub(super) struct Draw<'a> {
    params: &'a K2Params,
    random: Random,
    next: u64,
}

impl<'a> Draw<'a> {
    /// The transactions of `client`; equal seeds give equal transactions.
    pub fn new(params: &'a K2Params, client: u64) -> Draw<'a> {
        Draw {
            params,
            random: Random::new(mix(params.seed ^ mix(client))),
            next: mix(client) << 32,
        }
    }

    pub fn next(&mut self) -> Transaction {
        self.next += 1;
        let params = self.params;
        let (mut writes, mut reads) = (params.writes, params.reads);
        if params.either {
            match self.random.bits() >> 63 {
                0 => writes = 0,
                _ => reads = 0,
            }
        }
        let keys = self.keys(writes);
        let reads = match params.keys {
            Keys::Fresh => keys[..reads].to_vec(),
            Keys::Rows { .. } => self.keys(reads),
        };
        Transaction {
            id: self.next,
            writes: keys,
            reads,
        }
    }

    /// Draws `count` keys, all different.
    fn keys(&mut self, count: usize) -> Vec<u64> {
        let mut keys = Vec::with_capacity(count);
        // A table with few rows may not have `count` different ones, so attempts are bounded.
        for _ in 0..count * 64 {
            if keys.len() == count {
                break;
            }
            let key = self.key();
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    fn key(&mut self) -> u64 {
        let bits = self.random.bits();
        match self.params.keys {
            Keys::Fresh => bits % FRESH,
            Keys::Rows { rows, zipf: None } => bits % rows,
            // Hashed, so that the most frequent keys are not neighbours.
            Keys::Rows {
                rows,
                zipf: Some(zipf),
            } => mix(zipf.rank(bits)) % rows,
        }
    }
}

impl Transaction {
    /// Checks what it read, and returns a digest of that.
    pub fn verify(&self, params: &K2Params, read: &[Option<Vec<u8>>]) -> Result<u64, K2Error> {
        let (id, expected) = (self.id, self.reads.len());
        if read.len() != expected {
            let text = format!("transaction {id} read {} of {expected} rows", read.len());
            return Err(K2Error::Wrong(text));
        }
        let mut digest = 0u64;
        for (&key, value) in self.reads.iter().zip(read) {
            let writer = value
                .as_deref()
                .and_then(|value| written_by(params, key, value));
            // A transaction that reads a row it has written must see its own value. Any other row
            // may have been written by any transaction, but by one as a whole.
            let own = params.keys == Keys::Fresh || self.writes.contains(&key);
            match writer {
                Some(writer) if !own || writer == id => {
                    digest = digest.wrapping_add(mix(key ^ mix(writer)));
                }
                other => {
                    let text = format!(
                        "transaction {id} read of row {key} what {other:?} wrote, {} bytes",
                        value.as_ref().map_or(0, Vec::len)
                    );
                    return Err(K2Error::Wrong(text));
                }
            }
        }
        Ok(digest)
    }
}

/// The value that a transaction writes into a row: the key, the transaction's number, then a
/// pattern that depends on both.
pub(super) fn value(params: &K2Params, key: u64, id: u64) -> Vec<u8> {
    let mut value = Vec::with_capacity(params.value_bytes);
    value.extend_from_slice(&key.to_le_bytes());
    value.extend_from_slice(&id.to_le_bytes());
    let mark = mix(key ^ mix(id));
    value.resize(params.value_bytes - 8, mark as u8);
    value.extend_from_slice(&mark.to_le_bytes());
    value
}

/// The number of the transaction that wrote a value; `None` if any byte differs from what it would
/// have written.
fn written_by(params: &K2Params, key: u64, value: &[u8]) -> Option<u64> {
    let (of, rest) = value.split_first_chunk::<8>()?;
    let (id, rest) = rest.split_first_chunk::<8>()?;
    let (filler, mark) = rest.split_last_chunk::<8>()?;
    let id = u64::from_le_bytes(*id);
    let expected = mix(key ^ mix(id));
    let fine = value.len() == params.value_bytes
        && u64::from_le_bytes(*of) == key
        && u64::from_le_bytes(*mark) == expected
        && differences(filler, expected as u8) == 0;
    fine.then_some(id)
}

/// The bits in which any byte differs from `expected`. There is no branch per byte, because this is
/// timed.
fn differences(bytes: &[u8], expected: u8) -> u8 {
    let different = |so_far: u8, byte: u8| so_far | (byte ^ expected);
    bytes.iter().copied().fold(0, different)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::txn::k2::params::tests::params;

    #[test]
    fn a_value_names_row_and_writer_and_no_other_passes() {
        let params = params("all", 0);
        let mut value = value(&params, 7, 9);
        assert_eq!(value.len(), params.value_bytes);
        assert_eq!(written_by(&params, 7, &value), Some(9));
        assert_eq!(written_by(&params, 8, &value), None);
        assert_eq!(written_by(&params, 7, &value[..500]), None);
        value[100] ^= 1;
        assert_eq!(written_by(&params, 7, &value), None);
    }

    #[test]
    fn of_fresh_keys_only_own_writes_are_right() {
        let params = params("all", 0);
        let transaction = Draw::new(&params, 3).next();
        let (key, id) = (transaction.reads[0], transaction.id);
        let read = |writer| vec![Some(value(&params, key, writer))];
        assert!(transaction.verify(&params, &read(id)).is_ok());
        assert!(transaction.verify(&params, &read(id + 1)).is_err());
        assert!(transaction.verify(&params, &[None]).is_err());
        assert!(transaction.verify(&params, &[]).is_err());
    }

    #[test]
    fn zipf_prefers_few_rows_and_uniform_none() {
        for (theta, least, most) in [(99, 0.05, 0.2), (0, 0.0, 0.01)] {
            let params = params("1000", theta);
            let mut draw = Draw::new(&params, 1);
            let mut counts = std::collections::HashMap::new();
            for _ in 0..20_000 {
                let key = draw.key();
                assert!(key < 1000);
                *counts.entry(key).or_insert(0u32) += 1;
            }
            let top = f64::from(counts.values().copied().max().expect("some")) / 20_000.0;
            assert!((least..most).contains(&top), "theta {theta}: {top}");
        }
    }

    #[test]
    fn one_seed_is_one_sequence() {
        let params = params("all", 0);
        let first = |client| Draw::new(&params, client).next();
        assert_eq!(first(1).writes, first(1).writes);
        assert_ne!(first(1).writes, first(2).writes);
        assert_ne!(first(1).id, first(2).id);
    }
}
