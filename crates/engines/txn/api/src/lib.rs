//! One interface for transactions over keys and rows, whatever engine runs them.
//!
//! Our engine, etcd and databases that speak PostgreSQL's protocol implement it, and workloads and
//! users are written against it. This crate has no engine except [`model`], no wire format, and
//! opens nothing: the crates that implement [`Database`] have an `open` that takes a [`Target`].
//!
//! - A database ([`Database`]) has tables ([`TableDef`]). A row has a key, which is bytes in an
//!   order ([`Tuple`] encodes numbers and text so that they keep theirs), and a value, which is
//!   bytes or a [`Row`] of typed columns.
//! - A transaction is strictly serializable unless the engine's description says otherwise. It has
//!   one of three forms: interactive ([`Transact::transact`]), a list of operations in one request
//!   ([`Transact::one_shot`]), or a function inside the engine ([`Procedure`], [`Transact::call`]).
//! - [`Operations`] is what a transaction can do while it runs, in all three forms.
//! - A failure is an [`Error`] with a stable [`Code`] that says whether to run the transaction
//!   again ([`Retry`]).
//!
//! ```
//! use dyno_txn_api::{Database, Kind, Row, Scan, TableDef, Transact, Tuple, ValueRef};
//! use dyno_txn_api::{encode_row, model::Model};
//!
//! let db = Model::new();
//! let def = TableDef::hash("account", 8)
//!     .column("branch", Kind::U64)
//!     .column("owner", Kind::Text)
//!     .column("cents", Kind::I64)
//!     .index("by-owner", &["owner"], 0)?;
//! let account = db.create_table(&def)?;
//! db.transact(|t| {
//!     for (branch, owner, cents) in [(1, "Ada", 700), (1, "Bob", 50), (2, "Ada", 9)] {
//!         let row = [ValueRef::U64(branch), ValueRef::Text(owner), ValueRef::I64(cents)];
//!         let key = Tuple::new().u64(branch).text(owner).finish();
//!         t.insert(account, &key, &encode_row(&row))?;
//!     }
//!     Ok(())
//! })?;
//!
//! let of_ada = def.index_prefix(0, &[ValueRef::Text("Ada")])?;
//! let page = db.transact(|t| t.scan(&Scan::prefix(account, of_ada.clone()).index(0)))?;
//! let cents = page.rows.iter().map(|found| Row::parse(&found.value)?.i64(2));
//! assert_eq!(cents.collect::<Result<Vec<i64>, _>>()?, [700, 9]);
//! # Ok::<(), dyno_txn_api::Error>(())
//! ```

pub mod conformance;
pub mod limits;
pub mod model;

mod catalog;
mod database;
mod error;
mod front_end;
mod key;
mod operation;
mod operations;
mod procedure;
mod row;
mod rows;
mod scan;
mod serial;
mod table;
mod target;
mod transact;
mod value;

pub use database::{
    Committed, Database, Description, Options, Pipeline, Request, Table, Timestamp, Transaction,
};
pub use error::{Code, Error, Result, Retry};
pub use front_end::{FrontEnd, Step};
pub use key::{Key, TableId, Tuple, TupleReader, prefix_end};
pub use operation::{Answer, Change, Operation};
pub use operations::Operations;
pub use procedure::{Procedure, Procedures};
pub use row::{Assign, Assignment, ROW_VERSION, Row, encode_row};
pub use rows::Rows;
pub use scan::{Compare, Continuation, Direction, Filter, Page, Scan, ScanRow};
pub use table::{Column, IndexDef, Partitioning, TABLE_BITS, TableDef, index_id};
pub use target::Target;
pub use transact::{Outcome, Transact};
pub use value::{Kind, Value, ValueRef};
