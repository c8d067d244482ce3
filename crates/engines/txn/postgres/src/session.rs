//! One connection with its runtime: statements go out together, and their answers are taken in
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

/// Statements that are kept prepared; more are forgotten, all of them.
const PREPARED_MAX: usize = 512;

/// A statement with what goes into it.
#[derive(Debug, Clone)]
pub struct Call {
    pub sql: Arc<str>,
    pub parameters: Vec<Parameter>,
}

/// A connection.
pub struct Session {
    runtime: Runtime,
    client: Client,
    prepared: HashMap<Arc<str>, Statement>,
    server: String,
    /// A statement is under way whose answer is not wanted any more.
    adrift: bool,
}

impl Session {
    /// Connects.
    pub fn open(dsn: &Dsn, how: &dyno_postgres::Session) -> Result<Session> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::new(Code::Unavailable, format!("a runtime: {error}")))?;
        let connected = runtime.block_on(connect_pipelined(dsn, how));
        let (client, driver) = connected.map_err(|error| not_connected(&error))?;
        // How the connection ended is reported to the callers that wait for an answer on it.
        drop(runtime.spawn(driver));
        Ok(Session {
            runtime,
            client,
            prepared: HashMap::new(),
            server: dsn.to_string(),
            adrift: false,
        })
    }

    /// Whether it can be used for another transaction.
    pub fn is_good(&self) -> bool {
        !self.adrift && !self.client.is_closed()
    }

    /// Runs a command without parameters, such as COMMIT.
    pub fn command(&mut self, sql: &str, until: Instant, during: During) -> Result<()> {
        let client = &self.client;
        let done = within(&self.runtime, until, client.batch_execute(sql));
        self.told(done, during)
    }

    /// Sends a command, when there is one, and all statements behind it; the rows of each, or the
    /// first error.
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
            // The first error is the cause of those behind it.
            rows.next().transpose()?;
            rows.collect::<std::result::Result<Vec<_>, postgres::Error>>()
        };
        let done = within(&self.runtime, until, all);
        self.told(done, during)
    }

    fn prepare(&mut self, calls: &[Call], until: Instant) -> Result<()> {
        if self.prepared.len() > PREPARED_MAX {
            self.prepared.clear();
        }
        for call in calls {
            if !self.prepared.contains_key(&call.sql) {
                let preparing = self.client.prepare(&call.sql);
                let done = within(&self.runtime, until, preparing);
                // Preparing changes nothing, whatever becomes of it.
                let statement = self.told(done, During::Transaction)?;
                self.prepared.insert(Arc::clone(&call.sql), statement);
            }
        }
        Ok(())
    }

    fn told<T>(
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

/// The result, or nothing when it did not come in time.
fn within<T>(runtime: &Runtime, until: Instant, work: impl Future<Output = T>) -> Option<T> {
    let left = until.saturating_duration_since(Instant::now());
    let wait = left.max(Duration::from_millis(1));
    runtime.block_on(async { tokio::time::timeout(wait, work).await.ok() })
}

/// All results. Each future is begun before the next one, which is the order in which statements
/// are sent.
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
