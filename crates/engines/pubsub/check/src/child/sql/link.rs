//! A connection that is opened again when it was lost.

use std::thread;
use std::time::{Duration, Instant};

use dyno_postgres::class::describe;
use dyno_postgres::postgres::{Client, Error};
use dyno_postgres::{Class, Dsn, PgError, Retry, Session, connect};

const RETRY_PAUSE: Duration = Duration::from_millis(30);

/// A way to the server.
pub struct Link {
    dsn: Dsn,
    name: String,
    client: Option<Client>,
}

/// The reason why a statement has no result.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// Five characters; empty when the server did not say.
    pub sqlstate: String,
    /// Whether to send it again.
    pub retry: Retry,
    /// The full text of the server's error.
    pub text: String,
}

impl Link {
    /// A way that is opened by its first use.
    pub fn new(endpoint: &str, name: &str) -> Result<Self, PgError> {
        Ok(Self {
            dsn: Dsn::parse(endpoint)?,
            name: name.to_owned(),
            client: None,
        })
    }

    /// Runs `ask` once, over a new connection if there is none.
    pub fn ask<T>(
        &mut self,
        ask: impl FnOnce(&mut Client) -> Result<T, Error>,
    ) -> Result<T, Refusal> {
        let client = match &mut self.client {
            Some(client) if !client.is_closed() => client,
            gone => {
                let client =
                    connect(&self.dsn, &Session::named(&self.name)).map_err(|error| Refusal {
                        sqlstate: String::new(),
                        retry: error.class().map_or(Retry::Never, |class| class.retry),
                        text: error.to_string(),
                    })?;
                gone.insert(client)
            }
        };
        ask(client).map_err(|error| {
            // The server did not say this, so the connection is broken, or an answer may still be
            // under way on it.
            if error.as_db_error().is_none() {
                self.client = None;
            }
            let class = Class::from_error(&error);
            Refusal {
                sqlstate: class.sqlstate.unwrap_or_default(),
                retry: class.retry,
                text: describe(&error),
            }
        })
    }

    /// Runs `ask` until there is an answer, or an error that stays, or `give_up` returns true. Only
    /// for what may be done twice.
    pub fn insist<T>(
        &mut self,
        mut ask: impl FnMut(&mut Client) -> Result<T, Error>,
        give_up: impl Fn(Duration) -> bool,
    ) -> Result<T, Refusal> {
        let began = Instant::now();
        loop {
            match self.ask(&mut ask) {
                Err(refusal) if refusal.retry != Retry::Never && !give_up(began.elapsed()) => {
                    thread::sleep(RETRY_PAUSE);
                }
                answer => return answer,
            }
        }
    }
}
