//! Tables, which are looked up by name. Definitions never change, so they are read once and kept.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dyno_txn_api::{Code, Error, Result, Table, TableDef, TableId, prefix_end};
use parking_lot::{Mutex, MutexGuard};

use crate::client::Client;
use crate::layout;
use crate::proto::{Compare, KeyValue, PutRequest, RangeRequest, Request, TxnRequest};

/// How long creating or reading definitions may take.
const WAIT: Duration = Duration::from_secs(10);
/// How often other clients may create a table at the same moment before this one fails.
const TRIES: u32 = 20;

#[derive(Default)]
pub struct Catalogue(Mutex<BTreeMap<TableId, TableDef>>);

impl Catalogue {
    /// The definition of a table, if it was created or read before.
    pub fn known(&self, id: TableId) -> Option<TableDef> {
        self.lock().get(&id).cloned()
    }

    /// The definition of the table with this id.
    pub fn numbered(&self, client: &Client, id: TableId) -> Result<TableDef> {
        if let Some(def) = self.known(id) {
            return Ok(def);
        }
        self.all(client)?;
        self.known(id).ok_or_else(|| {
            let text = format!("table number {} does not exist", id.0);
            Error::new(Code::NoSuchTable, text)
        })
    }

    /// The table with this name.
    pub fn named(&self, client: &Client, name: &str) -> Result<Table> {
        let of_name = |tables: &BTreeMap<TableId, TableDef>| {
            let found = tables.iter().find(|(_, def)| def.name == name);
            found.map(|(id, def)| Table {
                id: *id,
                def: def.clone(),
            })
        };
        if let Some(table) = of_name(&self.lock()) {
            return Ok(table);
        }
        // The table may have been created by another client since the definitions were read.
        self.all(client)?;
        of_name(&self.lock())
            .ok_or_else(|| Error::new(Code::NoSuchTable, format!("table `{name}` does not exist")))
    }

    /// Reads the definitions of all tables from the cluster.
    pub fn all(&self, client: &Client) -> Result<Vec<Table>> {
        let range = RangeRequest {
            key: layout::CATALOGUE.to_vec(),
            range_end: prefix_end(layout::CATALOGUE).unwrap_or_default(),
            ..RangeRequest::default()
        };
        let found = client.range(range, Instant::now() + WAIT)?;
        let tables: Result<Vec<Table>> = found.kvs.iter().map(parse).collect();
        let tables = tables?;
        let mut known = self.lock();
        for Table { id, def } in &tables {
            known.insert(*id, def.clone());
        }
        Ok(tables)
    }

    /// Creates a table, or finds the one with the same definition.
    pub fn create(&self, client: &Client, def: &TableDef) -> Result<TableId> {
        def.check()?;
        let until = Instant::now() + WAIT;
        for _ in 0..TRIES {
            if let Some(table) = self
                .all(client)?
                .into_iter()
                .find(|t| t.def.name == def.name)
            {
                if table.def == *def {
                    return Ok(table.id);
                }
                let text = format!("table `{}` exists with another definition", def.name);
                return Err(Error::new(Code::TableExists, text));
            }
            if let Some(id) = add(client, def, until)? {
                self.lock().insert(id, def.clone());
                return Ok(id);
            }
        }
        let text = format!(
            "table `{}`: other clients created tables during all attempts",
            def.name
        );
        Err(Error::new(Code::Conflict, text))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TableId, TableDef>> {
        self.0.lock()
    }
}

/// Adds a table. Returns `None` if another client took the id or the name first.
fn add(client: &Client, def: &TableDef, until: Instant) -> Result<Option<TableId>> {
    let range = RangeRequest {
        key: layout::NUMBERS.to_vec(),
        ..RangeRequest::default()
    };
    let numbers = client.range(range, until)?.kvs.into_iter().next();
    let (last, revision) = match &numbers {
        Some(found) => (number(&found.value)?, found.mod_revision),
        None => (0, 0),
    };
    let id = last + 1;
    let name = layout::catalogue(&def.name);
    let value = [&id.to_be_bytes()[..], &def.to_bytes()].concat();
    let put = |key, value| Request::Put(PutRequest { key, value }).into();
    // Revision 0 means that the key does not exist. So the request succeeds only if no other client
    // has added a table of this name, and none has taken an id since it was read.
    let request = TxnRequest {
        compare: vec![
            Compare::unchanged(name.clone(), 0),
            Compare::unchanged(layout::NUMBERS.to_vec(), revision),
        ],
        success: vec![
            put(name, value),
            put(layout::NUMBERS.to_vec(), id.to_be_bytes().to_vec()),
        ],
    };
    let answer = client.write(request, until)?;
    Ok(answer.succeeded.then_some(TableId(id)))
}

fn parse(found: &KeyValue) -> Result<Table> {
    let Some((id, def)) = found.value.split_at_checked(4) else {
        return Err(Error::new(
            Code::Damaged,
            "a table's entry in etcd is too short",
        ));
    };
    Ok(Table {
        id: TableId(number(id)?),
        def: TableDef::from_bytes(def)?,
    })
}

fn number(bytes: &[u8]) -> Result<u32> {
    let bytes = bytes
        .try_into()
        .map_err(|_| Error::new(Code::Damaged, "a table's number in etcd is not of 4 bytes"))?;
    Ok(u32::from_be_bytes(bytes))
}
