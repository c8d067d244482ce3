//! The transaction engine as state machines, with no I/O, threads, clock or randomness of its own.
//! The same code runs on a thread with rings and a log, and in a simulation from a seed.
//!
//! # The protocol
//!
//! Multiversion timestamp ordering, after K23SI. A transaction has one timestamp
//! ([`Timestamp`](dyno_txn_api::Timestamp)), which the oracle issues when it begins. It is the
//! transaction's identity, its snapshot and its position in the order. A read at `s` is recorded; a
//! write at `s` is refused if the row was read or written above `s`. So committed transactions are
//! serializable in the order of their timestamps, and strictly so, because the oracle's timestamps
//! rise with real time.
//!
//! - Writes are **intents** in memory until the commit. The **record holder**, the partition of the
//!   first key written, decides the fate. The client's one commit message says how many writes went
//!   to which partition; the holder asks each of those for its vote; a partition votes once all
//!   announced writes are there, none of them failed, and they are durable. Then one record
//!   commits, the client is answered, and the participants finalize behind it. A write that failed
//!   or was lost anywhere means that the commit is refused, whatever the client says.
//! - A transaction whose holder does not know it is aborted, and is remembered as aborted.
//! - When a transaction meets another one's intent, the younger waits for the older for a bounded
//!   time and then pushes it; the older pushes at once. The holder decides a push by priority, then
//!   by age.
//! - One-shots run where they arrive. One that writes to that partition alone is committed with one
//!   log record. Rows of other partitions are fetched at the same timestamp, and the request runs
//!   again from the start.
//!
//! # How to drive a partition
//!
//! 1. Make it: [`Partition::new`] with a [`Config`], the procedures, and a [`Timestamps`] (a shared
//!    [`oracle::Clock`] in process; one that gives none where the oracle is remote, then clients
//!    bring timestamps).
//! 2. Recover, when there is a log: [`Partition::restore`] for each record of the newest checkpoint
//!    and then each of the log behind it, in order; [`Partition::start_at`] with the number of the
//!    last record; the oracle begins above the largest [`Partition::newest_timestamp`] of all
//!    partitions; a timestamp taken then is the floor for [`Partition::finish_recovery`].
//!    Partitions recover on their own; what was undecided they ask each other.
//! 3. Hand in, one at a time: messages ([`Partition::handle`], with their senders), that the log is
//!    durable up to a record ([`Partition::durable`]), and time ([`Partition::tick`], once
//!    [`Partition::wake_at`] has passed). `now` is monotonic nanoseconds. Messages that came
//!    together may be shown to [`Partition::prefetch`] first, which makes them faster.
//! 4. After each call empty the [`Effects`]: append `records` to the log in order (they are
//!    numbered from `start_at` on, by ones), then deliver `sends`. Answers that must wait for the
//!    log are not among them: the partition keeps those until `durable`. Several calls may share
//!    one `Effects` and one write.
//! 5. A log that fails ends the partition: its memory is ahead of its disk. Drop it and recover.
//! 6. A checkpoint: [`Partition::begin_checkpoint`] and note [`Partition::appended`], which the log
//!    must be kept from; [`Partition::go_on_checkpoint`] between other calls until it says false;
//!    it counts once the log is durable up to `appended` at its end.
//!
//! Messages may arrive late, in any order, twice, or not at all, because everything that carries a
//! timestamp is idempotent, and what is lost is asked for again or times out. There is one
//! exception: a [`message::Message::OneShot`] without a timestamp must not be delivered twice,
//! because it is given a new one each time. Connections guarantee that. Numbers of
//! [`message::Address::Client`] must not be reused.
//!
//! The driver of a client uses a [`Coordinator`] for each interactive transaction, and an
//! [`oracle::Batcher`] or [`oracle::Clock`] for its timestamp.
//!
//! ```
//! use dyno_txn_api::{Answer, Key, Operation, Procedures, Request, Timestamp, TableDef, TableId};
//! use dyno_txn_core::message::{Address, Message};
//! use dyno_txn_core::{Config, Effects, Partition, Timestamps};
//!
//! struct Counter(Timestamp);
//! impl Timestamps for Counter {
//!     fn next(&mut self) -> Option<Timestamp> {
//!         self.0 += 1;
//!         Some(self.0)
//!     }
//!     fn plausible(&mut self, timestamp: Timestamp) -> bool {
//!         timestamp <= self.0
//!     }
//! }
//!
//! let (client, mut effects) = (Address::Client(1), Effects::default());
//! let mut partition =
//!     Partition::new(Config::new(0, 1), Procedures::new(), Box::new(Counter(0)));
//! let def = TableDef::hash("things", 0);
//! partition.handle(0, client, Message::CreateTable { ticket: 1, def }, &mut effects);
//! let key = Key::new(TableId(1), "a");
//! let operations = vec![Operation::put(key.clone(), "x"), Operation::get(key)];
//! let request = Request::Operations(operations);
//! let one_shot =
//!     Message::OneShot { ticket: 2, timestamp: None, priority: 128, deadline_ns: 1_000, request };
//! partition.handle(1, client, one_shot, &mut effects);
//!
//! // No answer goes out before the log has the record.
//! assert_eq!((effects.records.len(), effects.sends.len()), (2, 0));
//! partition.durable(2, 2, &mut effects);
//! let Message::Done { result: Ok(done), .. } = &effects.sends[0].1 else { panic!() };
//! assert_eq!(done.answers[1], Answer::Value(Some(b"x".to_vec())));
//! ```
//!
//! # What is not here
//!
//! Replication, moving partitions, changing a table, and indexes on tables that have rows already.
//! A one-shot may not scan a table after it has written to it on another partition. A table hashed
//! by whole keys is put in order at its first scan, which takes as long as sorting it.

pub mod message;
pub mod oracle;
pub mod placement;
pub mod planted;
pub mod record;

mod coordinator;
mod effects;
mod merge;
mod outcomes;
mod partition;
mod reads;
mod schema;
mod store;
mod wire;

pub use coordinator::{Coordinator, Event, Sends};
pub use effects::{Answers, Effects, Position, Records};
pub use partition::{Checkpoint, Config, Counters, Partition, Timestamps, is_direct};
pub use schema::Schema;
