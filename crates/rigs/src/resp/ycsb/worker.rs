//! A client of YCSB: one connection with one operation under way.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dyno_measure::{Clock, Latencies, SystemClock};
use dyno_random::mix;
use dyno_redis::{Client, Value};

use super::mix::{Draw, Mix, Operation, Population, law};
use super::records::{self, FIELDS, LOADER, Version};
use crate::Windows;
use crate::resp::{RespError, connect};
use crate::zipf::Zipf;

/// Bits of a writer's number that count its client's writes.
const SEQUENCE_BITS: u32 = 40;
/// Attempts of one modification. Each fails only because another one succeeded.
const TRIES_MAX: u32 = 10_000;

/// What all clients of a run share.
pub struct Shared {
    pub port: u16,
    pub mix: Mix,
    pub clock: SystemClock,
    /// The records that are there before the run.
    pub records: u64,
    pub population: Population,
    zipf: Zipf,
    /// How many writes each client has begun: a value of a later one cannot have been read.
    begun: Vec<AtomicU64>,
}

impl Shared {
    pub fn new(port: u16, mix: Mix, records: u64, clients: usize) -> Shared {
        Shared {
            port,
            mix,
            clock: SystemClock::start(),
            records,
            population: Population::new(records),
            zipf: law(mix, records),
            begun: (0..clients).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Checks that a value which was read comes from a write that had begun.
    fn check(&self, record: u64, version: Version) -> Result<(), RespError> {
        let fine = match version.writer {
            LOADER => record < self.records,
            writer => {
                let client = (writer >> SEQUENCE_BITS) as usize - 1;
                let begun = self.begun.get(client);
                let begun = begun.map_or(0, |begun| begun.load(Ordering::Acquire));
                writer & ((1 << SEQUENCE_BITS) - 1) <= begun
            }
        };
        let text = || format!("record {record} has a value of {version:?}, which was not begun");
        fine.then_some(()).ok_or_else(|| RespError::Wrong(text()))
    }
}

/// A write that was acknowledged.
#[derive(Debug, Clone, Copy)]
pub struct Write {
    pub record: u64,
    pub field: usize,
    pub version: Version,
    pub began_ns: u64,
    pub ended_ns: u64,
}

/// What a client counted.
pub struct ClientCounts {
    pub operations: u64,
    /// Modifications that were done again, because another client had written in between.
    pub retries: u64,
    pub seconds: f64,
    /// From the beginning of an operation to its last reply, by its name; all of them together
    /// without one.
    pub latencies: BTreeMap<&'static str, Latencies>,
    pub windows: Windows,
    /// A sum over all versions that were read.
    pub digest: u64,
}

impl ClientCounts {
    pub fn new(measured: Duration) -> ClientCounts {
        ClientCounts {
            operations: 0,
            retries: 0,
            seconds: 0.0,
            latencies: BTreeMap::new(),
            windows: Windows::over(measured),
            digest: 0,
        }
    }

    pub fn add(&mut self, other: &ClientCounts) -> Result<(), RespError> {
        self.operations += other.operations;
        self.retries += other.retries;
        self.seconds = self.seconds.max(other.seconds);
        self.windows.add(&other.windows);
        for (name, latencies) in &other.latencies {
            self.entry(name)?.add(latencies)?;
        }
        Ok(())
    }

    fn entry(&mut self, name: &'static str) -> Result<&mut Latencies, RespError> {
        Ok(match self.latencies.entry(name) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Latencies::new()?),
        })
    }
}

/// One client.
pub struct Worker<'a> {
    shared: &'a Shared,
    number: usize,
    client: Client,
    draw: Draw,
    /// Its writes, in their order.
    pub log: Vec<Write>,
}

