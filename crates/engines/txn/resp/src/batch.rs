//! A batch: what one connection has sent and is not answered yet, as one transaction of the engine.
//!
//! Everything that a client has in its pipeline goes to the engine together, and is run in order
//! within one transaction. Each command therefore sees the effects of those before it, the answers
//! come in order, and the log has one record for all of them. Batches of different connections are
//! under way at the same time, and become durable together.
//!
//! The arguments of the procedure, and what it returns, are bytes that this module alone encodes
//! and decodes. They are not stored.

use std::collections::BTreeMap;

use dyno_txn_api::{Code, Error, Operations, Result, TableId};

use crate::arguments::{Reader, push_bytes};
use crate::commands::rows_from;
use crate::commands::{self, Command};
use crate::keyspace::{Keyspace, unreadable};
use crate::reply::{Protocol, Reply};
use crate::row::{head_of, split_key};

/// The name of the procedure that runs batches.
pub const PROCEDURE: &str = "resp";
/// Bytes of replies after which no further unit of a batch is run: the rest goes into the next one.
const REPLY_BYTES: usize = 1 << 20;
/// The longest reply to one unit, so that an answer of the engine can always hold it.
const REPLY_BYTES_MAX: usize = 3 << 20;
/// Room for a head, of which most have no watched keys.
const HEAD_BYTES: usize = 32;
/// Room for the replies to most batches, and for what is behind them.
const USUAL_REPLY_BYTES: usize = 2 << 10;
/// Rows that one step of the sweep looks at.
const SWEEP_ROWS: usize = 512;

/// A version that no key has, for a watched key that has changed.
pub const CHANGED: u64 = u64::MAX;

/// A key that a client watches, with the version that it had; 0 if it was absent.
pub type Watched = (Vec<u8>, u64);

/// One thing to do in a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unit {
    /// A reply that the front has made itself, at its place among the others.
    Literal(Vec<u8>),
    /// A command, with its arguments encoded.
    Command(Vec<u8>),
    /// What was queued between `MULTI` and `EXEC`: run if no watched key has changed.
    Exec(Vec<Unit>),
    /// A `WATCH`, with its arguments encoded.
    Watch(Vec<u8>),
    /// Forgets all watched keys, without a reply.
    Unwatch,
    /// Encodes further replies in this version of the protocol.
    Protocol(Protocol),
}

impl Unit {
    /// Whether it is answered without the engine.
    pub fn is_local(&self) -> bool {
        matches!(self, Unit::Literal(_) | Unit::Protocol(_) | Unit::Unwatch)
    }

    /// The version of the protocol that holds behind it, if it chooses one. The front carries out a
    /// `HELLO` within a transaction whatever becomes of the transaction.
    pub fn chosen(&self) -> Option<Protocol> {
        match self {
            Unit::Protocol(protocol) => Some(*protocol),
            Unit::Exec(units) => units.iter().rev().find_map(Unit::chosen),
            _ => None,
        }
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        match self {
            Unit::Literal(bytes) | Unit::Command(bytes) | Unit::Watch(bytes) => bytes.len() + 32,
            Unit::Exec(units) => 32 + units.iter().map(Unit::bytes).sum::<usize>(),
            Unit::Unwatch | Unit::Protocol(_) => 32,
        }
    }

    /// Appends the unit as bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Unit::Literal(bytes) => {
                out.push(0);
                push_bytes(out, bytes);
            }
            Unit::Command(arguments) => {
                out.push(1);
                out.extend_from_slice(arguments);
            }
            Unit::Exec(units) => {
                out.push(2);
                out.extend_from_slice(&(units.len() as u32).to_le_bytes());
                units.iter().for_each(|unit| unit.encode(out));
            }
            Unit::Watch(arguments) => {
                out.push(3);
                out.extend_from_slice(arguments);
            }
            Unit::Unwatch => out.push(4),
            Unit::Protocol(Protocol::Resp2) => out.push(5),
            Unit::Protocol(Protocol::Resp3) => out.push(6),
        }
    }
}

