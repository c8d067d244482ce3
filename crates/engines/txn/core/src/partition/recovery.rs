//! From records back to a partition, and from a partition to a checkpoint.
//!
//! A checkpoint is records too. It need not stop the partition: rows are written as they are when their
//! turn comes, and the log from the checkpoint's begin on is read over it. Installing a version twice, or
//! an older one over a newer one, changes nothing, so both together give the newest versions.

use std::collections::BTreeSet;

use dyno_txn_api::{Code, Error, Result, Stamp, TableId};

use super::holder::{Holding, Reply, State};
use super::participant::Participant;
use super::{Partition, Timer};
use crate::effects::{Effects, Position};
use crate::message::Head;
use crate::planted::Bug;
use crate::record::{Kept, Record, Redo};
use crate::store::Slot;

/// Bytes of rows that one record of a checkpoint has, about.
const ROWS_BYTES: usize = 256 << 10;

/// A checkpoint that is being written.
#[derive(Debug)]
pub struct Checkpoint {
    next: Slot,
}

impl Partition {
    /// Applies a record of the checkpoint or, after those, of the log, in their order.
    pub fn restore(&mut self, record: &[u8]) -> Result<()> {
        match Record::decode(record)? {
            Record::Commit { stamp, writes } => {
                self.redo(stamp, writes);
                self.outcomes.insert(stamp, true);
            }
            Record::Rows { rows } => {
                for Kept { stamp, row } in rows {
                    self.redo(stamp, vec![row]);
                }
            }
            Record::Prepared { head, writes } => self.restore_prepared(head, writes),
            Record::Decided {
                stamp,
                participants,
                writes,
            } => {
                self.redo(stamp, writes);
                self.outcomes.insert(stamp, true);
                let head = Head {
                    stamp,
                    holder: self.config.id,
                    priority: 0,
                };
                let missing: BTreeSet<_> = participants.into_iter().collect();
                let (reply, until) = (Reply::None, u64::MAX);
                let state = State::Committed { missing };
                self.holdings.insert(
                    stamp,
                    Holding {
                        head,
                        state,
                        reply,
                        until,
                    },
                );
            }
            Record::Finalized { stamp, commit } => {
                self.saw(stamp);
                if let Some(txn) = self.participants.remove(&stamp) {
                    self.settle(&txn.slots, commit);
                }
            }
            Record::Ended { stamp } => {
                self.holdings.remove(&stamp);
            }
            Record::Schema { table } => {
                if self.schema.table(table.id).is_err() {
                    self.install_table(table);
                }
            }
            Record::Bound { epoch, bound } => self.bound = self.bound.max((epoch, bound)),
            Record::Floor { stamp } => self.saw(stamp),
        }
        Ok(())
    }

    /// The end of recovery. `floor` is a stamp that was given after the restart: nobody at or
    /// below it may write here, nor read what was forgotten. Then what was undecided is asked about.
    pub fn finish_recovery(&mut self, now: u64, floor: Stamp, effects: &mut Effects) -> Result<()> {
        if floor < self.newest {
            let newest = self.newest;
            let text = format!("floor {floor}: the log has stamp {newest}, a later one");
            return Err(Error::new(Code::BadArgument, text));
        }
        self.enter(now, effects);
        self.saw(floor);
        self.floor = floor;
        self.horizon = floor;
        self.reads.raise(floor);
        self.outcomes.forget_to(floor);
        self.append(|_, out| Record::Floor { stamp: floor }.encode(out));
        let (prepared, decided) = (self.participants.keys(), self.holdings.keys());
        let due: Vec<_> = prepared
            .map(|&stamp| Timer::Participant(stamp))
            .chain(decided.map(|&stamp| Timer::Holding(stamp)))
            .collect();
        for timer in due {
            self.at(self.now, timer);
        }
        self.leave(effects);
        Ok(())
    }

    /// The next record's number is one above this: call it before the first input when the log goes on.
    pub fn start_at(&mut self, position: Position) {
        self.held.appended = position;
        self.held.durable = position;
    }

    /// Begins a checkpoint: what is not rows, as records. The log from here on belongs to it.
    pub fn begin_checkpoint(&self, write: &mut dyn FnMut(&[u8])) -> Checkpoint {
        let mut records = Vec::new();
        for table in self.schema.list() {
            records.push(Record::Schema { table });
        }
        let (epoch, bound) = self.bound;
        records.push(Record::Bound { epoch, bound });
        records.push(Record::Floor { stamp: self.newest });
        let mut prepared: Vec<&Participant> = self.participants.values().collect();
        prepared.retain(|txn| txn.prepared && txn.head.holder != self.config.id);
        prepared.sort_by_key(|txn| txn.head.stamp);
        for txn in prepared {
            let writes = txn.slots.iter().map(|&slot| self.redo_of(slot)).collect();
            records.push(Record::Prepared {
                head: txn.head,
                writes,
            });
        }
        let mut holdings: Vec<&Holding> = self.holdings.values().collect();
        holdings.sort_by_key(|holding| holding.head.stamp);
        for holding in holdings {
            if let State::Committed { missing } = &holding.state {
                let (stamp, writes) = (holding.head.stamp, Vec::new());
                let participants = missing.iter().copied().collect();
                records.push(Record::Decided {
                    stamp,
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

    /// Writes some more rows, in one record; false when none are left.
    pub fn go_on_checkpoint(&self, at: &mut Checkpoint, write: &mut dyn FnMut(&[u8])) -> bool {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while at.next < self.store.slots() && bytes < ROWS_BYTES {
            if let Some(row) = self.store.live(at.next)
                && row.stamp != 0
            {
                let key = self.store.key(at.next).to_vec();
                let value = self.store.value(row.value).map(<[u8]>::to_vec);
                bytes += key.len() + value.as_ref().map_or(0, Vec::len) + 32;
                let row_ = Redo {
                    table: row.table,
                    key,
                    value,
                };
                rows.push(Kept {
                    stamp: row.stamp,
                    row: row_,
                });
            }
            at.next += 1;
        }
        if !rows.is_empty() {
            let mut bytes = Vec::new();
            Record::Rows { rows }.encode(&mut bytes);
            write(&bytes);
        }
        at.next < self.store.slots()
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

    fn saw(&mut self, stamp: Stamp) {
        self.newest = self.newest.max(stamp);
    }

    fn redo(&mut self, stamp: Stamp, writes: Vec<Redo>) {
        self.saw(stamp);
        for Redo { table, key, value } in writes {
            let slot = self.restored(table, &key);
            self.store.install(slot, stamp, value.as_deref());
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
        self.saw(head.stamp);
        if self.config.planted.has(Bug::Recovery) || self.participants.contains_key(&head.stamp) {
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
        self.participants.insert(head.stamp, txn);
    }
}
