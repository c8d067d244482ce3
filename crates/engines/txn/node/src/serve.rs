//! A server: an engine that listens, or a process without rows that serves engines.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use dyno_net::{Address, Listener, rustls};
use dyno_serve::{Endpoint, Health, Registry, Settings, Token, guard};
use dyno_txn_api::{Code, Database, Error, Result};

use crate::backup_service::BackupService;
use crate::client::{Connector, Node};
use crate::engine::{Engine, FIGURE_NAMES};
use crate::error::{bad_argument, from_net, unavailable};
use crate::member::start_oracle;
use crate::options::{OpenOptions, Share};
use crate::persist::start_store_server;
use crate::standalone::StandaloneService;

/// What a server process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Hosts all partitions with their logs, and issues timestamps.
    #[default]
    All,
    /// Hosts a share of the partitions of a database in several processes, with their logs.
    Partitions,
    /// Issues timestamps for such a database.
    Oracle,
    /// Keeps the logs of other processes in memory.
    Persist,
}

impl Role {
    /// The name in commands and configuration files.
    pub fn name(self) -> &'static str {
        match self {
            Role::All => "all",
            Role::Partitions => "partitions",
            Role::Oracle => "oracle",
            Role::Persist => "persist",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "all" => Ok(Role::All),
            "persist" => Ok(Role::Persist),
            "partitions" => Ok(Role::Partitions),
            "oracle" => Ok(Role::Oracle),
            other => {
                let text =
                    format!("role `{other}`: it is `all`, `partitions`, `oracle` or `persist`");
                Err(Error::new(Code::BadArgument, text))
            }
        }
    }
}

/// How a server is run.
#[derive(Clone)]
pub struct ServeOptions {
    /// The engine's directory. Roles `oracle` and `persist` have none and ignore it.
    pub data: PathBuf,
    /// `HOST:PORT`. Port 0 takes a free one.
    pub listen: String,
    /// Procedures, cores, partitions, durability, memory. Settings of clients are ignored.
    pub engine: OpenOptions,
    /// The secret that clients must know, of 16 characters at least. Without one the server may
    /// listen only on addresses of this machine alone.
    pub token: Option<String>,
    /// TLS for clients and metrics.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Where `/metrics` and `/healthz` are served, if they are.
    pub metrics: Option<SocketAddr>,
    /// What `/metrics` shows besides the figures of the engine: those of fronts in this process.
    pub registry: Registry,
    /// What the process does; `all` by default.
    pub role: Role,
    /// The folder below which clients may have backups made ([`crate::backup`]). Without one they
    /// may not.
    pub backups: Option<PathBuf>,
    /// For role `partitions` alone, which needs it: which share of the partitions, and where
    /// oracles are.
    pub share: Option<Share>,
}

impl ServeOptions {
    /// Options of a server with role `all`, default engine options, no token, TLS, metrics or
    /// backups.
    pub fn new(data: impl Into<PathBuf>, listen: impl Into<String>) -> Self {
        Self {
            data: data.into(),
            listen: listen.into(),
            engine: OpenOptions::default(),
            token: None,
            tls: None,
            metrics: None,
            registry: Registry::new(),
            role: Role::All,
            backups: None,
            share: None,
        }
    }
}

/// A running server. Dropping it stops it.
pub struct Server {
    running: Running,
    metrics: Option<Endpoint>,
    backups: Option<BackupThread>,
    address: String,
}

enum Running {
    Engine(Arc<Engine>),
    Standalone(Arc<StandaloneService>),
}

/// Starts a server. When this returns it has recovered and listens.
///
/// # Errors
/// As [`crate::open`] for `local:`; [`Code::Denied`] for an address beyond this machine without a
/// token.
pub fn serve(options: ServeOptions) -> Result<Server> {
    let token = options
        .token
        .as_deref()
        .map(Token::new)
        .transpose()
        .map_err(bad_argument)?;
    let address: Address = options.listen.parse().map_err(from_net)?;
    // Before the port is bound: without a token it must not be reachable even for a moment.
    check_guarded(&address, token.as_ref())?;
    if (options.role == Role::Partitions) != options.share.is_some() {
        return Err(bad_argument(
            "a share of the partitions is for role `partitions`, which needs one",
        ));
    }
    if let Some(share) = &options.share {
        check_reachable(&address, share)?;
    }
    // Before recovery, which may take minutes: a port that is taken is reported at once. Clients
    // that connect meanwhile wait in the system's queue.
    let mut listener = Listener::bind(&address).map_err(from_net)?;
    if let Some(tls) = &options.tls {
        listener = listener.with_tls(tls.clone());
    }
    match options.role {
        Role::All | Role::Partitions => serve_engine(options, token, listener),
        Role::Oracle => {
            let oracle = start_oracle(&options.engine, token.clone(), listener)?;
            serve_standalone(oracle, options, token)
        }
        Role::Persist => {
            let store = start_store_server(&options.engine, token.clone(), listener)?;
            serve_standalone(store, options, token)
        }
    }
}

