//! Recovers a partition from its records, and writes checkpoints of it.
//!
//! A checkpoint consists of records too. The partition goes on while it is written: each row is
//! saved as it is when its turn comes, and recovery replays the log from the beginning of the
//! checkpoint over it. Both together give the newest versions, because installing a version twice,
//! or an older one over a newer one, changes nothing.

use std::collections::BTreeSet;

use dyno_txn_api::{Code, Error, Result, TableId, Timestamp};

use super::holder::{Reply, State, TxnRecord};
use super::participant::Participant;
use super::{Partition, Timer};
use crate::effects::{Effects, Position};
use crate::message::Head;
use crate::oracle::Bound;
use crate::planted::Bug;
use crate::record::{Record, Redo, RowVersion, begin_rows};
use crate::store::Slot;
use crate::wire::{Wire, write_bytes, write_optional};

/// Bytes of rows after which a record of a checkpoint ends.
const ROWS_BYTES: usize = 256 << 10;
/// How many rows ahead the checkpoint prefetches values.
const VALUES_AHEAD: Slot = 16;

/// How far a checkpoint has come.
#[derive(Debug)]
pub struct Checkpoint {
    next: Slot,
}

impl Partition {
    /// Applies one record. The records of the checkpoint come first, then those of the log, each in
    /// their order.
    ///
    /// # Errors
    /// Those of [`Record::decode`].
    pub fn restore(&mut self, record: &[u8]) -> Result<()> {
        match Record::decode(record)? {
            Record::Commit { timestamp, writes } => {
                self.redo(timestamp, writes);
                self.outcomes.insert(timestamp, true);
            }
            Record::Rows { rows } => {
                for RowVersion { timestamp, row } in rows {
                    self.redo(timestamp, vec![row]);
                }
            }
            Record::Prepared { head, writes } => self.restore_prepared(head, writes),
            Record::Decided {
                timestamp,
                participants,
                writes,
            } => {
                self.redo(timestamp, writes);
                self.outcomes.insert(timestamp, true);
                // The client was answered, or asks for the outcome. The participants may still have
                // intents: they are told to finalize until each has said that it did, however long
                // that takes.
                let head = Head {
                    timestamp,
                    holder: self.config.id,
                    priority: 0,
                };
                let missing: BTreeSet<_> = participants.into_iter().collect();
                let (reply, until) = (Reply::None, u64::MAX);
                let state = State::Committed { missing };
                self.txn_records.insert(
                    timestamp,
                    TxnRecord {
                        head,
                        state,
                        reply,
                        until,
                    },
                );
            }
            Record::Finalized { timestamp, commit } => {
                self.note_timestamp(timestamp);
                if let Some(txn) = self.participants.remove(&timestamp) {
                    self.settle(&txn.slots, commit);
                }
            }
            Record::Ended { timestamp } => {
                self.txn_records.remove(&timestamp);
            }
            Record::Schema { table } => {
                if self.schema.table(table.id).is_err() {
                    self.install_table(table);
                }
            }
            Record::Bound { epoch, bound } => {
                let timestamp = bound;
                self.bound = self.bound.max(Bound { epoch, timestamp });
            }
            Record::Floor { timestamp } => self.note_timestamp(timestamp),
        }
        Ok(())
    }

    /// Ends recovery. `floor` is a timestamp that the oracle issued after the restart. Older
    /// transactions may neither write here, because reads that would forbid it were lost with
    /// memory, nor read, because old versions were. What was undecided is then asked about.
    ///
    /// # Errors
    /// When the log has a later timestamp than `floor`.
    pub fn finish_recovery(
        &mut self,
        now: u64,
        floor: Timestamp,
        effects: &mut Effects,
    ) -> Result<()> {
        if floor < self.newest {
            let newest = self.newest;
            let text = format!("floor {floor}: the log has timestamp {newest}, a later one");
            return Err(Error::new(Code::BadArgument, text));
        }
        self.enter(now, effects);
        self.note_timestamp(floor);
        self.floor = floor;
        self.horizon = floor;
        self.reads.raise(floor);
        // A transaction at or below the floor that the log does not mention may have ended either
        // way.
        self.outcomes.forget_to(floor);
        self.append(|_, out| Record::Floor { timestamp: floor }.encode(out));
        let (prepared, decided) = (self.participants.keys(), self.txn_records.keys());
        let due: Vec<_> = prepared
            .map(|&timestamp| Timer::Participant(timestamp))
            .chain(decided.map(|&timestamp| Timer::TxnRecord(timestamp)))
            .collect();
        for timer in due {
            self.at(self.now, timer);
        }
        self.leave(effects);
        Ok(())
    }

    /// Numbers the next record one above `position`. To be called before the first input if the log
    /// goes on.
    pub fn start_at(&mut self, position: Position) {
        self.pending.appended = position;
        self.pending.durable = position;
    }

