//! Clients and brokers as processes of their own, so that they can be killed. The program runs
//! itself.
//!
//! A child gets its [`Job`] as one argument, writes events as lines of JSON to its standard output,
//! and ends when its standard input does, which also happens when the checker dies.

mod broker;
mod events;
mod job;
pub mod kafka;
mod library;
mod process;
mod queue;
mod schedule;
mod sql;

pub use job::{BrokerJob, ConsumeJob, Job, ProduceJob, SendJob, Speech, WorkJob};
pub use process::{Ended, Process, SpawnError};

use std::fmt::Display;
use std::thread;
use std::time::Duration;

use dyno_postgres::PgError;
use events::Events;

/// The reason why a child ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The argument is not a job.
    #[error("the job of this process cannot be read: {0}")]
    Job(#[from] serde_json::Error),
    /// The checker, which reads the events, is gone.
    #[error("cannot write events: {0}")]
    Events(#[from] std::io::Error),
    /// A connection string cannot be used.
    #[error(transparent)]
    Server(#[from] PgError),
    /// The system refused for good what a client must be able to do.
    #[error("cannot {action}: {reason}")]
    Refused {
        /// What was tried, as a verb and its object.
        action: &'static str,
        /// What the refusal said.
        reason: String,
    },
    /// The job is one for [`kafka::SCRIPT`].
    #[error("this program does not speak Kafka's protocol; the check's script for Python does")]
    Foreign,
    /// A message that is not one of the check's came out.
    #[error("damaged message: {0}")]
    Damaged(String),
}

impl ChildError {
    fn refused<R: std::fmt::Display>(action: &'static str) -> impl FnOnce(R) -> Self {
        move |refusal| Self::Refused {
            action,
            reason: refusal.to_string(),
        }
    }
}

/// Pause before a client or broker that could not start is started again.
const RETRY_PAUSE: Duration = Duration::from_millis(30);

/// Starts a client or a broker, however long the server is away; `is_passing` says whether an error
/// is only that. Returns `None` if the checker asks to stop before.
fn insist<T, E: Display>(
    events: &Events,
    action: &'static str,
    is_passing: impl Fn(&E) -> bool,
    mut start: impl FnMut() -> Result<T, E>,
) -> Result<Option<T>, ChildError> {
    while !events.stopping() {
        match start() {
            Ok(started) => return Ok(Some(started)),
            Err(error) if is_passing(&error) => thread::sleep(RETRY_PAUSE),
            Err(error) => return Err(ChildError::refused(action)(error)),
        }
    }
    Ok(None)
}

/// Does the job in `argument`, which is JSON, until standard input ends.
///
/// # Errors
/// When the job cannot be done at all; a server that is down for a while is not an error.
pub fn run(argument: &str) -> Result<(), ChildError> {
    let job: Job = serde_json::from_str(argument)?;
    let events = Events::start();
    match job {
        Job::Produce(job) => match job.speech {
            Speech::Library => library::produce(&job, events),
            Speech::Sql => sql::produce(&job, events),
            Speech::Kafka => Err(ChildError::Foreign),
        },
        Job::Consume(job) => match job.speech {
            Speech::Library => library::consume(&job, events),
            Speech::Sql => sql::consume(&job, events),
            Speech::Kafka => Err(ChildError::Foreign),
        },
        Job::Send(job) => queue::send(&job, events),
        Job::Work(job) => queue::work(&job, events),
        Job::Broker(job) => broker::serve(&job, &events),
    }
}