fn serve_engine(options: ServeOptions, token: Option<Token>, listener: Listener) -> Result<Server> {
    let settings = OpenOptions {
        // Its threads connect to other processes of the database, which all have the same secret.
        token: options.token.clone(),
        ..options.engine.clone()
    };
    let engine = Engine::start(
        &options.data,
        &settings,
        token.clone(),
        Some(listener),
        options.share.as_ref(),
    )?;
    let engine = Arc::new(engine);
    let endpoint = |at| endpoint(at, options.registry, &engine, token, options.tls);
    Ok(Server {
        address: engine.address().map(Address::to_string).unwrap_or_default(),
        metrics: options.metrics.map(endpoint).transpose()?,
        backups: options
            .backups
            .map(|folder| BackupThread::start(folder, &engine)),
        running: Running::Engine(engine),
    })
}

fn serve_standalone(
    service: StandaloneService,
    options: ServeOptions,
    token: Option<Token>,
) -> Result<Server> {
    let service = Arc::new(service);
    let endpoint = |at| standalone_endpoint(at, &service, token, options.tls);
    Ok(Server {
        address: service.address().to_string(),
        metrics: options.metrics.map(endpoint).transpose()?,
        backups: None,
        running: Running::Standalone(service),
    })
}

/// Serves the figures and the health of a process without rows. The endpoint holds the service
/// weakly: a scrape that is under way must not keep a server from stopping.
fn standalone_endpoint(
    at: SocketAddr,
    service: &Arc<StandaloneService>,
    token: Option<Token>,
    tls: Option<Arc<rustls::ServerConfig>>,
) -> Result<Endpoint> {
    let registry = Registry::new();
    for (index, (name, _)) in service.stats().into_iter().enumerate() {
        let help = format!("Of the process: {}.", name.replace('_', " "));
        let gauge = registry
            .gauge(&format!("dyno_txn_{name}"), &help, &[])
            .map_err(bad_argument)?;
        let weak = Arc::downgrade(service);
        let now = move || Some(weak.upgrade()?.stats().get(index)?.1);
        registry.refresh_by(move || gauge.set(now().unwrap_or(0) as i64));
    }
    let weak = Arc::downgrade(service);
    let health: Health = Arc::new(move || match weak.upgrade() {
        Some(service) => service.failure().map_or(Ok(()), Err),
        None => Err("the process stops".to_owned()),
    });
    listen(at, registry, health, token, tls)
}

fn listen(
    at: SocketAddr,
    registry: Registry,
    health: Health,
    token: Option<Token>,
    tls: Option<Arc<rustls::ServerConfig>>,
) -> Result<Endpoint> {
    let settings = Settings {
        token,
        tls,
        health: Some(health),
        ..Settings::default()
    };
    Endpoint::start(at, registry, settings).map_err(unavailable)
}

/// Refuses an address that stands for all addresses of this machine, because other processes and
/// clients are told it: on another machine it would lead each of them to itself.
fn check_reachable(listens: &Address, share: &Share) -> Result<()> {
    let advertised = match &share.advertise {
        Some(advertise) => advertise.parse().map_err(from_net)?,
        None => listens.clone(),
    };
    let Address::Tcp { host, .. } = &advertised else {
        return Ok(());
    };
    match host.parse::<IpAddr>() {
        Ok(ip) if ip.is_unspecified() => Err(bad_argument(format!(
            "{advertised}: others would be told this address and cannot reach this process by it: \
             name the address by which they can (`advertise`)"
        ))),
        _ => Ok(()),
    }
}

/// Refuses to listen beyond this machine without a token.
fn check_guarded(address: &Address, token: Option<&Token>) -> Result<()> {
    let Address::Tcp { host, port } = address else {
        return Ok(());
    };
    let failed = |error| bad_argument(format!("{address}: {error}"));
    for at in (host.as_str(), *port).to_socket_addrs().map_err(failed)? {
        guard(at, token).map_err(|error| Error::new(Code::Denied, error))?;
    }
    Ok(())
}

fn endpoint(
    at: SocketAddr,
    registry: Registry,
    engine: &Arc<Engine>,
    token: Option<Token>,
    tls: Option<Arc<rustls::ServerConfig>>,
) -> Result<Endpoint> {
    for (local, id) in engine.layout().here().enumerate() {
        for (index, name) in FIGURE_NAMES.iter().enumerate() {
            let figure = Figure { local, index };
            register(&registry, engine, figure, &id.to_string(), name)?;
        }
    }
    let weak = Arc::downgrade(engine);
    let health: Health = Arc::new(move || match weak.upgrade() {
        Some(engine) => engine.failure().map_or(Ok(()), Err),
        None => Err("the engine has stopped".to_owned()),
    });
    listen(at, registry, health, token, tls)
}

