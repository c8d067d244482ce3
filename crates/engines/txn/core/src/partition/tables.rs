//! Creating tables, and keeping the oracle's bounds. Partition 0 assigns a table's number, and
//! tells the others once its own record of the table is durable. The table exists once all of them
//! have it.

use std::collections::BTreeSet;

use dyno_txn_api::{
    Code, Error, Partitioning, TABLE_BITS, Table, TableDef, TableId, Timestamp, index_id,
};

use super::{Partition, Timer};
use crate::message::{Address, Message, PartitionId};
use crate::oracle::Bound;
use crate::record::Record;

/// A table that is being created on all partitions.
#[derive(Debug)]
pub(super) struct NewTable {
    table: Table,
    missing: BTreeSet<PartitionId>,
    /// The clients that wait for it, with their tickets.
    clients: Vec<(Address, u64)>,
}

impl Partition {
    pub(super) fn create_table(&mut self, from: Address, ticket: u64, def: TableDef) {
        let refuse = |code, text: String| Message::Created {
            ticket,
            result: Err(Error::new(code, text)),
        };
        if self.config.id != 0 {
            let text = "only partition 0 creates tables".to_owned();
            return self.send(from, refuse(Code::BadArgument, text));
        }
        if let Err(error) = def.check() {
            return self.send(
                from,
                Message::Created {
                    ticket,
                    result: Err(error),
                },
            );
        }
        let id = match self.schema.named(&def.name) {
            Err(_) => self.schema.next(),
            Ok(id) if self.schema.table(id).is_ok_and(|old| **old == def) => id,
            Ok(_) => {
                let text = format!("table `{}` exists with another definition", def.name);
                return self.send(from, refuse(Code::TableExists, text));
            }
        };
        if id.0 >> TABLE_BITS != 0 {
            return self.send(
                from,
                refuse(Code::TooLarge, "all table numbers are in use".to_owned()),
            );
        }
        // Also for a table that exists here, because a crash may have come before all partitions
        // had it.
        let table = Table { id, def };
        self.store_table(&table);
        let missing = (0..self.config.partitions).collect();
        let new_table = self.new_tables.entry(id).or_insert(NewTable {
            table,
            missing,
            clients: Vec::new(),
        });
        new_table.clients.push((from, ticket));
        self.new_table_is_late(id);
    }

    /// Sends the table to the partitions that have not confirmed it, once it is durable here. If
    /// one had it before that, a crash here could free the number for another table, which that
    /// partition would then not take.
    pub(super) fn new_table_is_late(&mut self, id: TableId) {
        let Some(new_table) = self.new_tables.get(&id) else {
            return;
        };
        let table = new_table.table.clone();
        for partition in new_table.missing.clone() {
            let add = Message::AddTable {
                table: table.clone(),
            };
            self.send_after(self.pending.appended, Address::Partition(partition), add);
        }
        self.at(
            self.now.saturating_add(self.config.resend_ns),
            Timer::NewTable(id),
        );
    }

    pub(super) fn add_table(&mut self, from: Address, table: Table) {
        let id = table.id;
        self.store_table(&table);
        self.send_after(self.pending.appended, from, Message::TableAdded { id });
    }

    /// Logs and installs the table, unless its number is in use here.
    fn store_table(&mut self, table: &Table) {
        if self.schema.table(table.id).is_ok() {
            return;
        }
        self.append(|_, out| {
            Record::Schema {
                table: table.clone(),
            }
            .encode(out)
        });
        self.install_table(table.clone());
    }

    pub(super) fn install_table(&mut self, table: Table) {
        for index in 0..table.def.indexes.len() as u16 {
            self.store.keep_order(index_id(table.id, index));
        }
        if table.def.partitioning != (Partitioning::Hash { prefix: 0 }) {
            self.store.keep_order(table.id);
        }
        self.schema.add(table);
    }

    pub(super) fn table_added(&mut self, from: Address, id: TableId) {
        let (Address::Partition(from), Some(new_table)) = (from, self.new_tables.get_mut(&id))
        else {
            return;
        };
        new_table.missing.remove(&from);
        if !new_table.missing.is_empty() {
            return;
        }
        if let Some(new_table) = self.new_tables.remove(&id) {
            for (to, ticket) in new_table.clients {
                self.send(
                    to,
                    Message::Created {
                        ticket,
                        result: Ok(id),
                    },
                );
            }
        }
    }

    /// Keeps a bound for an oracle. A newer epoch fences the oracles before it. The bound itself
    /// only rises, across epochs too, because a predecessor may have issued timestamps up to it.
    pub(super) fn keep_bound(&mut self, from: Address, epoch: u64, bound: Timestamp) {
        if epoch >= self.bound.epoch {
            let timestamp = bound.max(self.bound.timestamp);
            let risen = Bound { epoch, timestamp };
            if risen != self.bound {
                self.bound = risen;
                let bound = timestamp;
                self.append(|_, out| Record::Bound { epoch, bound }.encode(out));
            }
        }
        let kept = Message::BoundKept {
            epoch: self.bound.epoch,
            bound: self.bound.timestamp,
        };
        self.send_after(self.pending.appended, from, kept);
    }
}

#[cfg(test)]
mod tests {
    use dyno_txn_api::Procedures;

    use super::*;
    use crate::{Config, Effects, Timestamps};

    struct NoTimestamps;

    impl Timestamps for NoTimestamps {
        fn next(&mut self) -> Option<Timestamp> {
            None
        }

        fn plausible(&mut self, _: Timestamp) -> bool {
            false
        }
    }

    #[test]
    fn other_partitions_hear_of_a_table_once_it_is_durable_at_the_first() {
        let config = Config::new(0, 2);
        let mut partition = Partition::new(config, Procedures::new(), Box::new(NoTimestamps));
        let mut effects = Effects::default();
        let def = TableDef::hash("t", 0);
        let create = Message::CreateTable {
            ticket: 1,
            def: def.clone(),
        };
        partition.handle(0, Address::Client(1), create, &mut effects);
        assert_eq!((effects.records.len(), effects.sends.len()), (1, 0));
        partition.durable(0, 1, &mut effects);
        let table = Table {
            id: TableId(1),
            def,
        };
        let add = Message::AddTable { table };
        assert_eq!(effects.sends, [(Address::Partition(1), add)]);
        assert_eq!(effects.records.len(), 1, "it is logged once");
    }
}