/// What a batch begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The table that has the keys.
    pub table: TableId,
    /// The clock, in milliseconds since 1970.
    pub now_ms: u64,
    /// Partitions of the database.
    pub partitions: u32,
    /// The first version for keys that are written; as many as there are writes must be free.
    pub version: u64,
    /// The version of the protocol at the beginning.
    pub protocol: Protocol,
    /// What the client watches at the beginning.
    pub watched: Vec<Watched>,
}

/// What became of a batch.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome<'a> {
    /// Units that were run. Those behind them have to be sent again.
    pub units: usize,
    /// What the client watches now.
    pub watched: Vec<Watched>,
    /// The replies, one after the other.
    pub replies: &'a [u8],
}

/// The arguments of the procedure for these units.
pub fn encode(head: &Head, units: &[Unit]) -> Vec<u8> {
    let bytes: usize = units.iter().map(Unit::bytes).sum();
    let mut out = Vec::with_capacity(HEAD_BYTES + bytes);
    out.push(match head.protocol {
        Protocol::Resp2 => 2,
        Protocol::Resp3 => 3,
    });
    out.extend_from_slice(&head.table.0.to_le_bytes());
    out.extend_from_slice(&head.now_ms.to_le_bytes());
    out.extend_from_slice(&head.version.to_le_bytes());
    out.extend_from_slice(&head.partitions.to_le_bytes());
    push_watched(&mut out, &head.watched);
    units.iter().for_each(|unit| unit.encode(&mut out));
    out
}

/// The arguments of the procedure for a step of the sweep from a cursor on.
pub fn encode_sweep(table: TableId, now_ms: u64, cursor: u64) -> Vec<u8> {
    let mut out = vec![SWEEP];
    out.extend_from_slice(&table.0.to_le_bytes());
    out.extend_from_slice(&now_ms.to_le_bytes());
    out.extend_from_slice(&cursor.to_le_bytes());
    out
}

/// The first byte of the arguments of a sweep, where a batch has the version of its protocol.
const SWEEP: u8 = 0;

fn push_watched(out: &mut Vec<u8>, watched: &[Watched]) {
    out.extend_from_slice(&(watched.len() as u32).to_le_bytes());
    for (key, version) in watched {
        push_bytes(out, key);
        out.extend_from_slice(&version.to_le_bytes());
    }
}

fn read_watched(reader: &mut Reader<'_>) -> Option<Vec<Watched>> {
    let count = reader.u32()?;
    let each = (0..count).map(|_| Some((reader.bytes()?.to_vec(), reader.u64()?)));
    each.collect()
}

/// Appends to the replies what else the procedure returns: what is watched, how many units were
/// run, and how long the replies are. Behind them, so that the replies need not be moved.
fn finish(mut replies: Vec<u8>, units: usize, watched: &[Watched]) -> Vec<u8> {
    let bytes = replies.len() as u32;
    push_watched(&mut replies, watched);
    replies.extend_from_slice(&(units as u32).to_le_bytes());
    replies.extend_from_slice(&bytes.to_le_bytes());
    replies
}

/// Decodes what the procedure returned for a batch.
pub fn decode(returned: &[u8]) -> Option<Outcome<'_>> {
    let (rest, numbers) = returned.split_last_chunk::<8>()?;
    let mut numbers = Reader(numbers);
    let (units, bytes) = (numbers.u32()? as usize, numbers.u32()? as usize);
    let (replies, watched) = rest.split_at_checked(bytes)?;
    Some(Outcome {
        units,
        watched: read_watched(&mut Reader(watched))?,
        replies,
    })
}

/// Decodes what the procedure returned for a step of the sweep: the cursor behind it, and how many
/// keys it removed.
pub fn decode_sweep(returned: &[u8]) -> Option<(u64, u64)> {
    let mut reader = Reader(returned);
    Some((reader.u64()?, reader.u64()?))
}

