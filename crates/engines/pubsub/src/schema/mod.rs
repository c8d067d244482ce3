//! The tables and functions in the schema `pubsub`: installing them, migrating them, and refusing
//! those of a later version.

mod scripts;

use dyno_postgres::postgres::{Client, Transaction};

use crate::error::{Code, Error, Result};
use scripts::{CRC_MISSING, CRC_OF_SERVER, FUNCTIONS, MIGRATIONS};

/// The version of the tables that this program creates and understands.
pub const VERSION: i32 = 9;

/// The first version of PostgreSQL with a function for CRC32C, as `server_version_num` counts.
const SERVER_WITH_CRC32C: i32 = 180_000;

/// The advisory lock that two installations exclude each other with: "dynopsub" in ASCII.
const INSTALL_LOCK: i64 = 0x6479_6e6f_7073_7562;

/// The versions before and after an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Installed {
    /// The version that was there before; 0 if there was none.
    pub from: i32,
    /// The version that is there now.
    pub to: i32,
}

/// Creates the tables and functions, or migrates those of an earlier version. It changes nothing if
/// all is up to date, and may run at the same time as another installation, producers and
/// consumers.
///
/// # Errors
/// `newer-schema`, or whatever the server says.
pub fn install(client: &mut Client) -> Result<Installed> {
    let failed = || Error::statement("install the schema pubsub");
    let mut transaction = client.transaction().map_err(failed())?;
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&INSTALL_LOCK])
        .map_err(failed())?;
    let from = match stored_version(&mut transaction)? {
        None => {
            transaction
                .batch_execute(
                    "CREATE SCHEMA IF NOT EXISTS pubsub; \
                     CREATE TABLE pubsub.schema_version (version int NOT NULL, installed_at timestamptz NOT NULL \
                     DEFAULT now()); INSERT INTO pubsub.schema_version VALUES (0)",
                )
                .map_err(failed())?;
            0
        }
        Some(version) => version,
    };
    // Nothing was changed so far but what the transaction takes back. An older program must not put
    // its functions in the place of newer ones.
    refuse_newer(from)?;
    for (version, script) in MIGRATIONS {
        if *version > from {
            transaction.batch_execute(script).map_err(failed())?;
        }
    }
    // Functions are replaced in the transaction of the migration, so no client ever sees new tables
    // with old functions or the other way round.
    make_functions(&mut transaction)?;
    transaction
        .execute(
            "UPDATE pubsub.schema_version SET version = $1, installed_at = now()",
            &[&VERSION],
        )
        .map_err(failed())?;
    transaction.commit().map_err(failed())?;
    Ok(Installed { from, to: VERSION })
}

/// Checks that the schema is installed in the version that this program knows.
///
/// # Errors
/// `not-installed` if it is missing or older, `newer-schema`.
pub fn check(client: &mut Client) -> Result<()> {
    let failed = || Error::statement("read the version of the schema pubsub");
    let mut transaction = client.transaction().map_err(failed())?;
    let version = stored_version(&mut transaction)?;
    transaction.commit().map_err(failed())?;
    match version {
        Some(VERSION) => Ok(()),
        Some(version) => {
            refuse_newer(version)?;
            let text = format_args!(
                "the schema pubsub has version {version}, not {VERSION}: run 'dyno pubsub install'"
            );
            Err(Error::new(Code::NotInstalled, text))
        }
        None => {
            let text = "this database has no schema pubsub: run 'dyno pubsub install'";
            Err(Error::new(Code::NotInstalled, text))
        }
    }
}

fn refuse_newer(version: i32) -> Result<()> {
    if version <= VERSION {
        return Ok(());
    }
    Err(Error::new(
        Code::NewerSchema,
        format_args!(
            "the schema pubsub has version {version}, and this program knows {VERSION}: use a later dyno"
        ),
    ))
}

/// The version of the tables; `None` if they do not exist.
fn stored_version(transaction: &mut Transaction<'_>) -> Result<Option<i32>> {
    let failed = || Error::statement("read the version of the schema pubsub");
    let there = transaction
        .query_one(
            "SELECT to_regclass('pubsub.schema_version') IS NOT NULL",
            &[],
        )
        .map_err(failed())?;
    if !there.get::<_, bool>(0) {
        return Ok(None);
    }
    let row = transaction
        .query_one("SELECT max(version) FROM pubsub.schema_version", &[])
        .map_err(failed())?;
    Ok(row.get(0))
}

/// Replaces all functions, also those that each partition and queue has of its own.
fn make_functions(transaction: &mut Transaction<'_>) -> Result<()> {
    let failed = || Error::statement("make the functions of the schema pubsub");
    let server: i32 = transaction
        .query_one("SELECT current_setting('server_version_num')::int", &[])
        .map_err(failed())?
        .get(0);
    let crc = if server >= SERVER_WITH_CRC32C {
        CRC_OF_SERVER
    } else {
        CRC_MISSING
    };
    for script in FUNCTIONS.iter().chain([&crc]) {
        transaction.batch_execute(script).map_err(failed())?;
    }
    transaction
        .batch_execute(
            "SELECT pubsub.make_append(topic_id, partition) FROM pubsub.partitions; \
             SELECT pubsub.make_queue_functions(queue_id) FROM pubsub.queues",
        )
        .map_err(failed())
}
