//! A transaction: it reads at one revision, and keeps its writes to itself until it commits.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use dyno_txn_api::limits::{OPERATIONS_MAX, check_key, check_value};
use dyno_txn_api::{
    Answer, Change, Code, Continuation, Direction, Error, Key, Operation, Operations, Options,
    Page, Result, Row, Scan, ScanRow, TableDef, TableId, Timestamp, Transaction, index_id,
};

use crate::database::{Etcd, in_time};
use crate::layout;
use crate::proto::{KeyValue, RangeRequest, RangeResponse, SortOrder};

/// The most rows that a page requests. An answer has at most 64 MiB, so they may be 64 KiB long on
/// average.
const PAGE_ROWS: usize = 1_000;
/// If an answer is longer, so many times fewer rows are requested.
const FEWER: usize = 8;

/// A transaction that finds conflicts only when it commits.
pub struct Optimistic<'a> {
    pub(crate) db: &'a Etcd,
    pub(crate) until: Instant,
    read_only: bool,
    separate: bool,
    /// The most rows that a page requests: fewer once rows were found to be long.
    page_rows: usize,
    /// The revision at which everything is read; 0 before the first read.
    pub(crate) revision: i64,
    /// Keys that were read, with their value and the revision of their last change (0: absent).
    pub(crate) reads: BTreeMap<Vec<u8>, ReadVersion>,
    /// Ranges that were read, each with its first key and the key after its last one.
    pub(crate) ranges: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) writes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// The error after which the transaction cannot commit.
    pub(crate) doomed: Option<Error>,
}

/// A key as the transaction has read it.
pub(crate) struct ReadVersion {
    /// The revision of its last change; 0 if it does not exist.
    pub changed: i64,
    value: Option<Vec<u8>>,
}

impl<'a> Optimistic<'a> {
    pub fn begin(db: &'a Etcd, options: &Options) -> Optimistic<'a> {
        Optimistic {
            db,
            until: Instant::now() + options.deadline,
            read_only: options.read_only,
            separate: options.separate,
            page_rows: PAGE_ROWS,
            revision: 0,
            reads: BTreeMap::new(),
            ranges: Vec::new(),
            writes: BTreeMap::new(),
            doomed: None,
        }
    }

    /// Runs operations in order. Everything that must be read from etcd is fetched before, in as
    /// few round trips as possible.
    pub fn batch(&mut self, operations: &[Operation]) -> Result<Vec<Answer>> {
        if let Some(error) = &self.doomed {
            let text = format!("an earlier operation failed: {error}");
            return Err(Error::new(Code::WriteFailed, text));
        }
        let done = self.fetch_and_do(operations);
        if let Err(error) = &done
            && operations.iter().any(Operation::is_write)
        {
            self.doomed = Some(error.clone());
        }
        done
    }

    fn fetch_and_do(&mut self, operations: &[Operation]) -> Result<Vec<Answer>> {
        in_time(self.until)?;
        if operations.len() > OPERATIONS_MAX {
            let text = format!("{} operations: {OPERATIONS_MAX} at most", operations.len());
            return Err(Error::new(Code::TooLarge, text));
        }
        let mut defs = BTreeMap::new();
        for operation in operations {
            let table = operation.table();
            if let Entry::Vacant(vacant) = defs.entry(table) {
                vacant.insert(self.db.catalogue.numbered(&self.db.client, table)?);
            }
        }
        self.fetch_keys(operations, &defs)?;
        let mut pages = self.fetch_scans(operations, &defs)?.into_iter();
        let mut answers = Vec::with_capacity(operations.len());
        for operation in operations {
            answers.push(match operation {
                Operation::Get(key) => {
                    Answer::Value(self.value(&layout::row(key.table, &key.bytes)))
                }
                Operation::Write(key, change) => {
                    self.write(&defs[&key.table], key, change)?;
                    Answer::Done
                }
                Operation::Scan(scan) => {
                    let fetched = pages.next().unwrap_or_default();
                    Answer::Page(self.page(&defs[&scan.table], scan, fetched)?)
                }
            });
        }
        Ok(answers)
    }

    /// Fetches the keys that the operations need and the transaction has not read yet.
    fn fetch_keys(
        &mut self,
        operations: &[Operation],
        defs: &BTreeMap<TableId, TableDef>,
    ) -> Result<()> {
        let mut wanted = BTreeSet::new();
        for operation in operations {
            let key = match operation {
                Operation::Get(key) | Operation::Write(key, _) => key,
                Operation::Scan(_) => continue,
            };
            check_key(&key.bytes)?;
            // A write that replaces whatever is there needs the old row only for its index entries.
            if matches!(
                operation,
                Operation::Write(_, Change::Put(_) | Change::Delete)
            ) && defs[&key.table].indexes.is_empty()
            {
                continue;
            }
            let stored = layout::row(key.table, &key.bytes);
            if !self.reads.contains_key(&stored) && !self.writes.contains_key(&stored) {
                wanted.insert(stored);
            }
        }
        self.read_keys(wanted.into_iter().collect())
    }

    fn read_keys(&mut self, keys: Vec<Vec<u8>>) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let of_key = |key: &Vec<u8>| RangeRequest {
            key: key.clone(),
            ..RangeRequest::default()
        };
        let ranges = keys.iter().map(of_key).collect();
        let found = self
            .db
            .fetch(&mut self.revision, ranges, self.separate, self.until)?;
        for (key, found) in keys.into_iter().zip(found) {
            let version = match found.kvs.into_iter().next() {
                Some(row) => read_version(row),
                None => ReadVersion {
                    changed: 0,
                    value: None,
                },
            };
            self.reads.insert(key, version);
        }
        Ok(())
    }

