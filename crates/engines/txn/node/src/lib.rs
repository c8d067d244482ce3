//! The running transaction engine: threads that each own partitions, logs and connections; clients
//! in the same process and over the network; a server.
//!
//! What it is: [`open`] returns a [`Database`] on a directory in this process (`local:DIR`) or on a
//! server (`dyno://HOST:PORT`). [`serve`] runs a server, or one process of several ([`Role`]): they
//! share the partitions of a database ([`Share`]) or keep its logs in memory
//! ([`Durability::RemoteMemory`]). [`backup`], [`Server::backup`] and [`Local::backup`] make
//! backups, and [`restore`] makes a directory of one.
//!
//! What it is not: the protocol (`dyno-txn-core`), the log's files (`dyno-txn-log`), connections
//! (`dyno-net`).
//!
//! [`Database`]: dyno_txn_api::Database
//!
//! ```
//! use dyno_txn_api::{Database, Target, TableDef, Transact};
//! use dyno_txn_node::{OpenOptions, open};
//!
//! let directory = tempfile::tempdir()?;
//! let target = Target::Local(directory.path().join("db"));
//! let options = || OpenOptions { segment_bytes: 8 << 20, ..OpenOptions::default() };
//!
//! let db = open(&target, options())?;
//! let table = db.create_table(&TableDef::hash("things", 0))?;
//! db.transact(|t| t.put(table, b"a", b"kept"))?;
//! drop(db);
//!
//! let db = open(&target, options())?;
//! assert_eq!(db.transact(|t| t.get(table, b"a"))?, Some(b"kept".to_vec()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is not here
//!
//! Replication, moving partitions between processes, backups of a database in several processes.

mod backup;
mod backup_request;
mod backup_service;
mod client;
mod directory;
mod engine;
mod error;
mod greet;
mod hello;
mod lifecycle;
mod member;
mod open;
mod options;
mod persist;
mod pieces;
mod pin;
mod ports;
mod sealed;
mod serve;
mod standalone;
mod threads;
mod time;

pub use backup::restore;
pub use backup_request::backup;
pub use open::{Local, open};
pub use options::{Durability, OpenOptions, Share};
pub use serve::{Role, ServeOptions, Server, serve};
