//! Runs statements within their limits, each on threads of its own.
//!
//! A join can compute for minutes between two points where its task could be stopped. On threads
//! that statements share, one such statement would hold up all others, and on the threads that
//! serve clients the request to cancel it would not be heard. With threads of their own the kernel
//! shares the processors among statements, and one that was given up keeps nothing but its turn
//! until it notices.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::ParamValues;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{SQLOptions, SessionContext};
use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::Statement;
use futures::StreamExt;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::{Sleep, sleep_until};

use super::counts::Counts;
use super::refusal::{Kind, Refusal};
use super::tables::Tables;

/// Batches that wait for a slow reader. The statement computes no further until one is taken.
const WAITING: usize = 2;
/// The stack of each thread that parses or plans statements. The libraries walk down the tree of a
/// statement by recursion, and the two megabytes of a usual thread end before the longest chain of
/// operators that is let through. Memory is only taken for the part that is used.
pub const STACK_BYTES: usize = 64 << 20;

/// What one statement may use, beside memory and threads.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The longest time from the question to the last row.
    pub time: Duration,
    /// The most rows of an answer.
    pub rows: usize,
    /// The most statements that run at the same time; others wait for their turn.
    pub statements: usize,
    /// The threads of each statement.
    pub threads: usize,
}

/// Runs statements over one table.
pub struct Engine {
    tables: Tables,
    planners: Handle,
    turns: Arc<Semaphore>,
    bounds: Bounds,
    counts: Counts,
}

/// A statement with all that it depends on.
pub struct Question {
    /// The statement, already known to be one that reads.
    pub statement: Statement,
    /// The values of its parameters.
    pub parameters: Option<ParamValues>,
    /// The time limit that the client set, if it is shorter than the server's.
    pub time: Option<Duration>,
    /// Changes when the client cancels what it runs.
    pub cancelled: Option<watch::Receiver<u64>>,
}

/// A statement that runs. Dropping it stops it.
pub struct Running {
    batches: mpsc::Receiver<Result<RecordBatch, Refusal>>,
    limit: Limit,
    work: AbortHandle,
    /// The threads of the statement; taken when it is stopped.
    threads: Option<Runtime>,
    counts: Counts,
}

/// When a statement is given up.
struct Limit {
    over: Pin<Box<Sleep>>,
    time: Duration,
    cancelled: Option<watch::Receiver<u64>>,
}

impl Question {
    /// A statement without parameters, for a client without settings of its own.
    pub fn from_statement(statement: Statement) -> Self {
        Self {
            statement,
            parameters: None,
            time: None,
            cancelled: None,
        }
    }
}

impl Engine {
    /// Runs statements over `tables`, and plans those that are only described on the threads of
    /// `planners`.
    pub fn new(tables: Tables, planners: Handle, bounds: Bounds, counts: Counts) -> Self {
        Self {
            tables,
            planners,
            turns: Arc::new(Semaphore::new(bounds.statements)),
            bounds,
            counts,
        }
    }

    /// What is counted of clients and statements.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The longest time of a statement.
    pub fn time_limit(&self) -> Duration {
        self.bounds.time
    }

    /// The most rows of an answer.
    pub fn row_limit(&self) -> usize {
        self.bounds.rows
    }

    /// Whether the table can be opened now.
    ///
    /// # Errors
    /// It cannot.
    pub fn check(&self) -> Result<(), Refusal> {
        self.session().map(drop)
    }

    /// Plans a statement without running it, for a client that asks for its columns and parameters
    /// first. The plan is not kept: the statement is planned again when it runs, over the snapshot
    /// of that moment.
    ///
    /// # Errors
    /// The statement is wrong, or takes too long to plan.
    pub async fn describe(self: &Arc<Self>, statement: Statement) -> Result<LogicalPlan, Refusal> {
        let engine = Arc::clone(self);
        let plan = async move {
            let context = engine.session()?;
            plan(&context, statement, None).await
        };
        let mut limit = self.limit(None, None);
        let task = self.planners.spawn(plan);
        let work = task.abort_handle();
        let planned = limit.within(task).await;
        work.abort();
        planned?.map_err(|_| Refusal::new(Kind::Failed, "the planner panicked"))?
    }

    /// Starts a statement, and returns its columns when it has been planned.
    ///
    /// # Errors
    /// The statement is wrong, was cancelled, or had no turn in time.
    pub async fn start(
        self: &Arc<Self>,
        mut question: Question,
    ) -> Result<(SchemaRef, Running), Refusal> {
        self.counts.statements.add(1);
        let started = Instant::now();
        let (sender, batches) = mpsc::channel(WAITING);
        let (tell, schema) = oneshot::channel();
        let mut limit = self.limit(question.time, question.cancelled.take());
        let engine = Arc::clone(self);
        let time = limit.time;
        let threads = Builder::new_multi_thread()
            .worker_threads(self.bounds.threads)
            .thread_name("statement")
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()
            .map_err(|error| Refusal::new(Kind::Failed, format!("no threads: {error}")))?;
        let task = threads.spawn(async move {
            // The reader has a limit of its own. This one is for a reader that does not read: a
            // portal that a client leaves open must not keep its turn.
            let work = engine.produce(question, tell, &sender);
            let failed = match tokio::time::timeout(time, work).await {
                Ok(Ok(())) => None,
                Ok(Err(refusal)) => Some(refusal),
                Err(_) => Some(too_late(time)),
            };
            engine.counts.ended(started, failed.as_ref());
            if let Some(refusal) = failed {
                // The client may have gone.
                sender.send(Err(refusal)).await.ok();
            }
        });
        let mut running = Running {
            batches,
            work: task.abort_handle(),
            threads: Some(threads),
            limit: limit.again(),
            counts: self.counts.clone(),
        };
        let planned = limit.within(schema).await;
        match planned.inspect_err(|refusal| self.counts.refused(refusal.kind))? {
            Ok(schema) => Ok((schema, running)),
            // The statement ended before it had columns, and says why on the other channel.
            Err(_) => match running.next().await {
                Some(Err(refusal)) => Err(refusal),
                _ => Err(Refusal::new(Kind::Failed, "the statement panicked")),
            },
        }
    }

