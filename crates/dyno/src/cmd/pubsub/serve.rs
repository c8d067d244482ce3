//! `dyno pubsub serve`: a broker, with `--data` the server under it, and with `--kafka` the server
//! that Kafka's clients connect to.

mod kafka;

use std::fmt::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use dyno_postgres::{Cluster, Options as ServerOptions};
use dyno_pubsub::{Connection, Dsn};
use dyno_pubsub_broker::{Broker, BrokerError, Options};
use dyno_serve::rustls::ServerConfig;
use dyno_serve::{Endpoint, Registry, Settings, Token};
use dyno_suite::Stop;
use tracing::{info, warn};

use crate::args::PubsubServeArgs;
use crate::exit::Exit;
use crate::logging;
use crate::secrets;
use crate::terminal;

/// Time between two checks for a request to stop.
const TICK: Duration = Duration::from_millis(50);
/// Time between two checks that the PostgreSQL server is alive.
const LOOK: Duration = Duration::from_secs(1);

pub fn run(args: &PubsubServeArgs, stop: &Stop) -> anyhow::Result<Exit> {
    logging::start(args.log);
    let token = token(args)?;
    let (mut cluster, dsn) = database(args)?;
    let mut options = options(args, dsn.clone(), token.as_ref())?;
    let kafka = args.kafka.as_deref().map(kafka::Front::new);
    let kafka = kafka.transpose()?;
    options
        .listen
        .extend(kafka.as_ref().map(kafka::Front::broker));
    let mut broker = Broker::start(options).map_err(plain)?;
    let registry = Registry::new();
    let mut kafka = kafka
        .map(|front| front.start(args, &dsn, &broker, token.as_ref(), &registry))
        .transpose()?;
    let endpoint = args
        .metrics
        .as_deref()
        .map(|at| metrics(args, at, &broker, token, registry))
        .transpose()?;
    let scheme = if args.tls_cert.is_some() {
        "https"
    } else {
        "http"
    };
    terminal::print(&greeting(
        &broker,
        kafka.as_ref().map(kafka::Served::address),
        endpoint.as_ref().map(|endpoint| (scheme, endpoint)),
        cluster.is_some().then_some(&dsn),
    ))?;
    info!("serving, with at most {} bytes of memory", args.memory);
    let watched = watch(cluster.as_mut(), stop);
    info!("stopping: what was accepted is appended first");
    // Clients of Kafka are let go first, because they need the broker. Then the broker stops: it
    // appends the records that it has accepted, and needs the server for that. An error of the
    // watch is reported only after all have stopped.
    if let Some(kafka) = &mut kafka {
        kafka.stop();
    }
    broker.stop();
    drop(endpoint);
    if let Some(cluster) = &mut cluster {
        cluster.stop()?;
    }
    watched?;
    Ok(Exit::Done)
}

/// Unwraps the library's error, which says whether a retry is safe.
fn plain(error: BrokerError) -> anyhow::Error {
    match error {
        BrokerError::Log(error) => error.into(),
        other => other.into(),
    }
}

fn token(args: &PubsubServeArgs) -> anyhow::Result<Option<Token>> {
    let token = secrets::token(args.token_file.as_deref())?;
    Ok(token.as_deref().map(Token::new).transpose()?)
}

fn server_tls(args: &PubsubServeArgs) -> anyhow::Result<Option<Arc<ServerConfig>>> {
    secrets::server_tls(args.tls_cert.as_deref(), args.tls_key.as_deref())
}

/// The PostgreSQL server: a private one, in which the schema is installed, or the user's as it is.
fn database(args: &PubsubServeArgs) -> anyhow::Result<(Option<Cluster>, Dsn)> {
    let Some(data) = &args.data else {
        let dsn = args.dsn.as_deref().unwrap_or_default();
        return Ok((None, Dsn::parse(dsn)?));
    };
    let options = ServerOptions {
        os_user: args.pg_user.clone(),
        ..ServerOptions::default()
    };
    let cluster = Cluster::open(&data.join("postgres"), options)?;
    let dsn = cluster.dsn();
    Connection::open(&dsn)?.install()?;
    Ok((Some(cluster), dsn))
}

fn options(args: &PubsubServeArgs, dsn: Dsn, token: Option<&Token>) -> anyhow::Result<Options> {
    let listen = args.listen.strip_prefix("dyno://").unwrap_or(&args.listen);
    let mut options = Options::new(dsn, listen.parse().context("--listen")?);
    options.memory_bytes = usize::try_from(args.memory).context("--memory")?;
    options.linger = args.linger;
    options.lease = args.lease;
    options.tls = server_tls(args)?;
    options.token = token.cloned();
    Ok(options)
}

/// Serves the broker's counters, under the broker's own token.
fn metrics(
    args: &PubsubServeArgs,
    at: &str,
    broker: &Broker,
    token: Option<Token>,
    registry: Registry,
) -> anyhow::Result<Endpoint> {
    let address = socket_address("--metrics", at)?;
    broker.show(&registry)?;
    let settings = Settings {
        token,
        tls: server_tls(args)?,
        ..Settings::default()
    };
    Ok(Endpoint::start(address, registry, settings)?)
}

/// The address that a flag names.
fn socket_address(flag: &str, at: &str) -> anyhow::Result<SocketAddr> {
    let wrong = || format!("{flag} {at}: write HOST:PORT");
    let mut addresses = at.to_socket_addrs().with_context(wrong)?;
    addresses.next().ok_or_else(|| anyhow!(wrong()))
}

/// The lines that a script waits for: one for each address of the broker, one for the metrics, one
/// for the private server.
fn greeting(
    broker: &Broker,
    kafka: Option<SocketAddr>,
    endpoint: Option<(&str, &Endpoint)>,
    private: Option<&Dsn>,
) -> String {
    let mut text = String::new();
    // The last address is the private one of the front for Kafka's clients, if there is one.
    let own = broker.addresses().len() - usize::from(kafka.is_some());
    for address in broker.addresses().iter().take(own) {
        // Writing to a string does not fail, here and below.
        let _ = writeln!(text, "listening at {address}");
    }
    if let Some(address) = kafka {
        let _ = writeln!(text, "clients of Kafka at {address}");
    }
    if let Some((scheme, endpoint)) = endpoint {
        let _ = writeln!(text, "metrics at {scheme}://{}/metrics", endpoint.address());
    }
    if let Some(dsn) = private {
        let _ = writeln!(text, "without the broker: --dsn '{}'", dsn.text());
    }
    text
}

/// Waits for a request to stop. Meanwhile it restarts a private server that was killed.
fn watch(mut cluster: Option<&mut Cluster>, stop: &Stop) -> anyhow::Result<()> {
    let mut looked = Instant::now();
    while !stop.asked() {
        thread::sleep(TICK);
        if let Some(cluster) = &mut cluster
            && looked.elapsed() >= LOOK
        {
            // The broker retries while the server is away, so clients see a delay and not an error.
            looked = Instant::now();
            if cluster.pids().postmaster.is_none() {
                warn!("the PostgreSQL server has ended; it is started again");
                cluster.restart()?;
            }
        }
    }
    Ok(())
}
