//! The server of one invocation: a process of its own, which is killed when this is dropped.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use dyno_txn_api::{
    Answer, Database, Key, Operation, Options, Request, Retry, TableDef, TableId, Target,
};
use dyno_txn_node::{Durability, OpenOptions, open};
use dyno_txn_open::DatabaseOptions;

use super::K2Error;
use super::draw::{LOADER, Transaction, value};
use super::params::{Form, K2Params, Keys, Name, Transport};
use super::postgres::Postgres;
use crate::pubsub::process_cpu_s;
use crate::txn::{DynoProcesses, EtcdNodes};

/// Memory for the rows of a server of ours.
const MEMORY: &str = "8GiB";
/// How long a server may take until it listens.
const START_MAX: Duration = Duration::from_secs(60);
/// Rows that one transaction loads.
const LOADED_TOGETHER: usize = 100;
/// A single client spins for its answer. Several sleep, because they would take each other's core.
const SPIN: Duration = Duration::from_millis(1);

/// A database that is ready for clients.
pub(super) enum System {
    /// A database that has our interface.
    Database {
        /// Declared before its server, so that it is closed first.
        db: Box<dyn Database>,
        table: TableId,
        servers: Servers,
        what: String,
    },
    Postgres(Box<Postgres>),
}

/// The server processes, which are killed when this is dropped.
pub(super) enum Servers {
    /// Our server first, then the processes that it depends on.
    Ours(Vec<Process>),
    /// Several servers of ours that share the database, and their oracle.
    Several(DynoProcesses),
    Etcd(EtcdNodes),
}

/// A child process, killed when this is dropped. Its socket is removed too, because a killed server
/// leaves it behind.
pub(in crate::txn) struct Process {
    child: Child,
    socket: Option<PathBuf>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that the process has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(socket) = &self.socket {
            let _ = std::fs::remove_file(socket);
        }
    }
}

/// Runs one transaction after the other, for one thread.
pub(super) trait Worker {
    /// Runs a transaction and returns the values that it read, in order.
    fn run(&mut self, transaction: &Transaction) -> Result<Vec<Option<Vec<u8>>>, Failed>;
}

/// Why an attempt failed.
#[derive(Debug)]
pub(super) struct Failed {
    /// Whether nothing was done, so that it can be tried again.
    pub again: bool,
    pub text: String,
}

impl System {
    pub fn start(params: &K2Params, scratch: &Path) -> Result<System, K2Error> {
        let (servers, db, what) = match params.system {
            Name::Postgres => {
                return Ok(System::Postgres(Box::new(Postgres::start(
                    params, scratch,
                )?)));
            }
            Name::Etcd => etcd(scratch)?,
            Name::Dyno if params.servers > 1 => several(params, scratch)?,
            Name::Dyno => ours(params, scratch)?,
        };
        let table = db.create_table(&TableDef::hash("k2", 0))?;
        Ok(System::Database {
            db,
            table,
            servers,
            what,
        })
    }

    /// Loads the rows that transactions expect.
    pub fn load(&self, params: &K2Params) -> Result<(), K2Error> {
        let Keys::Rows { rows, .. } = params.keys else {
            return Ok(());
        };
        let together = K2Params {
            form: Form::OneShot,
            ..params.clone()
        };
        let mut worker = self.worker(&together)?;
        for from in (0..rows).step_by(LOADED_TOGETHER) {
            let load = Transaction {
                id: LOADER,
                writes: (from..rows.min(from + LOADED_TOGETHER as u64)).collect(),
                reads: Vec::new(),
            };
            while let Err(error) = worker.run(&load) {
                if !error.again {
                    return Err(K2Error::Wrong(error.text));
                }
            }
        }
        Ok(())
    }

    /// A worker for one thread, which runs transactions in the form that the case names.
    pub fn worker<'a>(&'a self, params: &'a K2Params) -> Result<Box<dyn Worker + 'a>, K2Error> {
        match self {
            System::Database { db, table, .. } => Ok(Box::new(Client {
                db: &**db,
                table: *table,
                params,
                options: Options {
                    separate: params.form == Form::Interactive,
                    attempts: 1,
                    ..Options::default()
                },
            })),
            System::Postgres(server) => Ok(Box::new(server.worker(params)?)),
        }
    }

