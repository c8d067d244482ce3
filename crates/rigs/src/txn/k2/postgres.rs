//! The same transactions on PostgreSQL: one call of a function in the server, serializable,
//! acknowledged once it is on stable storage.

use std::path::Path;

use dyno_pubsub::Dsn;
use postgres::{Client, Statement};

use super::K2Error;
use super::draw::{Transaction, value};
use super::params::{Form, K2Params};
use super::system::{Failed, Worker};
use crate::pubsub::{Server, connect};

/// Writes come before reads, as in our engine.
const SETUP: &str = "
CREATE TABLE k2 (k bigint PRIMARY KEY, v bytea NOT NULL);
CREATE FUNCTION k2(write_keys bigint[], write_values bytea[], read_keys bigint[]) RETURNS bytea[]
LANGUAGE plpgsql AS $$
DECLARE
    found bytea[] := '{}';
    one bytea;
BEGIN
    FOR i IN 1..cardinality(write_keys) LOOP
        INSERT INTO k2 VALUES (write_keys[i], write_values[i])
            ON CONFLICT (k) DO UPDATE SET v = excluded.v;
    END LOOP;
    FOR i IN 1..cardinality(read_keys) LOOP
        SELECT v INTO one FROM k2 WHERE k = read_keys[i];
        found := array_append(found, one);
    END LOOP;
    RETURN found;
END $$";
const SESSION: &str = "SET default_transaction_isolation = 'serializable'";
const CALL: &str = "SELECT k2($1, $2, $3)";

/// A private server for this invocation.
pub(super) struct Postgres(Server);

impl Postgres {
    pub fn start(params: &K2Params, scratch: &Path) -> Result<Postgres, K2Error> {
        if params.form != Form::OneShot {
            let text = "PostgreSQL is measured by a function in the server, so one-shot".to_owned();
            return Err(K2Error::Wrong(text));
        }
        let server = Server::start(scratch, params.outstanding(), 1)?;
        connect(&server.dsn())?.batch_execute(SETUP)?;
        Ok(Postgres(server))
    }

    pub fn worker<'a>(&self, params: &'a K2Params) -> Result<Session<'a>, K2Error> {
        let dsn: Dsn = self.0.dsn();
        let mut client = connect(&dsn)?;
        client.batch_execute(SESSION)?;
        let call = client.prepare(CALL)?;
        Ok(Session {
            client,
            call,
            params,
        })
    }

    pub fn cpu_s(&self) -> Option<f64> {
        self.0.cpu_s()
    }

    pub fn describe(&self) -> String {
        let what = self.0.describe();
        let what = what.unwrap_or_else(|error| error.to_string());
        format!(
            "PostgreSQL {what}, serializable, a function, over a Unix socket, acknowledged: fsync"
        )
    }
}

/// A connection with its prepared statement.
pub(super) struct Session<'a> {
    client: Client,
    call: Statement,
    params: &'a K2Params,
}

impl Worker for Session<'_> {
    fn run(&mut self, transaction: &Transaction) -> Result<Vec<Option<Vec<u8>>>, Failed> {
        let numbers = |keys: &[u64]| keys.iter().map(|&key| key as i64).collect::<Vec<i64>>();
        let (writes, reads) = (numbers(&transaction.writes), numbers(&transaction.reads));
        let of = |&key: &u64| value(self.params, key, transaction.id);
        let values: Vec<Vec<u8>> = transaction.writes.iter().map(of).collect();
        let row = self
            .client
            .query_one(&self.call, &[&writes, &values, &reads]);
        let read = row.and_then(|row| row.try_get(0));
        read.map_err(|error| Failed {
            // Serialization failures and deadlocks rolled the whole transaction back, so it can be
            // repeated.
            again: error
                .code()
                .is_some_and(|code| ["40001", "40P01"].contains(&code.code())),
            text: error.to_string(),
        })
    }
}
