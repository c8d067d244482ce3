//! A server: an engine that listens.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::thread::JoinHandle;

use dyno_net::{Address, Listener, rustls};
use dyno_serve::{Endpoint, Health, Registry, Settings, Token, guard};
use dyno_txn_api::{Code, Error, Result};

use crate::backups::Desk;
use crate::engine::{Engine, FIGURE_NAMES};
use crate::error::{bad_argument, from_net, unavailable};
use crate::lone::Lone;
use crate::member::start_oracle;
use crate::options::{OpenOptions, Share};
use crate::persist::start_keeper;

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Partitions, their logs and the oracle.
    #[default]
    All,
    /// A share of the partitions of a database in several processes, and their logs.
    Partitions,
    /// Stamps for such a database.
    Oracle,
    /// The bytes of others' logs, in memory.
    Persist,
}

impl Role {
    /// The name that people write.
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
    /// The engine's directory; role `persist` has none, and this is not looked at.
    pub data: PathBuf,
    /// `HOST:PORT`; port 0 takes a free one.
    pub listen: String,
    /// Procedures, cores, partitions, durability, memory; what belongs to clients is not looked at.
    pub engine: OpenOptions,
    /// The secret that clients must know, 16 characters at least; without one only this machine is
    /// listened to.
    pub token: Option<String>,
    /// TLS for clients and metrics.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Where `/metrics` and `/healthz` are served.
    pub metrics: Option<SocketAddr>,
    /// What the process does.
    pub role: Role,
    /// Below it clients may have backups made ([`crate::backup`]).
    pub backups: Option<PathBuf>,
    /// For role `partitions`: which share of the partitions, and where oracles are.
    pub share: Option<Share>,
}