    /// Processor seconds of the server so far; `None` if they are unknown.
    pub fn cpu_s(&self) -> Option<f64> {
        match self {
            System::Database { servers, .. } => {
                let pids = match servers {
                    Servers::Ours(processes) => processes.iter().map(|it| it.child.id()).collect(),
                    Servers::Several(processes) => processes.pids(),
                    Servers::Etcd(nodes) => nodes.pids(),
                };
                Some(pids.into_iter().map(process_cpu_s).sum())
            }
            System::Postgres(server) => server.cpu_s(),
        }
    }

    /// Checkpoints that the server has written, if it counts them.
    pub fn checkpoints(&self) -> Result<Option<u64>, K2Error> {
        let System::Database { db, .. } = self else {
            return Ok(None);
        };
        let mut stats = db.stats()?.into_iter();
        let found = stats.find(|(name, _)| name == "checkpoints");
        Ok(found.map(|(_, count)| count))
    }

    pub fn describe(&self) -> String {
        match self {
            System::Database { what, .. } => what.clone(),
            System::Postgres(server) => server.describe(),
        }
    }
}

type Started = (Servers, Box<dyn Database>, String);

/// Starts `dyno txn serve` from this program, and connects a client.
fn ours(params: &K2Params, scratch: &Path) -> Result<Started, K2Error> {
    let wrong = |reason: String| K2Error::Process {
        what: "dyno txn serve".to_owned(),
        reason,
    };
    // The path of a socket must be short, which that of a scratch directory may not be.
    let socket = (params.transport == Transport::Unix).then(|| {
        let name = format!("dyno-k2-{}.sock", std::process::id());
        std::env::temp_dir().join(name)
    });
    let listen = match &socket {
        Some(socket) => format!("unix:{}", socket.display()),
        None => "127.0.0.1:0".to_owned(),
    };
    let mut persist = None;
    if params.durability == Durability::RemoteMemory {
        let mut command = serve("127.0.0.1:0").map_err(&wrong)?;
        command.args(["--role", "persist"]);
        let mut process = spawn(&mut command).map_err(&wrong)?;
        let address = first_line(&mut process).map_err(&wrong)?;
        persist = Some((process, address));
    }
    let mut command = serve(&listen).map_err(&wrong)?;
    if let Some((_, address)) = &persist {
        command.args(["--persist", address]);
    }
    command
        .args(["--durability", params.durability.name()])
        .args(["--partitions", &params.partitions.to_string()])
        .arg("--data")
        .arg(scratch.join("db"));
    if params.checkpoint_bytes > 0 {
        command.args(["--checkpoint", &params.checkpoint_bytes.to_string()]);
    }
    if let Some(cores) = &params.cores {
        command.args(["--cores", cores]);
    }
    let mut process = spawn(&mut command).map_err(&wrong)?;
    process.socket = socket;
    let address = first_line(&mut process).map_err(&wrong)?;
    let db = open(&Target::Dyno(vec![address]), client_options(params))?;
    let what = format!(
        "{}, {} partitions, over {}, acknowledged: {}",
        db.describe()?.engine,
        params.partitions,
        params.transport.name(),
        params.durability
    );
    let persist = persist.map(|(process, _)| process);
    let processes = [process].into_iter().chain(persist).collect();
    Ok((Servers::Ours(processes), db, what))
}

/// Starts several servers that share the database, each with a share of its partitions, and the
/// oracle that gives all of them their timestamps.
fn several(params: &K2Params, scratch: &Path) -> Result<Started, K2Error> {
    let program = std::env::current_exe().map_err(|error| K2Error::Process {
        what: "dyno txn serve".to_owned(),
        reason: error.to_string(),
    })?;
    let partitions = params.partitions.to_string();
    let checkpoint = params.checkpoint_bytes.to_string();
    let mut more = vec!["--memory", MEMORY, "--partitions", &partitions];
    more.extend(["--durability", params.durability.name()]);
    if params.checkpoint_bytes > 0 {
        more.extend(["--checkpoint", &checkpoint]);
    }
    let (servers, cores) = (params.servers, params.server_cores);
    let processes = DynoProcesses::start(&program, scratch, servers, cores, &more)?;
    let db = open(&processes.target(), client_options(params))?;
    let what = format!(
        "{}, {servers} servers of {cores} cores, {} partitions, over {}, acknowledged: {}",
        db.describe()?.engine,
        params.partitions,
        params.transport.name(),
        params.durability
    );
    Ok((Servers::Several(processes), db, what))
}

