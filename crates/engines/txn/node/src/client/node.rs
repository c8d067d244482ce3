//! The database as its users see it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use dyno_txn_api::{
    Code, Committed, Database, Description, Error, Operation, Options, Pipeline, Request, Result,
    Table, TableDef, TableId, Transaction,
};
use dyno_txn_core::Schema;
use dyno_txn_core::message::{Message, PartitionId};
use dyno_txn_core::placement::{partition_of, partitions_of};

use super::connector::Connector;
use super::pipeline::NodePipeline;
use super::session::{Crowd, Session};
use super::transaction::NodeTransaction;
use crate::error::unavailable;
use crate::hello::Welcome;

/// Sessions that wait for their next use.
const IDLE_MAX: usize = 64;
/// How long tables are waited for.
const TABLES_WAIT: Duration = Duration::from_secs(10);
/// What an answer may take beyond the deadline that the engine keeps itself.
const GRACE_NS: u64 = 1_000_000_000;

/// An open engine.
pub(crate) struct Node {
    connector: Arc<Connector>,
    pub welcome: Welcome,
    spin: Duration,
    crowd: Arc<Crowd>,
    schema: RwLock<Arc<Schema>>,
    idle: Mutex<Vec<Session>>,
    /// Where calls without a home go next.
    next_home: AtomicU32,
}

impl Node {
    /// Connects, and learns the tables.
    pub fn open(connector: Connector, spin: Duration) -> Result<Self> {
        let welcome = connector.welcome()?;
        let node = Self {
            connector: Arc::new(connector),
            welcome,
            spin,
            crowd: Arc::new(Crowd::new()),
            schema: RwLock::new(Arc::new(Schema::default())),
            idle: Mutex::new(Vec::new()),
            next_home: AtomicU32::new(0),
        };
        node.learn()?;
        Ok(node)
    }

    /// Where the engine is.
    pub fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Connections to use for one thing; [`Node::give_back`] when it is done.
    pub fn session(&self) -> Result<Session> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        match idle {
            Some(mut session) => {
                // What has ended meanwhile is noticed before something is sent there.
                session.flush()?;
                while session.next().is_some() {}
                Ok(session)
            }
            None => {
                let (connector, map) = (self.connector.clone(), self.connector.map());
                Session::new(connector, map, self.crowd.clone(), self.spin)
            }
        }
    }

    pub fn give_back(&self, session: Session) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(session);
        }
    }

    /// The tables as they are known here.
    pub fn schema(&self) -> Arc<Schema> {
        self.schema
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Asks for the tables.
    pub fn learn(&self) -> Result<Arc<Schema>> {
        let mut schema = Schema::default();
        for table in self.list()? {
            schema.add(table);
        }
        let schema = Arc::new(schema);
        *self.schema.write().unwrap_or_else(PoisonError::into_inner) = schema.clone();
        Ok(schema)
    }

    /// The tables, asked for where one of these operations has an unknown one.
    pub fn schema_for(&self, operations: &[Operation]) -> Result<Arc<Schema>> {
        let schema = self.schema();
        let unknown = |operation: &Operation| schema.table(operation.table()).is_err();
        match operations.iter().any(unknown) {
            true => self.learn(),
            false => Ok(schema),
        }
    }

    fn list(&self) -> Result<Vec<Table>> {
        let mut session = self.session()?;
        let ticket = session.ticket();
        let tables = ask(
            &mut session,
            Message::ListTables { ticket },
            |message| match message {
                Message::TableList { ticket: of, tables } if of == ticket => Some(tables),
                _ => None,
            },
        )?;
        self.give_back(session);
        Ok(tables)
    }

    /// Where a one-shot runs: at its first key.
    fn route(&self, request: &Request) -> Result<PartitionId> {
        let partitions = self.welcome.partitions;
        if partitions == 1 {
            return Ok(0);
        }
        let at_home;
        let first = match request {
            Request::Operations(operations) => operations.first(),
            Request::Call { home, .. } => {
                at_home = home.clone().map(Operation::Get);
                at_home.as_ref()
            }
        };
        let Some(first) = first else {
            let next = self.next_home.fetch_add(1, Ordering::Relaxed);
            return Ok(next % partitions);
        };
        let schema = self.schema_for(std::slice::from_ref(first))?;
        Ok(match first {
            Operation::Get(key) | Operation::Write(key, _) => {
                partition_of(schema.table(key.table)?, partitions, &key.bytes)
            }
            Operation::Scan(scan) => {
                let asked = partitions_of(schema.table(scan.table)?, partitions, scan);
                asked.first().copied().unwrap_or(0)
            }
        })
    }

    /// The message of a one-shot, and where it goes.
    pub fn one_shot(
        &self,
        ticket: u64,
        request: Request,
        options: &Options,
    ) -> Result<(PartitionId, Message)> {
        if let Request::Operations(operations) = &request
            && options.read_only
            && operations.iter().any(Operation::is_write)
        {
            let text = "a write in a transaction that was begun as read only";
            return Err(Error::new(Code::ReadOnly, text));
        }
        let to = self.route(&request)?;
        let deadline_ns = options.deadline.as_nanos() as u64;
        let priority = u16::from(options.priority);
        Ok((
            to,
            Message::OneShot {
                ticket,
                stamp: None,
                priority,
                deadline_ns,
                request,
            },
        ))
    }
}

