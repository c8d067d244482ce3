//! One run of a one-shot against the rows of this partition and the rows fetched from others
//! before.
//!
//! A run may find that a row is missing, or that another transaction's intent is in its way. The
//! operation then returns an error, because a procedure cannot be stopped in the middle. What the
//! procedure makes of the error is ignored, the run's writes are undone, and it runs again from the
//! start when the row is there.

use dyno_txn_api::limits::check_key;
use dyno_txn_api::{
    Answer, Change, Code, Error, Key, Operation, Operations, Request, Result, Row, Rows, Scan,
    TableId,
};

use super::access::{ChangeRef, KeyRef, Stop};
use super::one_shot::OneShot;
use super::participant::Participant;
use super::prefetch::Use;
use super::{Partition, Position};
use crate::merge::merge;
use crate::message::{Head, PartitionId};
use crate::placement::{partition_of, partitions_of};
use crate::store::Slot;

/// How a run ended. Unless it is `Completed`, its writes were undone.
pub(super) enum Run {
    /// The run reached its end. `txn` has the intents in this partition, `remote` the writes for
    /// others, and `seen` is the record up to which the log must be durable before the client is
    /// answered.
    Completed {
        txn: Participant,
        answers: Vec<Answer>,
        returned: Vec<u8>,
        remote: Vec<(PartitionId, Key, Change)>,
        seen: Position,
    },
    /// The intent of another transaction at this row is in the way.
    Blocked(Slot),
    /// These operations must be run by other partitions first.
    Missing(Vec<(PartitionId, Operation)>),
    Failed(Error),
}

pub(super) struct Inline<'a> {
    partition: &'a mut Partition,
    one_shot: &'a OneShot,
    txn: Participant,
    remote: Vec<(PartitionId, Key, Change)>,
    missing: Vec<(PartitionId, Operation)>,
    blocked: Option<Slot>,
    failed: Option<Error>,
    seen: Position,
}

impl<'a> Inline<'a> {
    /// Runs the one-shot once, to its end.
    pub fn run(partition: &'a mut Partition, one_shot: &'a OneShot, head: Head) -> Run {
        let mut run = Inline {
            partition,
            one_shot,
            txn: Participant::new(head),
            remote: Vec::new(),
            missing: Vec::new(),
            blocked: None,
            failed: None,
            seen: 0,
        };
        let result = match &one_shot.request {
            Request::Operations(operations) => run.run(operations).map(|all| (all, Vec::new())),
            Request::Call {
                procedure,
                arguments,
                ..
            } => {
                let procedure = run.partition.procedures.get(procedure).cloned();
                let returned = procedure.and_then(|p| p.run(&mut run, arguments));
                returned.map(|returned| (Vec::new(), returned))
            }
        };
        // A procedure may have swallowed the error of a row that was not there, and returned a
        // result all the same. So what it returned counts only if nothing was missing, nothing was
        // in the way and no write failed.
        let stopped = run.blocked.is_some() || !run.missing.is_empty();
        match (result, run.failed) {
            (Ok((answers, returned)), None) if !stopped => Run::Completed {
                txn: run.txn,
                answers,
                returned,
                remote: run.remote,
                seen: run.seen,
            },
            (result, failed) => {
                // Its intents go even if it will run again, because it will then write them again.
                run.partition.settle(&run.txn.slots, false);
                if let Some(slot) = run.blocked {
                    return Run::Blocked(slot);
                }
                if stopped {
                    return Run::Missing(run.missing);
                }
                let wrong = || Error::new(Code::WriteFailed, "a write of the procedure failed");
                Run::Failed(failed.or(result.err()).unwrap_or_else(wrong))
            }
        }
    }

    /// The answer of one operation, or none if it must be fetched first.
    fn execute(&mut self, operation: &Operation) -> Result<Option<Answer>> {
        match operation {
            Operation::Get(key) => {
                let value = self.value(key.into())?;
                Ok(value.map(Answer::Value))
            }
            Operation::Write(key, change) => {
                self.write_row(key, change).map(|()| Some(Answer::Done))
            }
            Operation::Scan(scan) => Ok(self.page(scan)?.map(Answer::Page)),
        }
    }