/// How clients connect. One that spins takes a core. That is right for a single one, because being
/// woken would be the larger part of its latency.
fn client_options(params: &K2Params) -> OpenOptions {
    let lone = params.outstanding() == 1 || (params.is_pipelined() && params.clients == 1);
    OpenOptions {
        ring: params.transport == Transport::Ring,
        spin: if lone { SPIN } else { Duration::ZERO },
        ..OpenOptions::default()
    }
}

/// Starts one etcd node with its log on the disk of the scratch directory.
fn etcd(scratch: &Path) -> Result<Started, K2Error> {
    let nodes = EtcdNodes::start(scratch, 1)?;
    let db = dyno_txn_open::open(&nodes.target(), &DatabaseOptions::default())?;
    let what = "etcd, one node, over TCP, acknowledged: fsync".to_owned();
    Ok((Servers::Etcd(nodes), db, what))
}

/// The command `dyno txn serve` on this address.
fn serve(listen: &str) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command
        .args(["txn", "serve", "--listen", listen, "--memory", MEMORY])
        .env_remove("DYNO_TOKEN")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    Ok(command)
}

pub(in crate::txn) fn spawn(command: &mut Command) -> Result<Process, String> {
    let child = command.spawn();
    child
        .map(|child| Process {
            child,
            socket: None,
        })
        .map_err(|error| format!("cannot be started: {error}"))
}

/// The first line of its stdout, which says where it listens.
pub(in crate::txn) fn first_line(process: &mut Process) -> Result<String, String> {
    let output = process.child.stdout.take().ok_or("it has no output")?;
    let (sender, receiver) = mpsc::channel();
    // The thread ends with the server, when its stdout is closed.
    thread::spawn(move || {
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        // An error means that the waiting thread has given up.
        let _ = sender.send(lines.next());
        // The rest is read and dropped, so that a server that prints more never blocks on a full
        // pipe.
        lines.for_each(drop);
    });
    let line = receiver.recv_timeout(START_MAX).ok().flatten();
    let line = line.ok_or(format!("it did not listen within {START_MAX:?}"))?;
    let (_, address) = line
        .split_once("listening at ")
        .ok_or(format!("it said `{line}`"))?;
    Ok(address.trim().to_owned())
}

/// One thread's view of a database that has our interface.
struct Client<'a> {
    db: &'a dyn Database,
    table: TableId,
    params: &'a K2Params,
    options: Options,
}

impl Worker for Client<'_> {
    fn run(&mut self, transaction: &Transaction) -> Result<Vec<Option<Vec<u8>>>, Failed> {
        let done = match self.params.form {
            Form::OneShot => {
                let request = request(self.params, self.table, transaction);
                let done = self.db.execute(request, &self.options);
                done.map(|committed| values(committed.answers))
            }
            Form::Batched | Form::Interactive => self.step_by_step(transaction),
        };
        done.map_err(|error| Failed {
            again: error.retry() == Retry::Safe,
            text: error.to_string(),
        })
    }
}

impl Client<'_> {
    fn step_by_step(
        &self,
        transaction: &Transaction,
    ) -> dyno_txn_api::Result<Vec<Option<Vec<u8>>>> {
        let mut running = self.db.begin(&self.options)?;
        let (writes, reads) = operations(self.params, self.table, transaction);
        if !writes.is_empty() {
            running.run(&writes)?;
        }
        let read = if reads.is_empty() {
            Vec::new()
        } else {
            running.run(&reads)?
        };
        running.commit()?;
        Ok(values(read))
    }
}

fn operations(
    params: &K2Params,
    table: TableId,
    transaction: &Transaction,
) -> (Vec<Operation>, Vec<Operation>) {
    let key = |number: u64| Key::new(table, number.to_be_bytes());
    let id = transaction.id;
    let writes = transaction.writes.iter();
    let reads = transaction.reads.iter();
    (
        writes
            .map(|&number| Operation::put(key(number), value(params, number, id)))
            .collect(),
        reads.map(|&number| Operation::Get(key(number))).collect(),
    )
}

/// All operations of a transaction as one request.
pub(super) fn request(params: &K2Params, table: TableId, transaction: &Transaction) -> Request {
    let (mut all, reads) = operations(params, table, transaction);
    all.extend(reads);
    Request::Operations(all)
}

/// The values among the answers, which are those of reads.
pub(super) fn values(answers: Vec<Answer>) -> Vec<Option<Vec<u8>>> {
    let read = answers.into_iter().filter_map(|answer| match answer {
        Answer::Value(value) => Some(value),
        _ => None,
    });
    read.collect()
}
