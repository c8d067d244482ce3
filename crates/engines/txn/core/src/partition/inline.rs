//! One run of a one-shot against what is known: this partition's rows, and those fetched before.

use dyno_txn_api::limits::check_key;
use dyno_txn_api::{
    Answer, Change, Code, Error, Key, Operation, Operations, Request, Result, Row, Rows, Scan,
    TableId,
};

use super::access::{KeyRef, Stop};
use super::participant::Participant;
use super::shot::Shot;
use super::{Partition, Position};
use crate::merge::merge;
use crate::message::{Head, PartitionId};
use crate::placement::{partition_of, partitions_of};
use crate::store::Slot;

/// How a run went. But for `Through` it left nothing behind.
pub(super) enum Ran {
    /// To its end: `txn` has the intents here, `remote` the writes elsewhere.
    Through {
        txn: Participant,
        answers: Vec<Answer>,
        returned: Vec<u8>,
        remote: Vec<(PartitionId, Key, Change)>,
        seen: Position,
    },
    /// An intent is in the way.
    Blocked(Slot),
    /// This must be fetched first.
    Missing(Vec<(PartitionId, Operation)>),
    Failed(Error),
}

pub(super) struct Inline<'a> {
    partition: &'a mut Partition,
    shot: &'a Shot,
    txn: Participant,
    remote: Vec<(PartitionId, Key, Change)>,
    missing: Vec<(PartitionId, Operation)>,
    blocked: Option<Slot>,
    failed: Option<Error>,
    seen: Position,
}

impl<'a> Inline<'a> {
    pub fn run(partition: &'a mut Partition, shot: &'a Shot, head: Head) -> Ran {
        let mut run = Inline {
            partition,
            shot,
            txn: Participant::new(head),
            remote: Vec::new(),
            missing: Vec::new(),
            blocked: None,
            failed: None,
            seen: 0,
        };
        let result = match &shot.request {
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
        let stopped = run.blocked.is_some() || !run.missing.is_empty();
        match (result, run.failed) {
            (Ok((answers, returned)), None) if !stopped => Ran::Through {
                txn: run.txn,
                answers,
                returned,
                remote: run.remote,
                seen: run.seen,
            },
            (result, failed) => {
                run.partition.settle(&run.txn.slots, false);
                if let Some(slot) = run.blocked {
                    return Ran::Blocked(slot);
                }
                if stopped {
                    return Ran::Missing(run.missing);
                }
                let wrong = || Error::new(Code::WriteFailed, "a write failed");
                Ran::Failed(failed.or(result.err()).unwrap_or_else(wrong))
            }
        }
    }

    /// The answer, or nothing when it must be fetched first.
    fn one(&mut self, operation: &Operation) -> Result<Option<Answer>> {
        match operation {
            Operation::Get(key) => {
                let value = self.value(key.into())?;
                Ok(value.map(Answer::Value))
            }
            Operation::Write(key, change) => self.written(key, change).map(|()| Some(Answer::Done)),
            Operation::Scan(scan) => Ok(self.page(scan)?.map(Answer::Page)),
        }
    }

    /// Writes; one that fails dooms the run.
    fn written(&mut self, key: &Key, change: &Change) -> Result<()> {
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

    /// A row of another partition as the run's own writes left it.
    fn remote_value(&mut self, at: PartitionId, key: &Key) -> Result<Option<Option<Vec<u8>>>> {
        let own = self.remote.iter().filter(|(_, other, _)| other == key);
        let own: Vec<&Change> = own.map(|(_, _, change)| change).collect();
        let mut value = match (self.shot.gets.get(key), own.first()) {
            (Some(value), _) => value.clone(),
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
                    // Its partition will refuse the update, and with it the transaction.
                    None => None,
                },
            };
        }
        Ok(Some(value))
    }

    fn change(&mut self, key: &Key, change: &Change) -> Result<()> {
        let at = self.partition_of(key.into())?;
        if at != self.partition.config.id {
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
            let mut pages = self.shot.pages.iter();
            match pages.find(|(from, other, _)| *from == at && other == scan) {
                Some((_, _, part)) => parts.push(part.clone()),
                None => {
                    missing = true;
                    self.missing.push((at, Operation::Scan(scan.clone())));
                }
            }
        }
        match missing {
            true => Ok(None),
            false => merge(scan, parts).map(Some),
        }
    }

    fn stopped(&mut self, stop: Stop) -> Error {
        match stop {
            Stop::Failed(error) => error,
            Stop::Blocked(slot) => {
                self.blocked = Some(slot);
                again()
            }
        }
    }

    fn go_on(&self) -> Result<()> {
        match (&self.failed, self.blocked) {
            (Some(error), _) => Err(error.clone()),
            (None, Some(_)) => Err(again()),
            (None, None) => Ok(()),
        }
    }
}

/// What a procedure gets when it will run again; what it makes of it is not looked at.
fn again() -> Error {
    Error::new(
        Code::Conflict,
        "the procedure runs again when the row is there",
    )
}

impl Operations for Inline<'_> {
    fn run(&mut self, operations: &[Operation]) -> Result<Vec<Answer>> {
        let mut answers = Vec::with_capacity(operations.len());
        let mut whole = true;
        for operation in operations {
            self.go_on()?;
            match self.one(operation)? {
                Some(answer) => answers.push(answer),
                // The rest is looked at too, so that all that is missing is fetched at once.
                None => whole = false,
            }
        }
        match whole {
            true => Ok(answers),
            false => Err(again()),
        }
    }

    fn table(&mut self, name: &str) -> Result<TableId> {
        self.partition.schema.named(name)
    }

    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.go_on()?;
        self.value(KeyRef { table, bytes: key })?.ok_or_else(again)
    }

    fn get_many(&mut self, keys: &[(TableId, &[u8])]) -> Result<Rows> {
        let keys = keys.iter().map(|&(table, bytes)| KeyRef { table, bytes });
        self.partition
            .prefetch_keys(keys.clone().map(|key| (key, true)));
        let mut rows = Rows::with_capacity(keys.len());
        let mut whole = true;
        for key in keys {
            self.go_on()?;
            let at = self.partition_of(key)?;
            if at == self.partition.config.id {
                rows.push(self.value_here(key)?);
                continue;
            }
            match self.remote_value(at, &key.to_key())? {
                Some(value) => rows.push(value.as_deref()),
                None => whole = false,
            }
        }
        match whole {
            true => Ok(rows),
            false => Err(again()),
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
        let keys = writes.iter().map(|(key, _)| (key.into(), false));
        self.partition.prefetch_keys(keys);
        for (key, change) in &writes {
            self.go_on()?;
            self.written(key, change)?;
        }
        Ok(())
    }
}