    /// Writes a row. If that fails, the run fails with it, even if the procedure ignores the error:
    /// the transaction would otherwise commit without one of its writes.
    fn write_row(&mut self, key: &Key, change: &Change) -> Result<()> {
        let written = self.change(key, change);
        if let Err(error) = &written
            && self.blocked.is_none()
        {
            self.failed.get_or_insert_with(|| error.clone());
        }
        written
    }

    fn partition_of(&self, key: KeyRef<'_>) -> Result<PartitionId> {
        let def = self.partition.schema.table(key.table)?;
        Ok(partition_of(
            def,
            self.partition.config.partitions,
            key.bytes,
        ))
    }

    fn value(&mut self, key: KeyRef<'_>) -> Result<Option<Option<Vec<u8>>>> {
        let at = self.partition_of(key)?;
        if at != self.partition.config.id {
            return self.remote_value(at, &key.to_key());
        }
        let value = self.value_here(key)?;
        Ok(Some(value.map(Vec::from)))
    }

    fn value_here(&mut self, key: KeyRef<'_>) -> Result<Option<&[u8]>> {
        match self.partition.get(&self.txn.head, key) {
            Ok((value, seen)) => {
                self.seen = self.seen.max(seen);
                Ok(self.partition.store.value(value))
            }
            Err(stop) => Err(self.stopped(stop)),
        }
    }

    /// The value of another partition's row, with the writes of this run applied to it; none if it
    /// must be fetched first.
    fn remote_value(&mut self, at: PartitionId, key: &Key) -> Result<Option<Option<Vec<u8>>>> {
        let own = self.remote.iter().filter(|(_, other, _)| other == key);
        let own: Vec<&Change> = own.map(|(_, _, change)| change).collect();
        let mut value = match (self.one_shot.gets.get(key), own.first()) {
            (Some(value), _) => value.clone(),
            // A put, an insert or a delete says what the row is, whatever it was before. Only an
            // update needs it.
            (None, None | Some(Change::Update(_))) => {
                self.missing.push((at, Operation::Get(key.clone())));
                return Ok(None);
            }
            (None, Some(_)) => None,
        };
        for change in own {
            value = match change {
                Change::Put(new) | Change::Insert(new) => Some(new.clone()),
                Change::Delete => None,
                Change::Update(columns) => match &value {
                    Some(old) => Some(Row::parse(old)?.update(columns)?),
                    // There is no row to update, so its partition will vote against the
                    // transaction.
                    None => None,
                },
            };
        }
        Ok(Some(value))
    }

    fn change(&mut self, key: &Key, change: &Change) -> Result<()> {
        let at = self.partition_of(key.into())?;
        if at != self.partition.config.id {
            // Only collected here. Its partition checks the rest when it is asked for its vote.
            check_key(&key.bytes)?;
            self.remote.push((at, key.clone(), change.clone()));
            return Ok(());
        }
        self.partition.check_writer(&self.txn.head)?;
        match self
            .partition
            .write(&mut self.txn, key.into(), change.into())
        {
            Ok(seen) => {
                self.seen = self.seen.max(seen);
                self.txn.writes += 1;
                Ok(())
            }
            Err(stop) => Err(self.stopped(stop)),
        }
    }