    fn limit(&self, time: Option<Duration>, cancelled: Option<watch::Receiver<u64>>) -> Limit {
        let time = time.map_or(self.bounds.time, |time| time.min(self.bounds.time));
        Limit {
            over: Box::pin(sleep_until((Instant::now() + time).into())),
            time,
            cancelled,
        }
    }

    fn session(&self) -> Result<SessionContext, Refusal> {
        let opened = self.tables.session();
        opened.map_err(|error| Refusal::failed(&error))
    }

    async fn produce(
        &self,
        question: Question,
        tell: oneshot::Sender<SchemaRef>,
        batches: &mpsc::Sender<Result<RecordBatch, Refusal>>,
    ) -> Result<(), Refusal> {
        // A turn is taken before the snapshot, so that a statement that waited sees what was
        // committed meanwhile, and holds neither files nor memory while it waits.
        let _turn = self.turns.acquire().await;
        let _running = self.counts.run();
        // The session holds the snapshot, whose files no load removes, until the last row.
        let context = self.session()?;
        let plan = plan(&context, question.statement, question.parameters).await?;
        let frame = context.execute_logical_plan(plan).await?;
        let mut stream = frame.execute_stream().await?;
        if tell.send(stream.schema()).is_err() {
            return Ok(());
        }
        let mut room = self.bounds.rows;
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            // A short answer must not look like a whole one, so the client is told by an error.
            let Some(rest) = room.checked_sub(batch.num_rows()) else {
                let most = self.bounds.rows;
                return Err(Refusal::new(
                    Kind::TooManyRows,
                    format!("the answer has more than {most} rows: ask for fewer with LIMIT"),
                ));
            };
            room = rest;
            self.counts.rows.add(batch.num_rows() as u64);
            if batches.send(Ok(batch)).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Plans a statement over the tables of a session, and refuses whatever does not only read.
async fn plan(
    context: &SessionContext,
    statement: Statement,
    parameters: Option<ParamValues>,
) -> Result<LogicalPlan, Refusal> {
    let state = context.state();
    let statement = DfStatement::Statement(Box::new(statement));
    let plan = state.statement_to_plan(statement).await?;
    // The plan is checked and not the text, so that a write inside EXPLAIN or WITH is refused too.
    let reading = SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false);
    reading.verify_plan(&plan).map_err(|error| {
        let what = error.strip_backtrace();
        let what = what.trim_start_matches("Error during planning: ");
        Refusal::new(
            Kind::ReadOnly,
            format!("the table is only read here; data comes in by `dyno ingest load` ({what})"),
        )
    })?;
    Ok(match parameters {
        Some(values) => plan.replace_params_with_values(&values)?,
        None => plan,
    })
}

impl Running {
    /// The next batch of the answer; `None` at its end.
    pub async fn next(&mut self) -> Option<Result<RecordBatch, Refusal>> {
        let Self { batches, limit, .. } = self;
        match limit.within(batches.recv()).await {
            Ok(next) => next,
            Err(refusal) => {
                // The task is stopped here and counts nothing any more.
                self.work.abort();
                self.counts.refused(refusal.kind);
                Some(Err(refusal))
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The task ends at its next point of rest, which lets go of its turn, memory and snapshot.
        self.work.abort();
        if let Some(threads) = self.threads.take() {
            // Waiting for that would keep the client, and the thread that serves it.
            threads.shutdown_background();
        }
    }
}

impl Limit {
    /// The same limit from the same moment on.
    fn again(&self) -> Limit {
        Limit {
            over: Box::pin(sleep_until(self.over.deadline())),
            time: self.time,
            cancelled: self.cancelled.clone(),
        }
    }

    async fn within<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Refusal> {
        let cancelled = async {
            match &mut self.cancelled {
                // An error means that the connection is gone, and with it the reader.
                Some(signal) => signal.changed().await.unwrap_or(()),
                None => std::future::pending().await,
            }
        };
        // The answer comes first: a statement that is finished was neither cancelled nor late.
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = cancelled => Err(Refusal::new(
                Kind::Cancelled,
                "canceling statement due to user request",
            )),
            () = &mut self.over => Err(too_late(self.time)),
        }
    }
}

fn too_late(limit: Duration) -> Refusal {
    let seconds = limit.as_secs_f64();
    Refusal::new(
        Kind::TimedOut,
        format!("canceling statement due to statement timeout: no answer within {seconds} s"),
    )
}