    fn fetch_scans(
        &mut self,
        operations: &[Operation],
        defs: &BTreeMap<TableId, TableDef>,
    ) -> Result<Vec<RangeResponse>> {
        // Rows that this transaction has removed still come from etcd, and must not fill the page.
        let own = self.writes.len() + operations.iter().filter(|o| o.is_write()).count();
        let mut ranges = Vec::new();
        for operation in operations {
            if let Operation::Scan(scan) = operation {
                let def = &defs[&scan.table];
                scan.check(def.columns.len(), def.indexes.len())?;
                let (key, range_end) = bounds(scan);
                ranges.push(RangeRequest {
                    key,
                    range_end,
                    limit: (scan.page_rows().min(self.page_rows) + own) as i64,
                    revision: 0,
                    sort_order: match scan.direction {
                        Direction::Forward => SortOrder::None as i32,
                        Direction::Backward => SortOrder::Descend as i32,
                    },
                });
            }
        }
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        loop {
            let wanted = ranges.clone();
            let found = self
                .db
                .fetch(&mut self.revision, wanted, self.separate, self.until);
            let less = ranges.iter().any(|range| range.limit > 1);
            match found {
                // The rows are long. A page of fewer of them goes on after the last one.
                Err(error) if error.kind() == Code::TooLarge && less => {
                    self.page_rows = (self.page_rows / FEWER).max(1);
                    for range in &mut ranges {
                        range.limit = (range.limit / FEWER as i64).max(1);
                    }
                }
                found => return found,
            }
        }
    }

    /// The value of a key as the transaction sees it: its own write before what it read.
    fn value(&self, stored: &[u8]) -> Option<Vec<u8>> {
        match self.writes.get(stored) {
            Some(own) => own.clone(),
            None => self.reads.get(stored)?.value.clone(),
        }
    }

    fn write(&mut self, def: &TableDef, key: &Key, change: &Change) -> Result<()> {
        if self.read_only {
            return Err(Error::new(
                Code::ReadOnly,
                "a write in a transaction that was begun as read only",
            ));
        }
        let stored = layout::row(key.table, &key.bytes);
        let old = self.value(&stored);
        let new = match change {
            Change::Put(value) => Some(value.clone()),
            Change::Insert(value) if old.is_none() => Some(value.clone()),
            Change::Insert(_) => {
                let text = format!(
                    "key {key:?} of table `{}`: the row exists already",
                    def.name
                );
                return Err(Error::new(Code::AlreadyExists, text));
            }
            Change::Delete => None,
            Change::Update(assignments) => {
                let Some(old) = &old else {
                    let text = format!(
                        "key {key:?} of table `{}`: the row does not exist",
                        def.name
                    );
                    return Err(Error::new(Code::NotFound, text));
                };
                Some(Row::parse(old)?.update(assignments)?)
            }
        };
        if let Some(new) = &new {
            check_value(new)?;
            def.check_row(new)?;
        }
        // Index entries are keys of etcd, so they become part of the same commit as the row.
        for index in 0..def.indexes.len() as u16 {
            let entry = |value: &Option<Vec<u8>>| match value {
                Some(value) => def.index_key(index, &key.bytes, value).map(Some),
                None => Ok(None),
            };
            let (before, after) = (entry(&old)?, entry(&new)?);
            if before != after {
                let table = index_id(key.table, index);
                if let Some(before) = before {
                    self.writes.insert(layout::row(table, &before), None);
                }
                if let Some(after) = after {
                    self.writes
                        .insert(layout::row(table, &after), Some(Vec::new()));
                }
            }
        }
        self.writes.insert(stored, new);
        Ok(())
    }

