//! Proof that transactions are strictly serializable.
//!
//! What it is: [`history`] keeps what clients asked and were answered; three judges read it without a line of
//! the engine's code: [`replay`] (in the order of the stamps, against a model), [`cycles`] (dependencies
//! between transactions, after Adya and Elle) and [`bank`] (money is neither made nor lost). Histories come
//! from [`drive`], clients of any database that has our interface, which do what [`work`] says; from [`kill`],
//! which drives real servers and kills them; and from [`simulate`], the whole cluster in one thread from one
//! seed.
//! What it is not: a proof about power loss on real disks. In a simulation a crash keeps what was synced and
//! perhaps some more; that the log keeps this promise on disks that tear and lose is proved in `dyno-txn-log`.
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
pub mod replay;
pub mod simulate;
mod verdict;
pub mod work;

pub use verdict::{Rule, Verdict, Violation};