impl ServeOptions {
    /// A server on a directory and an address, with an engine as it is by default.
    pub fn new(data: impl Into<PathBuf>, listen: impl Into<String>) -> Self {
        Self {
            data: data.into(),
            listen: listen.into(),
            engine: OpenOptions::default(),
            token: None,
            tls: None,
            metrics: None,
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
    backups: Option<Backups>,
    address: String,
}

enum Running {
    Engine(Arc<Engine>),
    Lone(Arc<Lone>),
}

/// Starts a server; it has recovered and listens when this returns.
///
/// # Errors
/// As [`crate::open`] for `local:`; [`Code::Denied`] for an address beyond this machine without a token.
pub fn serve(options: ServeOptions) -> Result<Server> {
    let token = options
        .token
        .as_deref()
        .map(Token::new)
        .transpose()
        .map_err(bad_argument)?;
    let address: Address = options.listen.parse().map_err(from_net)?;
    guarded(&address, token.as_ref())?;
    if (options.role == Role::Partitions) != options.share.is_some() {
        return Err(bad_argument(
            "a share of the partitions is for role `partitions`, which needs one",
        ));
    }
    if let Some(share) = &options.share {
        reachable(&address, share)?;
    }
    let mut listener = Listener::bind(&address).map_err(from_net)?;
    if let Some(tls) = &options.tls {
        listener = listener.with_tls(tls.clone());
    }
    match options.role {
        Role::All | Role::Partitions => serve_engine(options, token, listener),
        Role::Oracle => {
            let oracle = start_oracle(&options.engine, token.clone(), listener)?;
            serve_lone(oracle, options, token)
        }
        Role::Persist => {
            let keeper = start_keeper(&options.engine, token.clone(), listener)?;
            serve_lone(keeper, options, token)
        }
    }
}

fn serve_engine(options: ServeOptions, token: Option<Token>, listener: Listener) -> Result<Server> {
    let settings = OpenOptions {
        // Processes of one database have one secret.
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
    let endpoint = |at| endpoint(at, &engine, token, options.tls);
    Ok(Server {
        address: engine.address().map(Address::to_string).unwrap_or_default(),
        metrics: options.metrics.map(endpoint).transpose()?,
        backups: options
            .backups
            .map(|folder| Backups::start(folder, &engine)),
        running: Running::Engine(engine),
    })
}

fn serve_lone(lone: Lone, options: ServeOptions, token: Option<Token>) -> Result<Server> {
    let lone = Arc::new(lone);
    let endpoint = |at| lone_endpoint(at, &lone, token, options.tls);
    Ok(Server {
        address: lone.address().to_string(),
        metrics: options.metrics.map(endpoint).transpose()?,
        backups: None,
        running: Running::Lone(lone),
    })
}

/// What a process without rows shows: its figures, and whether it goes on.
fn lone_endpoint(
    at: SocketAddr,
    lone: &Arc<Lone>,
    token: Option<Token>,
    tls: Option<Arc<rustls::ServerConfig>>,
) -> Result<Endpoint> {
    let registry = Registry::new();
    for (place, (name, _)) in lone.stats().into_iter().enumerate() {
        let help = format!("Of the process: {}.", name.replace('_', " "));
        let gauge = registry
            .gauge(&format!("dyno_txn_{name}"), &help, &[])
            .map_err(bad_argument)?;
        let weak = Arc::downgrade(lone);
        let now = move || Some(weak.upgrade()?.stats().get(place)?.1);
        registry.refresh_by(move || gauge.set(now().unwrap_or(0) as i64));
    }
    let weak = Arc::downgrade(lone);
    let health: Health = Arc::new(move || match weak.upgrade() {
        Some(lone) => lone.failure().map_or(Ok(()), Err),
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

/// Other processes and clients are told where this one is: an address that stands for all of this machine would be
/// each reader's own machine.
fn reachable(listens: &Address, share: &Share) -> Result<()> {
    let told = match &share.advertise {
        Some(advertise) => advertise.parse().map_err(from_net)?,
        None => listens.clone(),
    };
    let Address::Tcp { host, .. } = &told else {
        return Ok(());
    };
    match host.parse::<IpAddr>() {
        Ok(ip) if ip.is_unspecified() => Err(bad_argument(format!(
            "{told} is where this process would be said to be, and others cannot reach it there: name the address at \
             which they do (`advertise`)"
        ))),
        _ => Ok(()),
    }
}

/// Nobody listens beyond this machine without a token.
fn guarded(address: &Address, token: Option<&Token>) -> Result<()> {
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
    engine: &Arc<Engine>,
    token: Option<Token>,
    tls: Option<Arc<rustls::ServerConfig>>,
) -> Result<Endpoint> {
    let registry = Registry::new();
    for (local, id) in engine.layout().here().enumerate() {
        for (place, name) in FIGURE_NAMES.iter().enumerate() {
            register(&registry, engine, (local, id), place, name)?;
        }
    }
    let weak = Arc::downgrade(engine);
    let health: Health = Arc::new(move || match weak.upgrade() {
        Some(engine) => engine.failure().map_or(Ok(()), Err),
        None => Err("the engine has stopped".to_owned()),
    });
    listen(at, registry, health, token, tls)
}

/// One figure of one partition; it is brought up to date when it is asked for.
fn register(
    registry: &Registry,
    engine: &Arc<Engine>,
    (local, id): (usize, u32),
    place: usize,
    name: &str,
) -> Result<()> {
    let full = format!("dyno_txn_{name}");
    let help = format!(
        "Of the partition: {}.",
        name.trim_end_matches("_total").replace('_', " ")
    );
    let label = id.to_string();
    let labels = [("partition", label.as_str())];
    let weak = Arc::downgrade(engine);
    let now = move || weak.upgrade().map(|engine| engine.figure(local, place));
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

/// The thread that makes backups; dropping it ends it after the one under way.
struct Backups {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

impl Backups {
    fn start(folder: PathBuf, engine: &Arc<Engine>) -> Self {
        let desk = Arc::new(Desk::new(folder));
        engine.open_desk(desk.clone());
        let (at, weak) = (desk.clone(), Arc::downgrade(engine));
        let gone = || unavailable("the engine has stopped");
        let make = move |path: &Path| match weak.upgrade() {
            Some(engine) => engine.backup(path),
            None => Err(gone()),
        };
        let thread = Some(std::thread::spawn(move || at.work(make)));
        Self { desk, thread }
    }
}

impl Drop for Backups {
    fn drop(&mut self) {
        self.desk.end();
        if let Some(thread) = self.thread.take() {
            // A panic of it left no whole backup, and whoever asked hears nothing more.
            drop(thread.join());
        }
    }
}

impl Server {
    /// Where it listens, `HOST:PORT` with the port that it got.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Where metrics are served.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(Endpoint::address)
    }

    /// Why the engine stopped by itself, if it did.
    pub fn failure(&self) -> Option<String> {
        match &self.running {
            Running::Engine(engine) => engine.failure(),
            Running::Lone(lone) => lone.failure(),
        }
    }

    /// The last thing that went wrong without ending anything, such as a checkpoint that failed.
    pub fn last_note(&self) -> Option<String> {
        match &self.running {
            Running::Engine(engine) => engine.last_note(),
            Running::Lone(_) => None,
        }
    }

    /// Sums over all partitions, or what is kept of others' logs, by name.
    pub fn stats(&self) -> Vec<(String, u64)> {
        match &self.running {
            Running::Engine(engine) => engine.stats(),
            Running::Lone(lone) => lone.stats(),
        }
    }

    /// As [`crate::Local::backup`].
    ///
    /// # Errors
    /// As there.
    pub fn backup(&self, target: &Path) -> Result<()> {
        match &self.running {
            Running::Engine(engine) => engine.backup(target),
            Running::Lone(_) => Err(Error::new(
                Code::NotSupported,
                "this process has no rows: ask the one that has",
            )),
        }
    }

    /// Makes durable what was begun, and stops.
    ///
    /// # Errors
    /// Why a log could not be ended in peace.
    pub fn stop(self) -> Result<()> {
        let Self {
            running,
            metrics,
            backups,
            ..
        } = self;
        drop(metrics);
        // One that is under way is waited for: half of one would be of no use.
        drop(backups);
        let looked_at = "somebody still looks at the engine's figures";
        match running {
            Running::Engine(engine) => match Arc::try_unwrap(engine) {
                Ok(engine) => engine.stop(),
                Err(_) => Err(unavailable(looked_at)),
            },
            Running::Lone(lone) => match Arc::try_unwrap(lone) {
                Ok(lone) => lone.stop(),
                Err(_) => Err(unavailable(looked_at)),
            },
        }
    }
}