    /// Begins a checkpoint: writes everything that is not a row. Recovery needs the log from here
    /// on.
    pub fn begin_checkpoint(&self, write: &mut dyn FnMut(&[u8])) -> Checkpoint {
        let mut records = Vec::new();
        for table in self.schema.list() {
            records.push(Record::Schema { table });
        }
        records.push(Record::Bound {
            epoch: self.bound.epoch,
            bound: self.bound.timestamp,
        });
        records.push(Record::Floor {
            timestamp: self.newest,
        });
        let mut prepared: Vec<&Participant> = self.participants.values().collect();
        prepared.retain(|txn| txn.prepared && txn.head.holder != self.config.id);
        prepared.sort_by_key(|txn| txn.head.timestamp);
        // A vote is a promise to commit if the holder says so. Its record may be in the part of the
        // log that this checkpoint replaces, so it is written again.
        for txn in prepared {
            let writes = txn.slots.iter().map(|&slot| self.redo_of(slot)).collect();
            records.push(Record::Prepared {
                head: txn.head,
                writes,
            });
        }
        let mut txn_records: Vec<&TxnRecord> = self.txn_records.values().collect();
        txn_records.sort_by_key(|txn_record| txn_record.head.timestamp);
        for txn_record in txn_records {
            if let State::Committed { missing } = &txn_record.state {
                let (timestamp, writes) = (txn_record.head.timestamp, Vec::new());
                let participants = missing.iter().copied().collect();
                records.push(Record::Decided {
                    timestamp,
                    participants,
                    writes,
                });
            }
        }
        let mut bytes = Vec::new();
        for record in records {
            bytes.clear();
            record.encode(&mut bytes);
            write(&bytes);
        }
        Checkpoint { next: 0 }
    }

    /// Writes some more rows as one record, and returns whether any are left.
    ///
    /// Rows are encoded where they lie, because transactions wait meanwhile and would pay for a
    /// copy of each key and value.
    pub fn go_on_checkpoint(&self, at: &mut Checkpoint, write: &mut dyn FnMut(&[u8])) -> bool {
        let slots = self.store.slots();
        let mut bytes = Vec::with_capacity(ROWS_BYTES * 2);
        begin_rows(&mut bytes);
        let counted = bytes.len()..bytes.len() + size_of::<u32>();
        let mut rows = 0u32;
        rows.write(&mut bytes);
        while at.next < slots && bytes.len() < ROWS_BYTES {
            let ahead = at.next.saturating_add(VALUES_AHEAD);
            if self.store.live(ahead).is_some() {
                self.store.prefetch_value(ahead);
            }
            // A row without a version has only an intent, and those that were voted for are written
            // already.
            if let Some(row) = self.store.live(at.next)
                && row.timestamp != 0
            {
                rows += 1;
                row.timestamp.write(&mut bytes);
                row.table.write(&mut bytes);
                write_bytes(self.store.key(at.next), &mut bytes);
                write_optional(self.store.value(row.value), &mut bytes);
            }
            at.next += 1;
        }
        if rows > 0 {
            bytes[counted].copy_from_slice(&rows.to_le_bytes());
            write(&bytes);
        }
        at.next < slots
    }

    fn redo_of(&self, slot: Slot) -> Redo {
        let row = self.store.row(slot);
        let intent = self.store.intent(slot);
        let value = intent.and_then(|intent| self.store.value(intent.value));
        let (key, value) = (self.store.key(slot).to_vec(), value.map(<[u8]>::to_vec));
        Redo {
            table: row.table,
            key,
            value,
        }
    }

    fn note_timestamp(&mut self, timestamp: Timestamp) {
        self.newest = self.newest.max(timestamp);
    }

    fn redo(&mut self, timestamp: Timestamp, writes: Vec<Redo>) {
        self.note_timestamp(timestamp);
        for Redo { table, key, value } in writes {
            let slot = self.restored(table, &key);
            self.store.install(slot, timestamp, value.as_deref());
        }
    }

    fn restored(&mut self, table: TableId, key: &[u8]) -> Slot {
        let hash = self.store.hash(table, key);
        match self.store.find(hash, table, key) {
            Some(slot) => slot,
            None => self.store.add(hash, table, key, 0),
        }
    }

    fn restore_prepared(&mut self, head: Head, writes: Vec<Redo>) {
        self.note_timestamp(head.timestamp);
        if self.config.planted.has(Bug::Recovery) || self.participants.contains_key(&head.timestamp)
        {
            return;
        }
        let mut txn = Participant::new(head);
        txn.prepared = true;
        txn.writes = writes.len() as u32;
        txn.announced = Some(txn.writes);
        for Redo { table, key, value } in writes {
            let slot = self.restored(table, &key);
            self.store.intend(slot, head, value.as_deref());
            txn.slots.push(slot);
        }
        self.participants.insert(head.timestamp, txn);
    }
}

#[cfg(test)]
mod tests {
    use dyno_txn_api::Procedures;

    use super::*;
    use crate::{Config, Timestamps};

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
    fn rows_of_a_checkpoint_are_encoded_as_the_record_is() {
        let config = Config::new(0, 1);
        let mut partition = Partition::new(config, Procedures::new(), Box::new(NoTimestamps));
        let table = TableId(3);
        let redo = |key: &[u8], value: Option<&[u8]>| Redo {
            table,
            key: key.to_vec(),
            value: value.map(<[u8]>::to_vec),
        };
        let long = [7; 40];
        let rows = vec![
            (5, redo(b"a", Some(b"one"))),
            (6, redo(&long, Some(&[]))),
            (7, redo(b"gone", None)),
        ];
        for (timestamp, row) in rows.clone() {
            partition.redo(timestamp, vec![row]);
        }
        let mut records = Vec::new();
        let mut at = Checkpoint { next: 0 };
        let more = partition.go_on_checkpoint(&mut at, &mut |record| records.push(record.to_vec()));
        assert!(!more);
        let versions = rows
            .into_iter()
            .map(|(timestamp, row)| RowVersion { timestamp, row });
        let wanted = Record::Rows {
            rows: versions.collect(),
        };
        let mut bytes = Vec::new();
        wanted.encode(&mut bytes);
        assert_eq!(records, [bytes]);
    }
}