/// The procedure: runs a batch, or a step of the sweep.
pub fn run(transaction: &mut dyn Operations, arguments: &[u8]) -> Result<Vec<u8>> {
    let damaged = || Error::new(Code::Damaged, "arguments of procedure `resp`");
    let mut reader = Reader(arguments);
    let kind = reader.u8().ok_or_else(damaged)?;
    let table = TableId(reader.u32().ok_or_else(damaged)?);
    let now_ms = reader.u64().ok_or_else(damaged)?;
    let number = reader.u64().ok_or_else(damaged)?;
    let protocol = match kind {
        SWEEP => return sweep(transaction, table, now_ms, number),
        2 => Protocol::Resp2,
        3 => Protocol::Resp3,
        _ => return Err(damaged()),
    };
    let partitions = reader.u32().ok_or_else(damaged)?;
    let watched = read_watched(&mut reader).ok_or_else(damaged)?;
    let units = read_units(&mut reader).ok_or_else(damaged)?;
    let mut batch = Batch {
        keys: Keyspace::new(transaction, table, partitions, now_ms, number),
        reply: Reply::with_capacity(protocol, USUAL_REPLY_BYTES),
        watched: watched.into_iter().collect(),
    };
    batch.load(&units)?;
    if !batch.watched.is_empty() {
        batch.keys.take_touched();
    }
    let done = batch.run(&units)?;
    batch.keys.write_back()?;
    let watched: Vec<Watched> = batch.watched.into_iter().collect();
    Ok(finish(batch.reply.finish(), done, &watched))
}

/// A unit whose arguments lie in the bytes of the batch.
enum Parsed<'a> {
    Literal(&'a [u8]),
    Command(&'static Command, Vec<&'a [u8]>),
    Exec(Vec<Parsed<'a>>),
    Watch(Vec<&'a [u8]>),
    Unwatch,
    Protocol(Protocol),
}

fn read_units<'a>(reader: &mut Reader<'a>) -> Option<Vec<Parsed<'a>>> {
    let mut units = Vec::new();
    while !reader.0.is_empty() {
        units.push(read_unit(reader, true)?);
    }
    Some(units)
}

fn read_unit<'a>(reader: &mut Reader<'a>, is_outside: bool) -> Option<Parsed<'a>> {
    Some(match reader.u8()? {
        0 => Parsed::Literal(reader.bytes()?),
        1 => {
            let arguments = reader.arguments()?;
            let command = commands::find(arguments.first()?)?;
            // The front has checked this. Here it keeps a command from reading an argument that is
            // not there, whatever the bytes are.
            if !commands::is_arity(command.arity, arguments.len()) {
                return None;
            }
            Parsed::Command(command, arguments)
        }
        2 if is_outside => {
            let count = reader.u32()?;
            let units = (0..count).map(|_| read_unit(reader, false));
            Parsed::Exec(units.collect::<Option<_>>()?)
        }
        3 => Parsed::Watch(reader.arguments()?),
        4 => Parsed::Unwatch,
        5 => Parsed::Protocol(Protocol::Resp2),
        6 => Parsed::Protocol(Protocol::Resp3),
        _ => return None,
    })
}

struct Batch<'a> {
    keys: Keyspace<'a>,
    reply: Reply,
    /// What the client watches. A tree, because one `WATCH` may name very many keys.
    watched: BTreeMap<Vec<u8>, u64>,
}

