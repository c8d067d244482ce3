//! Transactions of `dyno-txn-api` on databases of PostgreSQL's wire.
//!
//! What it is: one SQL table for each table, in the schema [`SCHEMA`]: the key as `bytea`, whose
//! order is the key's; the value as `bytea`, or a column for each column; an index's key as one
//! more column with an SQL index on it, so that a scan of any range is a range of an SQL index.
//! What it is not: a way to read SQL tables that others made.
//!
//! - Operations of one call are statements that are under way together: one round trip. In the
//!   separate form each operation is a statement of its own, else reads and writes of one table go
//!   in one.
//! - Procedures run in the client, statement by statement, unless there is a [`Function`] of the
//!   same name: a function in the server, so that the call is one round trip.
//! - Transactions are serializable, or read committed with every row that is read locked until the
//!   end ([`Isolation`]).
//! - Tested on PostgreSQL 15. Written so that YugabyteDB and CockroachDB take it (no extension, `ON
//!   CONFLICT`, `unnest`), and not run there; functions are PL/pgSQL and use `int8send`, which
//!   CockroachDB has not.
//!
//! What it refuses: unsigned numbers of 2^63 and more, since `bigint` ends there; text with a zero
//! byte; names of columns that begin with `_`; names of tables of more than 48 bytes. A row that
//! was stored with fewer columns than its table has comes back with nulls in the rest.

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