    /// Builds a page from what etcd returned and the transaction's own writes.
    fn page(&mut self, def: &TableDef, scan: &Scan, fetched: RangeResponse) -> Result<Page> {
        let (start, end) = bounds(scan);
        if start >= end {
            return Ok(Page::default());
        }
        let more = fetched.more;
        let mut entries = BTreeMap::new();
        let mut reached = None;
        for row in fetched.kvs {
            reached = Some(row.key.clone());
            entries.insert(row.key.clone(), row.value.clone());
            // A key that was read before keeps what it had then. Both reads were at one revision,
            // so they agree.
            self.reads
                .entry(row.key.clone())
                .or_insert_with(|| read_version(row));
        }
        // Nothing is known about keys after the last one that was returned. Own writes there belong
        // to the next page, too.
        let backward = scan.direction == Direction::Backward;
        let (low, high) = match (&reached, more, backward) {
            (Some(last), true, false) => (start.clone(), after(last)),
            (Some(last), true, true) => (last.clone(), end.clone()),
            _ => (start.clone(), end.clone()),
        };
        self.ranges.push((low.clone(), high.clone()));
        for (key, own) in self.writes.range(low..high) {
            match own {
                Some(value) => entries.insert(key.clone(), value.clone()),
                None => entries.remove(key),
            };
        }
        let mut ordered: Vec<(Vec<u8>, Vec<u8>)> = entries.into_iter().collect();
        if backward {
            ordered.reverse();
        }
        // The page may have more rows than were requested, because the request made room for
        // removed rows.
        let cut = ordered.len() > scan.page_rows();
        ordered.truncate(scan.page_rows());
        let next = match (cut, more) {
            (true, _) => ordered.last().map(|(key, _)| key.clone()),
            (false, true) => reached,
            (false, false) => None,
        };
        Ok(Page {
            rows: self.rows(def, scan, ordered)?,
            next: next.map(|key| Continuation(layout::key_of(&key).to_vec())),
        })
    }

    /// The rows of a page's entries. For an index these are fetched by the keys in the entries.
    fn rows(
        &mut self,
        def: &TableDef,
        scan: &Scan,
        entries: Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<Vec<ScanRow>> {
        let mut rows = Vec::with_capacity(entries.len());
        let Some(index) = scan.index else {
            for (stored, value) in entries {
                if let Some(value) = scan.keep(&value)? {
                    let key = layout::key_of(&stored).to_vec();
                    rows.push(ScanRow { key, value });
                }
            }
            return Ok(rows);
        };
        let mut keys = Vec::with_capacity(entries.len());
        for (stored, _) in &entries {
            let key = def.key_of_entry(index, layout::key_of(stored))?;
            keys.push(layout::row(scan.table, key));
        }
        let unknown =
            |key: &&Vec<u8>| !self.reads.contains_key(*key) && !self.writes.contains_key(*key);
        self.read_keys(keys.iter().filter(unknown).cloned().collect())?;
        for stored in keys {
            let Some(row) = self.value(&stored) else {
                let text = format!(
                    "an index of table `{}` names a row that does not exist",
                    def.name
                );
                return Err(Error::new(Code::Damaged, text));
            };
            if let Some(value) = scan.keep(&row)? {
                let key = layout::key_of(&stored).to_vec();
                rows.push(ScanRow { key, value });
            }
        }
        Ok(rows)
    }
}

fn read_version(row: KeyValue) -> ReadVersion {
    ReadVersion {
        changed: row.mod_revision,
        value: Some(row.value),
    }
}

/// The range of stored keys that a scan still has to read, as the first key and the key after the
/// last one.
fn bounds(scan: &Scan) -> (Vec<u8>, Vec<u8>) {
    let table = match scan.index {
        Some(index) => index_id(scan.table, index),
        None => scan.table,
    };
    let start = layout::row(table, &scan.start);
    let end = match &scan.end {
        Some(end) => layout::row(table, end),
        None => layout::end_of(table),
    };
    match (&scan.after, scan.direction) {
        (None, _) => (start, end),
        (Some(last), Direction::Forward) => (after(&layout::row(table, &last.0)), end),
        (Some(last), Direction::Backward) => (start, layout::row(table, &last.0)),
    }
}

/// The first key after this one, in the order of bytes.
fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

impl Operations for Optimistic<'_> {
    fn run(&mut self, operations: &[Operation]) -> Result<Vec<Answer>> {
        self.batch(operations)
    }

    fn table(&mut self, name: &str) -> Result<TableId> {
        Ok(self.db.catalogue.named(&self.db.client, name)?.id)
    }
}

impl Transaction for Optimistic<'_> {
    fn commit(mut self: Box<Self>) -> Result<Option<Timestamp>> {
        self.finish()
    }

    fn rollback(self: Box<Self>) -> Result<()> {
        // Nothing was sent to the cluster before the commit, so there is nothing to undo.
        Ok(())
    }

    fn timestamp(&self) -> Option<Timestamp> {
        (self.revision > 0).then_some(self.revision as u64)
    }
}
