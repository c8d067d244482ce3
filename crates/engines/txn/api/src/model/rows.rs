//! The rows of the model: a sorted map, and scans of it in the simplest way.

use std::collections::BTreeMap;

use crate::limits::{PAGE_BYTES_MAX, check_key, check_value};
use crate::{
    Change, Code, Continuation, Direction, Error, Key, Page, Result, Row, Scan, ScanRow, TableDef,
    TableId,
};

/// A row's place in the order of the scan, its key and its value.
type Placed<'a> = (Vec<u8>, &'a [u8], &'a [u8]);

#[derive(Debug, Default)]
pub(super) struct Rows(BTreeMap<(TableId, Vec<u8>), Vec<u8>>);

impl Rows {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        self.0.get(&(key.table, key.bytes.clone())).cloned()
    }

    pub fn set(&mut self, table: TableId, key: Vec<u8>, value: Option<Vec<u8>>) {
        match value {
            Some(value) => self.0.insert((table, key), value),
            None => self.0.remove(&(table, key)),
        };
    }

    /// Writes a row. Returns its old value.
    pub fn write(&mut self, def: &TableDef, key: &Key, change: &Change) -> Result<Option<Vec<u8>>> {
        check_key(&key.bytes)?;
        let old = self.get(key);
        let new = match (change, &old) {
            (Change::Put(value), _) | (Change::Insert(value), None) => Some(value.clone()),
            (Change::Insert(_), Some(_)) => {
                let text = format!(
                    "key {key:?} of table `{}`: the row exists already",
                    def.name
                );
                return Err(Error::new(Code::AlreadyExists, text));
            }
            (Change::Delete, _) => None,
            (Change::Update(columns), Some(old)) => Some(Row::parse(old)?.update(columns)?),
            (Change::Update(_), None) => {
                let text = format!(
                    "key {key:?} of table `{}`: the row does not exist",
                    def.name
                );
                return Err(Error::new(Code::NotFound, text));
            }
        };
        // Everything is checked before the row changes, so a refused write has no effect.
        if let Some(new) = &new {
            check_value(new)?;
            def.check_row(new)?;
            for index in 0..def.indexes.len() {
                def.index_key(index as u16, &key.bytes, new)?;
            }
        }
        self.set(key.table, key.bytes.clone(), new);
        Ok(old)
    }

    pub fn scan(&self, def: &TableDef, scan: &Scan) -> Result<Page> {
        scan.check(def.columns.len(), def.indexes.len())?;
        let mut page = Page::default();
        let mut bytes = 0;
        let mut last = None;
        // The bound is checked before a row is added, so that a page ends only where there is a
        // next row.
        for (place, key, value) in self.in_order(def, scan)? {
            if page.rows.len() == scan.page_rows() || bytes >= PAGE_BYTES_MAX {
                page.next = last.map(Continuation);
                break;
            }
            if let Some(kept) = scan.keep(value)? {
                bytes += key.len() + kept.len();
                let key = key.to_vec();
                page.rows.push(ScanRow { key, value: kept });
            }
            last = Some(place);
        }
        Ok(page)
    }

    /// All rows in the scan's range, in the scan's direction.
    fn in_order<'a>(&'a self, def: &TableDef, scan: &Scan) -> Result<Vec<Placed<'a>>> {
        let mut all = Vec::new();
        for ((table, key), value) in &self.0 {
            if *table != scan.table {
                continue;
            }
            let place = match scan.index {
                Some(index) => def.index_key(index, key, value)?,
                None => key.clone(),
            };
            let inside = place >= scan.start && scan.end.as_ref().is_none_or(|end| place < *end);
            let behind = scan
                .after
                .as_ref()
                .is_none_or(|after| match scan.direction {
                    Direction::Forward => place > after.0,
                    Direction::Backward => place < after.0,
                });
            if inside && behind {
                all.push((place, &**key, &**value));
            }
        }
        all.sort();
        if scan.direction == Direction::Backward {
            all.reverse();
        }
        Ok(all)
    }
}
