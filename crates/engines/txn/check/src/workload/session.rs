//! A running transaction that records its history as it goes.

use std::ops::Range;

use dyno_txn_api::{Change, Operations, Result, Scan, ScanRow, Tuple};

use super::tables::{self, BY_NUMBER, Tables};
use crate::history::{self, Key, Lookup, Op, Value};

/// Rows that one page of a scan may have. They are few, so that scans have to be continued.
const PAGE_ROWS: u32 = 3;
/// The most pages of a scan. More mean that it does not advance.
const PAGES_MAX: usize = 10_000;

/// Runs operations and records them: writes before they are sent, and reads once they are answered.
/// If the client dies in between, the history then claims no more than is known.
pub struct Session<'t> {
    operations: &'t mut dyn Operations,
    tables: Tables,
    by: u64,
    ops: Vec<Op>,
}

impl<'t> Session<'t> {
    /// A session for transaction `by`, whose operations go to `operations`.
    pub fn new(operations: &'t mut dyn Operations, tables: Tables, by: u64) -> Self {
        Self {
            operations,
            tables,
            by,
            ops: Vec::new(),
        }
    }

    /// The operations that were recorded so far.
    pub fn into_ops(self) -> Vec<Op> {
        self.ops
    }

    pub(super) fn read(&mut self, keys: &[Key]) -> Result<Vec<Option<Value>>> {
        let rows: Vec<_> = keys.iter().map(|&key| self.tables.key(key)).collect();
        let asked: Vec<_> = rows.iter().map(|row| (row.table, &*row.bytes)).collect();
        let answers = self.operations.get_many(&asked)?;
        let value = |(key, bytes): (&Key, Option<&[u8]>)| {
            bytes.map(|bytes| tables::value(key.table, bytes))
        };
        let values: Vec<_> = keys.iter().zip(answers.iter()).map(value).collect();
        for (&key, value) in keys.iter().zip(&values) {
            let value = value.clone();
            self.ops.push(Op::Read { key, value });
        }
        Ok(values)
    }

    pub(super) fn write(&mut self, rows: &[(Key, Option<i64>)]) -> Result<()> {
        let by = self.by;
        let mut writes = Vec::new();
        for &(key, n) in rows {
            let value = n.map(|n| Value::Register { n, by });
            self.ops.push(Op::Write { key, value });
            let change = match n {
                Some(n) => Change::Put(tables::register(n, by)),
                None => Change::Delete,
            };
            writes.push((self.tables.key(key), change));
        }
        self.operations.write_many(writes)
    }

    pub(super) fn insert(&mut self, key: Key, n: i64) -> Result<()> {
        let value = Some(Value::Register { n, by: self.by });
        self.ops.push(Op::Write { key, value });
        let row = self.tables.key(key);
        let change = Change::Insert(tables::register(n, self.by));
        self.operations.write(row.table, &row.bytes, change)?;
        // The success of the insert says that there was no row. The read comes before the write in
        // the history, as it does in the transaction.
        let before = self.ops.len() - 1;
        self.ops.insert(before, Op::Read { key, value: None });
        Ok(())
    }

    pub(super) fn add(&mut self, key: Key, amount: i64) -> Result<()> {
        self.ops.push(Op::Change { key });
        let row = self.tables.key(key);
        let change = Change::Update(tables::addition(amount, self.by));
        self.operations.write(row.table, &row.bytes, change)
    }

    pub(super) fn append(&mut self, key: Key, element: u64) -> Result<()> {
        let read = self.read(&[key])?.pop().flatten();
        let mut list = match read {
            Some(Value::List(list)) => list,
            _ => Vec::new(),
        };
        list.push(element);
        self.ops.push(Op::Append { key, element });
        let row = self.tables.key(key);
        let change = Change::Put(tables::list(&list));
        self.operations.write(row.table, &row.bytes, change)
    }

    pub(super) fn scan(
        &mut self,
        table: u32,
        range: Range<u64>,
        reverse: bool,
        limit: Option<usize>,
    ) -> Result<()> {
        let key = |id| Tuple::new().u64(id).finish();
        let scan = Scan::range(
            self.tables.id(table),
            key(range.start),
            Some(key(range.end)),
        );
        let scan = if reverse { scan.backward() } else { scan };
        let rows = self.pages(table, scan, limit)?;
        self.ops.push(Op::Scan(history::Scan {
            table,
            from: range.start,
            to: range.end,
            reverse,
            limit,
            rows,
        }));
        Ok(())
    }

    pub(super) fn lookup(&mut self, table: u32, range: Range<i64>) -> Result<()> {
        let key = |n| Tuple::new().i64(n).finish();
        let scan = Scan::range(
            self.tables.id(table),
            key(range.start),
            Some(key(range.end)),
        );
        let rows = self.pages(table, scan.index(BY_NUMBER), None)?;
        self.ops.push(Op::Lookup(Lookup {
            table,
            from: range.start,
            to: range.end,
            rows,
        }));
        Ok(())
    }

    /// Reads pages until the range is finished or there are enough rows.
    fn pages(&mut self, table: u32, scan: Scan, limit: Option<usize>) -> Result<Vec<(u64, Value)>> {
        let limit = limit.unwrap_or(usize::MAX);
        let mut rows = Vec::new();
        let mut next = None;
        for _ in 0..PAGES_MAX {
            let left = limit - rows.len();
            if left == 0 {
                return Ok(rows);
            }
            let mut page = scan.clone().limit(PAGE_ROWS.min(left.min(1 << 20) as u32));
            page.after = next;
            let page = self.operations.scan(&page)?;
            for ScanRow { key, value } in page.rows {
                rows.push((tables::number(&key)?, tables::value(table, &value)));
            }
            next = page.next;
            if next.is_none() {
                return Ok(rows);
            }
        }
        let text = format!("a scan of table {table} does not end after {PAGES_MAX} pages");
        Err(dyno_txn_api::Error::new(dyno_txn_api::Code::Damaged, text))
    }
}