/// When a one-shot that is sent now is given up.
pub(crate) fn until(now: u64, options: &Options) -> u64 {
    now.saturating_add(options.deadline.as_nanos() as u64)
        .saturating_add(GRACE_NS)
}

/// Why no answer came, for a one-shot that may have been committed or not.
pub(crate) fn unanswered(refusal: Option<Error>, why: &str) -> Error {
    match refusal {
        Some(error) => error,
        None => Error::new(
            Code::OutcomeUnknown,
            format!("a request in one message: {why}"),
        ),
    }
}

/// Asks partition 0 and waits for the answer.
fn ask<T>(
    session: &mut Session,
    message: Message,
    mut answer: impl FnMut(Message) -> Option<T>,
) -> Result<T> {
    session.send(0, &message)?;
    let until = session.now() + TABLES_WAIT.as_nanos() as u64;
    let losses = session.losses;
    loop {
        if !session.wait(until)? {
            return Err(Error::new(
                Code::Deadline,
                "the engine did not answer about its tables",
            ));
        }
        while let Some((_, message)) = session.next() {
            if let Some(found) = answer(message) {
                return Ok(found);
            }
        }
        if session.losses > losses {
            let refusal = session.refusal();
            return Err(refusal.unwrap_or_else(|| unavailable("the connection has ended")));
        }
    }
}

/// A line of figures.
fn figure(line: &str) -> Option<(&str, u64)> {
    let (name, value) = line.split_once(' ')?;
    Some((name, value.parse().ok()?))
}

impl Database for Node {
    fn create_table(&self, def: &TableDef) -> Result<TableId> {
        let mut session = self.session()?;
        let ticket = session.ticket();
        let create = Message::CreateTable {
            ticket,
            def: def.clone(),
        };
        let made = ask(&mut session, create, |message| match message {
            Message::Created { ticket: of, result } if of == ticket => Some(result),
            _ => None,
        })?;
        self.give_back(session);
        let table = made?;
        self.learn()?;
        Ok(table)
    }

    fn tables(&self) -> Result<Vec<Table>> {
        self.list()
    }

    fn begin(&self, options: &Options) -> Result<Box<dyn Transaction + '_>> {
        Ok(Box::new(NodeTransaction::begin(self, options)?))
    }

    fn execute(&self, request: Request, options: &Options) -> Result<Committed> {
        let mut session = self.session()?;
        let ticket = session.ticket();
        let (to, message) = self.one_shot(ticket, request, options)?;
        session.send(to, &message)?;
        let port = session.port_of(to);
        let until = until(session.now(), options);
        loop {
            if !session.wait(until)? {
                return Err(unanswered(None, "no answer came in time"));
            }
            while let Some((_, message)) = session.next() {
                if let Message::Done { ticket: of, result } = message
                    && of == ticket
                {
                    self.give_back(session);
                    return result;
                }
            }
            if port.is_none_or(|port| !session.lives(port)) {
                let refusal = session.refusal();
                return Err(unanswered(
                    refusal,
                    "the connection ended before its answer",
                ));
            }
        }
    }

    fn describe(&self) -> Result<Description> {
        Ok(Description {
            engine: "dyno".to_owned(),
            isolation: "strict serializable".to_owned(),
            durability: self.welcome.durability.to_string(),
            partitions: self.welcome.partitions,
            procedures: true,
        })
    }

    fn stats(&self) -> Result<Vec<(String, u64)>> {
        if let Connector::Local(engine) = &*self.connector {
            return Ok(engine.stats());
        }
        let mut session = self.session()?;
        let mut sums: Vec<(String, u64)> = Vec::new();
        for part in 0..session.parts() {
            let text = session.figures(part, TABLES_WAIT)?;
            for (name, value) in text.lines().filter_map(figure) {
                match sums.iter_mut().find(|(known, _)| known == name) {
                    Some((_, sum)) => *sum += value,
                    None => sums.push((name.to_owned(), value)),
                }
            }
        }
        self.give_back(session);
        Ok(sums)
    }

    fn pipeline(&self, window: usize, options: &Options) -> Result<Box<dyn Pipeline + '_>> {
        Ok(Box::new(NodePipeline::new(self, window, options)?))
    }

    fn as_database(&self) -> &dyn Database {
        self
    }
}
