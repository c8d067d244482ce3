//! The keys of the database as the commands of one batch see them: the stored rows with what
//! earlier commands of the batch have changed, at one moment of the clock.
//!
//! Rows are written at the end of the batch, each once, however many commands have changed it. Two
//! rules of the engine ask for this: a transaction that has written may not scan any more, and all
//! rows of other partitions should be requested in one round.

use std::collections::BTreeMap;

use dyno_txn_api::limits::OPERATIONS_MAX;
use dyno_txn_api::{Change, Code, Error, Key, Operations, Result, TableId};

use crate::row::{Row, Value, row_key};

/// Rows that are read or written in one call, within what the engine takes.
const ROWS_AT_ONCE: usize = OPERATIONS_MAX / 2;
/// Bytes of values that one batch may set. Without this bound it could make the server hold any
/// amount: a command of some bytes, such as `SETRANGE`, can set a value of a mebibyte.
const SET_BYTES_MAX: usize = 256 << 20;

/// The keys as one batch sees them.
pub struct Keyspace<'a> {
    pub(crate) transaction: &'a mut dyn Operations,
    pub(crate) table: TableId,
    /// Partitions of the database.
    pub(crate) partitions: u32,
    /// The clock of the batch, in milliseconds since 1970.
    pub now_ms: u64,
    /// The version that the next write gets.
    next_version: u64,
    /// In a tree, because most batches name one key or a few.
    pub(crate) entries: BTreeMap<Vec<u8>, Entry>,
    /// Keys that were set or removed since the last call of [`Keyspace::take_touched`]; `None` if
    /// nothing is watched.
    touched: Option<Vec<Vec<u8>>>,
    /// Bytes of the values that the batch has set: the sum over all entries.
    set_bytes: usize,
}

/// A key that the batch has read or written.
pub(crate) struct Entry {
    /// What the key is now; `None` if it is absent or expired.
    pub row: Option<Row>,
    /// Whether a row is stored, be it an expired one.
    pub is_stored: bool,
    /// Whether the row has to be written.
    pub is_changed: bool,
    /// Bytes of the value, if the batch has set it.
    pub set_bytes: usize,
}

impl<'a> Keyspace<'a> {
    /// The keys at a moment. Versions from `next_version` on must not have been used before.
    pub fn new(
        transaction: &'a mut dyn Operations,
        table: TableId,
        partitions: u32,
        now_ms: u64,
        next_version: u64,
    ) -> Self {
        Self {
            transaction,
            table,
            partitions,
            now_ms,
            next_version,
            entries: BTreeMap::new(),
            touched: None,
            set_bytes: 0,
        }
    }

    /// The keys that were set or removed since the last call, which begins to note them.
    pub fn take_touched(&mut self) -> Vec<Vec<u8>> {
        self.touched.replace(Vec::new()).unwrap_or_default()
    }

    /// Notes that a key counts as changed for those who watch it.
    pub fn touch(&mut self, key: &[u8]) {
        if let Some(touched) = &mut self.touched {
            touched.push(key.to_vec());
        }
    }