impl Batch<'_> {
    /// Reads all rows that the batch names, in one call: rows of other partitions are then fetched
    /// in one round, however many commands there are.
    fn load(&mut self, units: &[Parsed<'_>]) -> Result<()> {
        let mut keys = Vec::new();
        let watched = std::mem::take(&mut self.watched);
        for unit in units {
            collect_keys(unit, &mut keys);
        }
        // Once, because the first of several transactions forgets what was watched.
        if units.iter().any(|unit| matches!(unit, Parsed::Exec(_))) {
            keys.extend(watched.keys().map(Vec::as_slice));
        }
        // Keys that are too long are refused by the command itself.
        let readable = |key: &&[u8]| key.len() <= crate::row::KEY_MAX;
        self.keys.load(keys.into_iter().filter(readable))?;
        self.watched = watched;
        Ok(())
    }

    /// Runs units until the replies are long. Returns how many were run.
    fn run(&mut self, units: &[Parsed<'_>]) -> Result<usize> {
        for (at, unit) in units.iter().enumerate() {
            if self.reply.len() > REPLY_BYTES {
                return Ok(at);
            }
            let from = self.reply.len();
            // A unit may ask for one long value many times. What is dropped below is not made.
            self.reply.most_bytes = from + REPLY_BYTES_MAX;
            self.run_one(unit)?;
            if self.reply.len() - from > REPLY_BYTES_MAX {
                // What the command did stays done; only its answer is too long for the engine. It
                // cannot be refused any more, because others of the batch may build on it.
                self.reply.truncate(from);
                let text = format!(
                    "ERR done, but the reply is longer than {REPLY_BYTES_MAX} bytes, ask for less at once"
                );
                self.reply.error(&text);
            }
        }
        Ok(units.len())
    }

    fn run_one(&mut self, unit: &Parsed<'_>) -> Result<()> {
        match unit {
            Parsed::Literal(bytes) => self.reply.raw(bytes),
            Parsed::Command(command, arguments) => {
                commands::run(command, arguments, &mut self.keys, &mut self.reply)?;
                self.mark_own_changes();
            }
            Parsed::Exec(units) => self.exec(units)?,
            Parsed::Watch(arguments) => {
                for key in arguments.iter().skip(1) {
                    // The first version counts if a key is watched twice.
                    if self.watched.contains_key(*key) {
                        continue;
                    }
                    let version = self.keys.version(key)?;
                    self.watched.insert(key.to_vec(), version);
                }
                // From here on, and not from before: what was changed earlier is in the versions.
                self.keys.take_touched();
                self.reply.simple("OK");
            }
            Parsed::Unwatch => self.watched.clear(),
            Parsed::Protocol(protocol) => self.reply.protocol = *protocol,
        }
        Ok(())
    }

    /// Marks watched keys that this client has changed itself, as Redis does. Their versions would
    /// not tell of a key that was absent, came, and went again.
    fn mark_own_changes(&mut self) {
        if self.watched.is_empty() {
            return;
        }
        for key in self.keys.take_touched() {
            if let Some(version) = self.watched.get_mut(&key) {
                *version = CHANGED;
            }
        }
    }

    /// Runs what was queued, unless a watched key has another version now. The comparison and the
    /// commands are one transaction, so nothing can change a key between them.
    fn exec(&mut self, units: &[Parsed<'_>]) -> Result<()> {
        for (key, version) in std::mem::take(&mut self.watched) {
            if self.keys.version(&key)? != version {
                self.reply.null_array();
                // A HELLO among them was carried out by the front nevertheless, and what the client
                // is told from here on is in the version that it chose.
                for unit in units {
                    if let Parsed::Protocol(protocol) = unit {
                        self.reply.protocol = *protocol;
                    }
                }
                return Ok(());
            }
        }
        let replies = units
            .iter()
            .filter(|unit| !matches!(unit, Parsed::Protocol(_) | Parsed::Unwatch));
        self.reply.array(replies.count());
        units.iter().try_for_each(|unit| self.run_one(unit))
    }
}

fn collect_keys<'a>(unit: &'a Parsed<'_>, keys: &mut Vec<&'a [u8]>) {
    match unit {
        Parsed::Command(command, arguments) => keys.extend(command.keys_of(arguments)),
        Parsed::Watch(arguments) => keys.extend(arguments.iter().skip(1)),
        Parsed::Exec(units) => units.iter().for_each(|unit| collect_keys(unit, keys)),
        Parsed::Literal(_) | Parsed::Unwatch | Parsed::Protocol(_) => {}
    }
}

/// Removes expired keys among the next rows. Reads see such keys as absent already; this gives
/// their memory back.
fn sweep(
    transaction: &mut dyn Operations,
    table: TableId,
    now_ms: u64,
    cursor: u64,
) -> Result<Vec<u8>> {
    // Nothing is set here, so no version is used, and one range is scanned, page by page.
    let mut keys = Keyspace::new(transaction, table, 1, now_ms, 0);
    let (rows, next) = rows_from(&mut keys, cursor, SWEEP_ROWS)?;
    let mut removed: u64 = 0;
    for found in rows {
        let (_, key) = split_key(&found.key).ok_or_else(unreadable)?;
        let (_, expires_at) = head_of(&found.value).ok_or_else(unreadable)?;
        if expires_at.is_some_and(|at| now_ms > at) {
            keys.remove_found(key.to_vec());
            removed += 1;
        }
    }
    keys.write_back()?;
    let mut returned = next.to_le_bytes().to_vec();
    returned.extend(removed.to_le_bytes());
    Ok(returned)
}