    fn page(&mut self, scan: &Scan) -> Result<Option<dyno_txn_api::Page>> {
        let def = self.partition.schema.table(scan.table)?.clone();
        let asked = partitions_of(&def, self.partition.config.partitions, scan);
        let written = |at: &PartitionId| {
            let mut remote = self.remote.iter();
            remote.any(|(other, key, _)| other == at && key.table == scan.table)
        };
        // The other partition would not see this run's writes, which are sent to it only at the
        // end.
        if asked.iter().any(written) {
            let text = format!(
                "table `{}`: a scan after a write to it on another partition, in one request",
                def.name
            );
            return Err(Error::new(Code::NotSupported, text));
        }
        let mut parts = Vec::with_capacity(asked.len());
        let mut missing = false;
        for at in asked {
            if at == self.partition.config.id {
                match self.partition.scan(&self.txn.head, scan) {
                    Ok((part, seen)) => {
                        self.seen = self.seen.max(seen);
                        parts.push(part);
                    }
                    Err(stop) => return Err(self.stopped(stop)),
                }
                continue;
            }
            let mut pages = self.one_shot.pages.iter();
            match pages.find(|(from, other, _)| *from == at && other == scan) {
                Some((_, _, part)) => parts.push(part.clone()),
                None => {
                    // All partitions are looked at before the run stops, so that one round fetches
                    // every page.
                    missing = true;
                    self.missing.push((at, Operation::Scan(scan.clone())));
                }
            }
        }
        if missing {
            Ok(None)
        } else {
            merge(scan, parts).map(Some)
        }
    }

    fn stopped(&mut self, stop: Stop) -> Error {
        match stop {
            Stop::Failed(error) => error,
            Stop::Blocked(slot) => {
                self.blocked = Some(slot);
                will_rerun()
            }
        }
    }

    fn check_stopped(&self) -> Result<()> {
        match (&self.failed, self.blocked) {
            (Some(error), _) => Err(error.clone()),
            (None, Some(_)) => Err(will_rerun()),
            (None, None) => Ok(()),
        }
    }
}

/// The error for a procedure whose run cannot complete. It runs again later, and its result is
/// ignored.
fn will_rerun() -> Error {
    Error::new(
        Code::Conflict,
        "a row is not available yet: the procedure will run again",
    )
}

impl Operations for Inline<'_> {
    fn run(&mut self, operations: &[Operation]) -> Result<Vec<Answer>> {
        let mut answers = Vec::with_capacity(operations.len());
        let mut complete = true;
        for operation in operations {
            self.check_stopped()?;
            match self.execute(operation)? {
                Some(answer) => answers.push(answer),
                // The other operations run all the same, so that one round fetches everything that
                // is missing.
                None => complete = false,
            }
        }
        if complete {
            Ok(answers)
        } else {
            Err(will_rerun())
        }
    }

    fn table(&mut self, name: &str) -> Result<TableId> {
        self.partition.schema.named(name)
    }

    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.check_stopped()?;
        self.value(KeyRef { table, bytes: key })?
            .ok_or_else(will_rerun)
    }

    fn get_many(&mut self, keys: &[(TableId, &[u8])]) -> Result<Rows> {
        let keys = keys.iter().map(|&(table, bytes)| KeyRef { table, bytes });
        // The misses of one key have none to overlap with.
        if keys.len() > 1 {
            self.partition
                .prefetch_keys(keys.clone().map(|key| (key, Use::Read)));
        }
        let mut rows = Rows::with_capacity(keys.len());
        let mut complete = true;
        for key in keys {
            self.check_stopped()?;
            let at = self.partition_of(key)?;
            if at == self.partition.config.id {
                rows.push(self.value_here(key)?);
                continue;
            }
            match self.remote_value(at, &key.to_key())? {
                Some(value) => rows.push(value.as_deref()),
                None => complete = false,
            }
        }
        if complete {
            Ok(rows)
        } else {
            Err(will_rerun())
        }
    }

    fn write_then_get(
        &mut self,
        writes: Vec<(Key, Change)>,
        keys: &[(TableId, &[u8])],
    ) -> Result<Rows> {
        self.write_many(writes)?;
        self.get_many(keys)
    }

    fn write_many(&mut self, writes: Vec<(Key, Change)>) -> Result<()> {
        if writes.len() > 1 {
            let keys = writes.iter();
            let keys = keys.map(|(key, change)| (key.into(), ChangeRef::from(change).to_use()));
            self.partition.prefetch_keys(keys);
        }
        for (key, change) in &writes {
            self.check_stopped()?;
            self.write_row(key, change)?;
        }
        Ok(())
    }
}
