//! Checks that transactions are strictly serializable.
//!
//! A [`history`] records what clients requested and what they were answered. Three judges read it,
//! and share no code with the engine: [`replay`] runs it in the order of the timestamps against a
//! model, [`cycles`] looks for cycles of dependencies between transactions (after Adya and Elle),
//! and [`bank`] checks that money is neither created nor lost.
//!
//! Histories come from [`drive`], whose clients run [`workload`] on any database that has our
//! interface, [`redis`] among them; from [`kill`] and [`soak`], which drive real servers and kill
//! them or watch them for
//! a long time; and from [`simulate`], which runs the whole cluster in one thread from one seed.
//! [`recovery`] measures how fast a killed server reads a long log.
//!
//! This is not a proof about power loss on real disks. In a simulation the engine's own log runs on
//! disks that fail, tear writes and lose what was not synced; their crash model is described in
//! `dyno-sim`.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use std::time::Duration;
//! use dyno_txn_api::model::Model;
//! use dyno_txn_check::drive::{Drive, Plan};
//! use dyno_txn_check::workload::{self, Tables};
//!
//! let db = Model::with(workload::procedures()?);
//! let tables = Tables::create(&db, 2)?;
//! let patience = Duration::from_secs(10);
//! let mut drive = Drive::new(Plan { transactions: 20, ..Plan::default() });
//! drive.open(&db, tables, patience)?;
//! // One round for each kill; a thread that kills the server sets the flag.
//! drive.round(|| Ok(&db), tables, &AtomicBool::new(false));
//! drive.read_all(&db, tables, patience)?;
//! assert!(drive.judge().verdict.holds());
//! # Ok::<(), dyno_txn_api::Error>(())
//! ```

pub mod bank;
pub mod cycles;
pub mod drive;
pub mod history;
pub mod kill;
pub mod recovery;
pub mod redis;
pub mod replay;
mod server;
pub mod simulate;
pub mod soak;
mod verdict;
pub mod workload;

pub use server::{Connect, ServerError, Start};
pub use verdict::{Rule, Verdict, Violation};
