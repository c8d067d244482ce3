//! Proof that transactions are strictly serializable.
//!
//! What it is: [`history`] keeps what clients asked and were answered; three judges read it without
//! a line of the engine's code: [`replay`] (in the order of the stamps, against a model),
//! [`cycles`] (dependencies between transactions, after Adya and Elle) and [`bank`] (money is
//! neither made nor lost). Histories come from [`drive`], clients of any database that has our
//! interface, which do what [`work`] says; from [`kill`] and [`soak`], which drive real servers,
//! and kill them or watch them for long; and from [`simulate`], the whole cluster in one thread
//! from one seed. [`recovery`] times how a killed server reads a long log. What it is not: a proof
//! about power loss on real disks. In a simulation the engine's own log runs on disks that tear and
//! lose what was not synced, and fail; their crash model is at the head of `dyno-sim`.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use std::time::Duration;
//! use dyno_txn_api::model::Model;
//! use dyno_txn_check::drive::{Drive, Plan};
//! use dyno_txn_check::work::{self, Tables};
//!
//! let db = Model::with(work::procedures()?);
//! let tables = Tables::create(&db, 2)?;
//! let patience = Duration::from_secs(10);
//! let mut drive = Drive::new(Plan { transactions: 20, ..Plan::default() });
//! drive.open(&db, tables, patience)?;
//! // As many rounds as there are kills; a thread that kills sets the flag.
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
pub mod replay;
mod server;
pub mod simulate;
pub mod soak;
mod verdict;
pub mod work;

pub use server::{Connect, ServerError, Start};
pub use verdict::{Rule, Verdict, Violation};
