//! Runs transactions of `dyno-txn-api` on databases that speak PostgreSQL's protocol.
//!
//! Each table is an SQL table in the schema [`SCHEMA`]. It has the key as `bytea`, whose order is
//! that of the key; the value as `bytea`, or a column for each column; and for each index one more
//! column with the index's key and an SQL index on it, so that a scan of any range is a range of an
//! SQL index. SQL tables that something else made cannot be read.
//!
//! - The operations of one call are statements that are in flight together, which takes one round
//!   trip. Reads and writes of one table share a statement, unless each operation is to be
//!   separate.
//! - Procedures run in the client, statement by statement, unless a [`Function`] has the same name:
//!   that is a function in the server, so the call is one round trip.
//! - Transactions are serializable, or read committed with a lock until the end on every row that
//!   is read ([`Isolation`]).
//! - The crate is tested on PostgreSQL 15. It avoids what YugabyteDB and CockroachDB lack (it uses
//!   no extension, but `ON CONFLICT` and `unnest`), but is not tested on them. Functions are
//!   PL/pgSQL and use `int8send`, which CockroachDB does not have.
//!
//! It refuses unsigned numbers of 2^63 and more, because `bigint` ends there; text with a zero
//! byte; names of columns that begin with `_`; and names of tables of more than 48 bytes. A row
//! that was stored with fewer columns than its table has comes back with nulls in the rest.

mod catalogue;
mod database;
mod function;
mod layout;
mod meaning;
mod parameter;
mod pipeline;
mod pool;
mod session;
mod statements;
mod transaction;

pub use catalogue::SCHEMA;
pub use database::{Isolation, Postgres, PostgresOptions};
pub use function::{Argument, Fields, Function};
