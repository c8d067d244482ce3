//! The database as its users see it: tables, routing, one-shot transactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dyno_txn_api::{
    Code, Committed, Database, Description, Error, FrontEnd, Operation, Options, Pipeline, Request,
    Result, Table, TableDef, TableId, Transaction,
};
use dyno_txn_core::Schema;
use dyno_txn_core::message::{Message, PartitionId};
use dyno_txn_core::placement::{partition_of, partitions_of};
use parking_lot::{Mutex, RwLock};

use super::connector::Connector;
use super::pipeline::NodePipeline;
use super::session::{Session, SpinLimit};
use super::transaction::NodeTransaction;
use crate::error::unavailable;
use crate::hello::Welcome;
use crate::threads::HostedFrontEnd;

/// Sessions that are kept for their next use at most.
const IDLE_MAX: usize = 64;
/// How long the engine may take to answer about its tables or figures.
const TABLES_WAIT: Duration = Duration::from_secs(10);
/// How long an answer may take beyond its deadline. The engine observes deadlines itself, so this
/// only bounds the wait for one that has gone silent.
const GRACE_NS: u64 = 1_000_000_000;

/// A database on an engine.
pub(crate) struct Node {
    connector: Arc<Connector>,
    pub welcome: Welcome,
    spin: Duration,
    spin_limit: Arc<SpinLimit>,
    schema: RwLock<Arc<Schema>>,
    idle: Mutex<Vec<Session>>,
    /// The partition that the next call without a home key goes to, modulo their number.
    next_home: AtomicU32,
}

impl Node {
    /// Connects to the engine and asks for its tables.
    pub fn open(connector: Connector, spin: Duration) -> Result<Self> {
        let welcome = connector.welcome()?;
        let node = Self {
            connector: Arc::new(connector),
            welcome,
            spin,
            spin_limit: Arc::new(SpinLimit::new()),
            schema: RwLock::new(Arc::new(Schema::default())),
            idle: Mutex::new(Vec::new()),
            next_home: AtomicU32::new(0),
        };
        node.refresh_schema()?;
        Ok(node)
    }

    pub fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Connections to use for one thing. [`Node::return_session`] takes them back afterwards.
    pub fn session(&self) -> Result<Session> {
        let idle = self.idle.lock().pop();
        match idle {
            Some(mut session) => {
                // Connections that have ended meanwhile are noticed now, and late answers to the
                // previous user are dropped: their tickets mean nothing to the next one.
                session.flush()?;
                while session.next().is_some() {}
                Ok(session)
            }
            None => {
                let (connector, map) = (self.connector.clone(), self.connector.map());
                Session::new(connector, map, self.spin_limit.clone(), self.spin)
            }
        }
    }

    pub fn return_session(&self, session: Session) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(session);
        }
    }

    /// The tables as this client knows them. Others may have created further ones.
    pub fn schema(&self) -> Arc<Schema> {
        self.schema.read().clone()
    }

    /// Asks the engine for its tables.
    pub fn refresh_schema(&self) -> Result<Arc<Schema>> {
        let mut schema = Schema::default();
        for table in self.list()? {
            schema.add(table);
        }
        let schema = Arc::new(schema);
        *self.schema.write() = schema.clone();
        Ok(schema)
    }

    /// The tables, asked for again if these operations name one that is not known here.
    pub fn schema_for(&self, operations: &[Operation]) -> Result<Arc<Schema>> {
        let schema = self.schema();
        let unknown = |operation: &Operation| schema.table(operation.table()).is_err();
        if operations.iter().any(unknown) {
            self.refresh_schema()
        } else {
            Ok(schema)
        }
    }

    fn list(&self) -> Result<Vec<Table>> {
        let mut session = self.session()?;
        let ticket = session.ticket();
        let tables = request(
            &mut session,
            Message::ListTables { ticket },
            |message| match message {
                Message::TableList { ticket: of, tables } if of == ticket => Some(tables),
                _ => None,
            },
        )?;
        self.return_session(session);
        Ok(tables)
    }

    /// The partition that runs a one-shot transaction: the one of its first key. A call without a
    /// home key goes to the partitions in turn.
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
                let scanned = partitions_of(schema.table(scan.table)?, partitions, scan);
                scanned.first().copied().unwrap_or(0)
            }
        })
    }

    /// The message of a one-shot transaction, and the partition that it goes to.
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
                timestamp: None,
                priority,
                deadline_ns,
                request,
            },
        ))
    }
}

/// When the client gives up on a one-shot transaction that is sent now.
pub(crate) fn gives_up_at(now: u64, options: &Options) -> u64 {
    now.saturating_add(options.deadline.as_nanos() as u64)
        .saturating_add(GRACE_NS)
}

/// The error for a one-shot transaction without an answer: the reason of the engine if it refused
/// the connection, otherwise that the transaction may have been committed or not.
pub(crate) fn unanswered(refusal: Option<Error>, why: &str) -> Error {
    match refusal {
        Some(error) => error,
        None => Error::new(
            Code::OutcomeUnknown,
            format!("a request in one message: {why}"),
        ),
    }
}

/// Sends a request to partition 0 and waits for the message that `answer` takes for its answer.
fn request<T>(
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

/// The name and the value in a line of figures.
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
        let made = request(&mut session, create, |message| match message {
            Message::Created { ticket: of, result } if of == ticket => Some(result),
            _ => None,
        })?;
        self.return_session(session);
        let table = made?;
        self.refresh_schema()?;
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
        let port = session.port_for(to);
        let until = gives_up_at(session.now(), options);
        loop {
            if !session.wait(until)? {
                return Err(unanswered(None, "no answer came in time"));
            }
            while let Some((_, message)) = session.next() {
                if let Message::Done { ticket: of, result } = message
                    && of == ticket
                {
                    self.return_session(session);
                    return result;
                }
            }
            // Messages are looked at first: an answer that came before the end of the connection
            // counts.
            if port.is_none_or(|port| !session.is_open(port)) {
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
        if let Connector::Local(engine, _) = &*self.connector {
            return Ok(engine.stats());
        }
        let mut session = self.session()?;
        let mut sums: Vec<(String, u64)> = Vec::new();
        for process in 0..session.processes() {
            let text = session.figures(process, TABLES_WAIT)?;
            for (name, value) in text.lines().filter_map(figure) {
                match sums.iter_mut().find(|(known, _)| known == name) {
                    Some((_, sum)) => *sum += value,
                    None => sums.push((name.to_owned(), value)),
                }
            }
        }
        self.return_session(session);
        Ok(sums)
    }

    fn pipeline(&self, window: usize, options: &Options) -> Result<Box<dyn Pipeline + '_>> {
        Ok(Box::new(NodePipeline::new(self, window, options)?))
    }

    fn host(
        &self,
        front_end: Box<dyn FrontEnd>,
        window: usize,
        options: &Options,
    ) -> Result<Option<Box<dyn FrontEnd>>> {
        // With several threads there are most likely cores for one more, and a server on one of
        // them would slow the partitions of that one down.
        let engine = match &*self.connector {
            Connector::Local(engine, _) if self.welcome.cores == 1 => engine,
            _ => return Ok(Some(front_end)),
        };
        let node = Node::open(Connector::hosted(engine.clone()), self.spin)?;
        engine.host(HostedFrontEnd {
            pipeline: Box::new(NodePipeline::new(Box::new(node), window, options)?),
            front_end,
        })?;
        Ok(None)
    }

    fn as_database(&self) -> &dyn Database {
        self
    }
}