    /// Reads rows that are not known yet in one call.
    pub fn load<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>) -> Result<()> {
        let mut wanted: Vec<&[u8]> = keys
            .filter(|key| !self.entries.contains_key(*key))
            .collect();
        if wanted.len() > 1 {
            wanted.sort_unstable();
            wanted.dedup();
        }
        for wanted in wanted.chunks(ROWS_AT_ONCE) {
            let row_keys: Vec<Vec<u8>> = wanted.iter().map(|key| row_key(key)).collect();
            let gets = row_keys.iter().map(|key| (self.table, &key[..]));
            let rows = self.transaction.get_many(&gets.collect::<Vec<_>>())?;
            for (at, key) in wanted.iter().enumerate() {
                let entry = entry(rows.get(at), self.now_ms)?;
                self.entries.insert(key.to_vec(), entry);
            }
        }
        Ok(())
    }

    fn entry(&mut self, key: &[u8]) -> Result<&mut Entry> {
        if !self.entries.contains_key(key) {
            self.load(std::iter::once(key))?;
        }
        let missing = || Error::new(Code::Damaged, "a row that was read is not there");
        self.entries.get_mut(key).ok_or_else(missing)
    }

    /// The row of a key; `None` if the key is absent or expired.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<&Row>> {
        Ok(self.entry(key)?.row.as_ref())
    }

    /// The version of a key, or 0 if it is absent, for `WATCH`.
    pub fn version(&mut self, key: &[u8]) -> Result<u64> {
        Ok(self.get(key)?.map_or(0, |row| row.version))
    }

    /// Takes the row of a key out, to be changed and put back.
    pub fn take(&mut self, key: &[u8]) -> Result<Option<Row>> {
        Ok(self.entry(key)?.row.take())
    }

    /// Puts back a row that was taken and not changed.
    pub fn restore(&mut self, key: &[u8], row: Option<Row>) -> Result<()> {
        self.entry(key)?.row = row;
        Ok(())
    }

    /// Sets a key.
    ///
    /// # Errors
    /// Also if the batch has set too much by then, which ends all of it.
    pub fn put(&mut self, key: &[u8], value: Value, expires_at: Option<u64>) -> Result<()> {
        let bytes = value.content().len();
        let version = self.next_version;
        self.next_version += 1;
        self.touch(key);
        let entry = self.entry(key)?;
        let before = std::mem::replace(&mut entry.set_bytes, bytes);
        entry.is_changed = true;
        entry.row = Some(Row {
            value,
            expires_at,
            version,
        });
        self.set_bytes = self.set_bytes - before + bytes;
        if self.set_bytes > SET_BYTES_MAX {
            let text = format!("one transaction sets values of more than {SET_BYTES_MAX} bytes");
            return Err(Error::new(Code::TooLarge, text));
        }
        Ok(())
    }

    /// Removes a key. Returns whether it was there.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool> {
        let entry = self.entry(key)?;
        let was_there = entry.row.take().is_some();
        entry.is_changed |= was_there;
        let freed = std::mem::take(&mut entry.set_bytes);
        self.set_bytes -= freed;
        if was_there {
            self.touch(key);
        }
        Ok(was_there)
    }

    /// Removes a key whose row a scan has just found, or that this batch has set.
    pub fn remove_found(&mut self, key: Vec<u8>) {
        self.touch(&key);
        let old = self.entries.get(&key);
        let is_stored = old.is_none_or(|entry| entry.is_stored);
        self.set_bytes -= old.map_or(0, |entry| entry.set_bytes);
        let gone = Entry {
            row: None,
            is_stored,
            is_changed: true,
            set_bytes: 0,
        };
        self.entries.insert(key, gone);
    }

    /// Whether this batch has written or removed a key.
    pub fn is_changed(&self, key: &[u8]) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.is_changed)
    }

    /// Hands all changes to the engine.
    pub fn write_back(self) -> Result<()> {
        let mut writes = Vec::new();
        for (key, entry) in self.entries {
            let change = match (entry.is_changed, entry.row, entry.is_stored) {
                (true, Some(row), _) => Change::Put(row.encode()),
                (true, None, true) => Change::Delete,
                // Nothing has changed, or a key came and went within the batch.
                _ => continue,
            };
            writes.push((Key::new(self.table, row_key(&key)), change));
        }
        while !writes.is_empty() {
            let rest = writes.split_off(writes.len().min(ROWS_AT_ONCE));
            self.transaction
                .write_many(std::mem::replace(&mut writes, rest))?;
        }
        Ok(())
    }
}

fn entry(stored: Option<&[u8]>, now_ms: u64) -> Result<Entry> {
    let row = match stored {
        None => None,
        Some(bytes) => Some(Row::decode(bytes).ok_or_else(unreadable)?),
    };
    Ok(Entry {
        row: row.filter(|row| !row.is_expired(now_ms)),
        is_stored: stored.is_some(),
        is_changed: false,
        set_bytes: 0,
    })
}

/// The error for a row that another version of this program, or another program, has written.
pub fn unreadable() -> Error {
    Error::new(Code::Damaged, "a row of table `resp` cannot be read")
}