impl<'a> Worker<'a> {
    /// Connects the client with this number, counted from 0.
    pub fn new(shared: &'a Shared, number: usize, seed: u64) -> Result<Worker<'a>, RespError> {
        let seed = mix(seed ^ mix(number as u64));
        Ok(Worker {
            shared,
            number,
            client: connect(shared.port)?,
            draw: Draw::new(shared.mix, shared.zipf, seed),
            log: Vec::new(),
        })
    }

    /// Does operations for so long, or so many of them.
    pub fn run(&mut self, measured: Duration, most: u64) -> Result<ClientCounts, RespError> {
        let clock = &self.shared.clock;
        let mut counts = ClientCounts::new(measured);
        let from_ns = clock.now_ns();
        let until_ns = from_ns.saturating_add(measured.as_nanos() as u64);
        let mut began_ns = from_ns;
        while began_ns < until_ns && counts.operations < most {
            let operation = self.draw.next(&self.shared.population);
            self.carry_out(operation, &mut counts)?;
            let ended_ns = clock.now_ns();
            counts
                .entry(operation.name())?
                .record(ended_ns - began_ns)?;
            counts.windows.count(ended_ns - from_ns, 1);
            counts.operations += 1;
            began_ns = ended_ns;
        }
        counts.seconds = (began_ns - from_ns) as f64 / 1e9;
        Ok(counts)
    }

    fn carry_out(
        &mut self,
        operation: Operation,
        counts: &mut ClientCounts,
    ) -> Result<(), RespError> {
        match operation {
            Operation::Read(record) => {
                let reply = self.client.ask(&["HGETALL", &records::key(record)])?;
                self.take(record, &reply, counts)?;
            }
            Operation::Update(record, field) => {
                self.write(record, field..field + 1)?;
            }
            Operation::Insert(record) => {
                self.write(record, 0..FIELDS)?;
                self.shared.population.acknowledge(record);
            }
            Operation::Modify(record, field) => {
                let mut tries = 0;
                while !self.modify(record, field, counts)? {
                    counts.retries += 1;
                    tries += 1;
                    if tries == TRIES_MAX {
                        let text = format!("record {record} was modified by none of {tries} tries");
                        return Err(RespError::Wrong(text));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks a record that was read.
    fn take(
        &self,
        record: u64,
        reply: &Value,
        counts: &mut ClientCounts,
    ) -> Result<[Version; FIELDS], RespError> {
        let versions = records::read(record, reply)?;
        for version in versions {
            self.shared.check(record, version)?;
            let one = mix(record ^ mix(version.writer ^ mix(version.modified)));
            counts.digest = counts.digest.wrapping_add(one);
        }
        Ok(versions)
    }

    /// Writes fields without having read them.
    fn write(&mut self, record: u64, fields: std::ops::Range<usize>) -> Result<(), RespError> {
        let version = Version {
            writer: self.writer(),
            modified: 0,
        };
        let began_ns = self.shared.clock.now_ns();
        let reply = self
            .client
            .ask(&records::write(record, fields.clone(), version))?;
        expect(&reply, "OK")?;
        for field in fields {
            self.note(record, field, version, began_ns);
        }
        Ok(())
    }

    /// Reads a record, and writes a field of it if nothing has changed the record meanwhile.
    /// Returns whether it was written.
    ///
    /// YCSB's own clients write without looking, so two that modify one record may lose one of
    /// their changes, and nothing could be added up.
    fn modify(
        &mut self,
        record: u64,
        field: usize,
        counts: &mut ClientCounts,
    ) -> Result<bool, RespError> {
        let key = records::key(record);
        self.client.push(&["WATCH", &key]);
        self.client.push(&["HGETALL", &key]);
        self.client.send()?;
        expect(&self.client.reply()?, "OK")?;
        let reply = self.client.reply()?;
        let versions = self.take(record, &reply, counts)?;
        let version = Version {
            writer: self.writer(),
            modified: versions[field].modified + 1,
        };
        let began_ns = self.shared.clock.now_ns();
        self.client.push(&["MULTI"]);
        self.client
            .push(&records::write(record, field..field + 1, version));
        self.client.push(&["EXEC"]);
        self.client.send()?;
        expect(&self.client.reply()?, "OK")?;
        expect(&self.client.reply()?, "QUEUED")?;
        match self.client.reply()? {
            Value::Null => Ok(false),
            Value::Array(replies) if replies == [Value::Simple("OK".to_owned())] => {
                self.note(record, field, version, began_ns);
                Ok(true)
            }
            other => Err(RespError::Wrong(format!(
                "EXEC was answered with {other:?}"
            ))),
        }
    }

    /// The number of the next write.
    fn writer(&self) -> u64 {
        let sequence = self.shared.begun[self.number].fetch_add(1, Ordering::AcqRel) + 1;
        (self.number as u64 + 1) << SEQUENCE_BITS | sequence
    }

    fn note(&mut self, record: u64, field: usize, version: Version, began_ns: u64) {
        self.log.push(Write {
            record,
            field,
            version,
            began_ns,
            ended_ns: self.shared.clock.now_ns(),
        });
    }
}

/// Compares a reply with the word that it should be.
pub fn expect(reply: &Value, word: &str) -> Result<(), RespError> {
    match reply {
        Value::Simple(found) if found == word => Ok(()),
        other => Err(RespError::Wrong(format!("{other:?} instead of {word}"))),
    }
}
