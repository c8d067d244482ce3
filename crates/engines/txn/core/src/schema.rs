//! The tables that a partition or a client knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use dyno_txn_api::{Code, Error, Result, Table, TableDef, TableId};

/// Tables by number and by name.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    tables: BTreeMap<TableId, Arc<TableDef>>,
    /// Tables with small numbers by number, because each operation looks one up.
    by_number: Vec<Option<Arc<TableDef>>>,
    by_name: BTreeMap<String, TableId>,
}

/// Table numbers below this are in `by_number`.
const SMALL: u32 = 1024;

impl Schema {
    /// The definition of a table; [`Code::NoSuchTable`] if the number is not in use.
    pub fn table(&self, id: TableId) -> Result<&Arc<TableDef>> {
        let small = self.by_number.get(id.0 as usize).and_then(Option::as_ref);
        small.or_else(|| self.tables.get(&id)).ok_or_else(|| {
            let text = format!("table number {} does not exist", id.0);
            Error::new(Code::NoSuchTable, text)
        })
    }

    /// The number of the table with this name; [`Code::NoSuchTable`] if no table has it.
    pub fn named(&self, name: &str) -> Result<TableId> {
        self.by_name
            .get(name)
            .copied()
            .ok_or_else(|| Error::new(Code::NoSuchTable, format!("table `{name}` does not exist")))
    }

    /// Adds a table, or replaces it.
    pub fn add(&mut self, table: Table) {
        let def = Arc::new(table.def);
        if table.id.0 < SMALL {
            let at = table.id.0 as usize;
            if at >= self.by_number.len() {
                self.by_number.resize(at + 1, None);
            }
            self.by_number[at] = Some(def.clone());
        }
        self.by_name.insert(def.name.clone(), table.id);
        self.tables.insert(table.id, def);
    }

    /// All tables, by number.
    pub fn list(&self) -> Vec<Table> {
        let tables = self.tables.iter().map(|(&id, def)| Table {
            id,
            def: (**def).clone(),
        });
        tables.collect()
    }

    /// The number for a new table: one above the largest.
    pub fn next(&self) -> TableId {
        TableId(self.tables.last_key_value().map_or(0, |(id, _)| id.0) + 1)
    }
}