/// A figure of a partition, by both indices of [`Engine::figure`].
#[derive(Clone, Copy)]
struct Figure {
    local: usize,
    index: usize,
}

/// Registers a figure of a partition. Its value is read when it is scraped.
fn register(
    registry: &Registry,
    engine: &Arc<Engine>,
    Figure { local, index }: Figure,
    partition: &str,
    name: &str,
) -> Result<()> {
    let full = format!("dyno_txn_{name}");
    let help = format!(
        "Of the partition: {}.",
        name.trim_end_matches("_total").replace('_', " ")
    );
    let labels = [("partition", partition)];
    let weak = Arc::downgrade(engine);
    let now = move || weak.upgrade().map(|engine| engine.figure(local, index));
    if name.ends_with("_total") {
        let counter = registry
            .counter(&full, &help, &labels)
            .map_err(bad_argument)?;
        registry.refresh_by(move || {
            let grown = now().unwrap_or(0).saturating_sub(counter.get());
            counter.add(grown);
        });
    } else {
        let gauge = registry
            .gauge(&full, &help, &labels)
            .map_err(bad_argument)?;
        registry.refresh_by(move || gauge.set(now().unwrap_or(0) as i64));
    }
    Ok(())
}

/// The thread that makes backups. Dropping it ends the thread after the backup that is under way.
struct BackupThread {
    service: Arc<BackupService>,
    thread: Option<JoinHandle<()>>,
}

impl BackupThread {
    fn start(folder: PathBuf, engine: &Arc<Engine>) -> Self {
        let service = Arc::new(BackupService::new(folder));
        engine.serve_backups(service.clone());
        let (requests, weak) = (service.clone(), Arc::downgrade(engine));
        let gone = || unavailable("the engine has stopped");
        let make = move |path: &Path| match weak.upgrade() {
            Some(engine) => engine.backup(path),
            None => Err(gone()),
        };
        let thread = Some(std::thread::spawn(move || requests.run(make)));
        Self { service, thread }
    }
}

impl Drop for BackupThread {
    fn drop(&mut self) {
        self.service.close();
        if let Some(thread) = self.thread.take() {
            // If it panicked, there is no complete backup, and its client hears of it no more.
            drop(thread.join());
        }
    }
}

impl Server {
    /// Where it listens, as `HOST:PORT` with the port that the system chose.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Where metrics are served, with the port that the system chose.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(Endpoint::address)
    }

    /// Why the server stopped by itself, if it did.
    pub fn failure(&self) -> Option<String> {
        match &self.running {
            Running::Engine(engine) => engine.failure(),
            Running::Standalone(service) => service.failure(),
        }
    }

    /// Figures by name: sums over all partitions, or those of the service.
    pub fn stats(&self) -> Vec<(String, u64)> {
        match &self.running {
            Running::Engine(engine) => engine.stats(),
            Running::Standalone(service) => service.stats(),
        }
    }

    /// A database on the engine of this server, for a front in the same process. It needs no
    /// network and no token. It must be dropped before [`Server::stop`].
    ///
    /// # Errors
    /// [`Code::NotSupported`] if this process has no rows, or only a share of them.
    pub fn database(&self) -> Result<Box<dyn Database>> {
        match &self.running {
            Running::Engine(engine) if engine.has_all_partitions() => {
                let connector = Connector::local(Arc::clone(engine));
                // A front waits for its sockets as well, so its thread must not spin here.
                Ok(Box::new(Node::open(connector, Duration::ZERO)?))
            }
            Running::Engine(_) | Running::Standalone(_) => Err(Error::new(
                Code::NotSupported,
                "this process does not have all rows of the database",
            )),
        }
    }

    /// Copies the running database to `target`, as [`crate::Local::backup`] does.
    ///
    /// # Errors
    /// Those of [`crate::Local::backup`], and [`Code::NotSupported`] if this process has no rows.
    pub fn backup(&self, target: &Path) -> Result<()> {
        match &self.running {
            Running::Engine(engine) => engine.backup(target),
            Running::Standalone(_) => Err(Error::new(
                Code::NotSupported,
                "this process has no rows: ask a process that has some",
            )),
        }
    }

    /// Makes durable what was begun, and stops. Waits for a backup that is under way, because half
    /// of one is of no use.
    ///
    /// # Errors
    /// If a thread failed or a log could not be closed. What was answered is durable even then.
    pub fn stop(self) -> Result<()> {
        let Self {
            running,
            metrics,
            backups,
            ..
        } = self;
        drop(metrics);
        drop(backups);
        let in_use = "the engine is still in use: its figures are being read, or a front is open";
        match running {
            Running::Engine(engine) => match Arc::try_unwrap(engine) {
                Ok(engine) => engine.stop(),
                Err(_) => Err(unavailable(in_use)),
            },
            Running::Standalone(service) => match Arc::try_unwrap(service) {
                Ok(service) => service.stop(),
                Err(_) => Err(unavailable(in_use)),
            },
        }
    }
}
