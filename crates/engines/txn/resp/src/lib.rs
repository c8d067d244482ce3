//! Redis' protocol in front of a transactional database.
//!
//! What it is: a listener that clients of Redis connect to. Their strings and hashes are rows of
//! one table, and what a client has in its pipeline is one strictly serializable transaction,
//! whatever keys it names. No reply says what is not on stable storage yet, neither that of a write
//! nor that of a read, if the server's durability is `fsync`: the engine holds the replies until
//! then.
//!
//! What it is not: an engine. It needs a [`Database`](dyno_txn_api::Database) that was opened with
//! the procedure of [`register_procedures`], in which the commands run. Lists, sets, sorted sets,
//! streams, scripts, publish and subscribe, replication and databases other than 0 are not offered:
//! their commands are unknown.
//!
//! | file | what |
//! |---|---|
//! | `wire`, `arguments`, `reply` | commands and replies as bytes |
//! | `row`, `hash` | how a key is a row |
//! | `session`, `local` | what a connection has said; commands that need no engine |
//! | `batch` | what a connection has sent as one transaction, and the procedure that runs it |
//! | `keyspace`, `commands`, `glob` | the commands on keys, inside that transaction |
//! | `connection`, `socket`, `front`, `server` | connections, and who serves them |
//! | `figures` | what is counted |
//! | `watches` | watched keys that are absent |
//!
//! Everything that a client can make the server hold is bounded.

mod arguments;
mod batch;
mod commands;
mod connection;
mod figures;
mod front;
mod glob;
mod hash;
mod keyspace;
mod local;
mod reply;
mod row;
mod server;
mod session;
mod socket;
mod watches;
mod wire;

pub use row::TABLE;
pub use server::{Options, RespError, RespServer};

/// Adds the procedure that runs the commands to those that an engine is started with.
///
/// # Errors
/// If its name is taken.
pub fn register_procedures(procedures: &mut dyno_txn_api::Procedures) -> dyno_txn_api::Result<()> {
    procedures.add(batch::PROCEDURE, batch::run)
}

/// Reads bytes as a client's commands, and counts them until the first that is broken. It is for
/// tests of the parser.
pub fn count_commands(bytes: &[u8]) -> usize {
    let (mut parser, mut input) = (wire::Parser::new(), wire::Input::default());
    input.push(bytes);
    let next = || {
        parser
            .next(&mut input, wire::Limits::ADMITTED)
            .ok()
            .flatten()
    };
    std::iter::from_fn(next).count()
}
