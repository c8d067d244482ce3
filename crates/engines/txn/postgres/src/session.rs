//! One connection with its runtime. Statements are sent together, and their answers are read in
//! order.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use dyno_postgres::postgres::{self, Row, Statement};
use dyno_postgres::tokio_postgres::Client;
use dyno_postgres::{Dsn, connect_pipelined};
use dyno_txn_api::{Code, Error, Result};
use futures::future::maybe_done;
use tokio::runtime::Runtime;

use crate::meaning::{During, meaning, not_connected};
use crate::parameter::Parameter;

/// The most prepared statements. If there are more, all are dropped and prepared again as needed.
const PREPARED_MAX: usize = 512;

/// A statement with its parameters.
#[derive(Debug, Clone)]
pub struct Call {
    pub sql: Arc<str>,
    pub parameters: Vec<Parameter>,
}

/// A connection to the server, for one transaction at a time.
pub struct Session {
    runtime: Runtime,
    client: Client,
    prepared: HashMap<Arc<str>, Statement>,
    server: String,
    /// Whether a statement is in flight whose answer is not awaited any more. The next transaction
    /// would get that answer, so the connection cannot be used again.
    adrift: bool,
}

impl Session {
    /// Connects and authenticates. Fails after the connection timeout of `settings`.
    pub fn open(dsn: &Dsn, settings: &dyno_postgres::Session) -> Result<Session> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::new(Code::Unavailable, format!("a runtime: {error}")))?;
        let connected = runtime.block_on(connect_pipelined(dsn, settings));
        let (client, driver) = connected.map_err(|error| not_connected(&error))?;
        // The driver task need not be joined: callers that wait for an answer learn how the
        // connection ended.
        drop(runtime.spawn(driver));
        Ok(Session {
            runtime,
            client,
            prepared: HashMap::new(),
            server: dsn.to_string(),
            adrift: false,
        })
    }

    /// Whether another transaction can use the connection.
    pub fn is_good(&self) -> bool {
        !self.adrift && !self.client.is_closed()
    }

    /// Runs a command without parameters, such as COMMIT.
    pub fn command(&mut self, sql: &str, until: Instant, during: During) -> Result<()> {
        let client = &self.client;
        let done = within(&self.runtime, until, client.batch_execute(sql));
        self.translate(done, during)
    }

    /// Sends a command, if there is one, and all statements after it. Returns the rows of each
    /// statement, or the first error.
    pub fn send(
        &mut self,
        before: Option<&str>,
        calls: &[Call],
        until: Instant,
        during: During,
    ) -> Result<Vec<Vec<Row>>> {
        self.prepare(calls, until)?;
        let (client, prepared) = (&self.client, &self.prepared);
        let begin = async {
            match before {
                Some(sql) => client.batch_execute(sql).await.map(|()| Vec::new()),
                None => Ok(Vec::new()),
            }
        };
        let all = async {
            // All requests are written before the first answer is read, so the batch costs one
            // round trip however many statements it has.
            let mut under_way: Vec<Pin<Box<dyn Future<Output = _> + '_>>> =
                vec![Box::pin(begin) as _];
            for call in calls {
                let statement = &prepared[&call.sql];
                let parameters: Vec<_> = call.parameters.iter().map(|p| p as _).collect();
                under_way.push(Box::pin(async move {
                    client.query(statement, &parameters).await
                }));
            }
            let mut rows = in_order(under_way).await.into_iter();
            // After the first error the server refuses the rest of the transaction, so the first
            // one is the cause.
            rows.next().transpose()?;
            rows.collect::<std::result::Result<Vec<_>, postgres::Error>>()
        };
        let done = within(&self.runtime, until, all);
        self.translate(done, during)
    }

    fn prepare(&mut self, calls: &[Call], until: Instant) -> Result<()> {
        if self.prepared.len() > PREPARED_MAX {
            self.prepared.clear();
        }
        for call in calls {
            if !self.prepared.contains_key(&call.sql) {
                let preparing = self.client.prepare(&call.sql);
                let done = within(&self.runtime, until, preparing);
                // Preparing has no effect on data, so nothing is unknown if it fails.
                let statement = self.translate(done, During::Transaction)?;
                self.prepared.insert(Arc::clone(&call.sql), statement);
            }
        }
        Ok(())
    }

    /// Translates the result of a request. A missing one means that the deadline has passed.
    fn translate<T>(
        &mut self,
        done: Option<std::result::Result<T, postgres::Error>>,
        during: During,
    ) -> Result<T> {
        match done {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(meaning(&error, &self.server, during)),
            None => {
                self.adrift = true;
                let text = format!("{}: no answer before the deadline", self.server);
                Err(match during {
                    During::Transaction => Error::new(Code::Deadline, text),
                    During::Commit => Error::new(Code::OutcomeUnknown, text),
                })
            }
        }
    }
}

/// The result of `work`, or `None` if it does not come in time.
fn within<T>(runtime: &Runtime, until: Instant, work: impl Future<Output = T>) -> Option<T> {
    let left = until.saturating_duration_since(Instant::now());
    // A COMMIT is sent even if the deadline has just passed, and gets a moment for its answer.
    // Without one its outcome would be unknown.
    let wait = left.max(Duration::from_millis(1));
    runtime.block_on(async { tokio::time::timeout(wait, work).await.ok() })
}

/// Runs all futures and returns their results. Each future is started before the next one, which is
/// the order in which statements are sent.
async fn in_order<T>(futures: Vec<Pin<Box<dyn Future<Output = T> + '_>>>) -> Vec<T> {
    let mut all: Vec<_> = futures
        .into_iter()
        .map(|future| Box::pin(maybe_done(future)))
        .collect();
    poll_fn(|context| {
        let mut ready = true;
        for one in &mut all {
            ready &= one.as_mut().poll(context).is_ready();
        }
        if ready {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    all.iter_mut()
        .filter_map(|one| one.as_mut().take_output())
        .collect()
}
