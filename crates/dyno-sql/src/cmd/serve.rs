//! `dyno-sql serve`: listens, and answers clients until it is told to stop.

use std::env;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use dyno_serve::rustls::ServerConfig;
use dyno_serve::{Registry, Token, guard, tls};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::info;
use tracing::level_filters::LevelFilter;

use crate::args::serve::{LogFormat, LogLevel, ServeArgs};
use crate::serve::counts::Counts;
use crate::serve::engine::{Bounds, Engine, STACK_BYTES};
use crate::serve::tables::{DATABASE, Tables};
use crate::serve::{http, wire};

/// Threads that listen, read requests and send rows. They never compute a statement, so two are
/// enough to stay ahead of the network.
const FRONT_THREADS: usize = 2;
/// Names the variable that holds the token if no file is given, as in `dyno`.
const TOKEN_VARIABLE: &str = "DYNO_TOKEN";

/// Serves the table until SIGINT or SIGTERM.
///
/// # Errors
/// The table cannot be opened, an address is unguarded or taken, or the token or a certificate
/// cannot be read.
pub fn run(args: &ServeArgs) -> Result<()> {
    start_log(args);
    let planners = runtime(FRONT_THREADS, "planners")?;
    let fronts = runtime(FRONT_THREADS, "fronts")?;
    let served = fronts.block_on(serve(args, planners.handle().clone()));
    // A statement may compute for seconds before it notices that no client waits. The process
    // ends it.
    planners.shutdown_background();
    fronts.shutdown_background();
    served
}

async fn serve(args: &ServeArgs, planners: Handle) -> Result<()> {
    let token = token(args.token_file.as_deref())?;
    let tls = certificate(args)?;
    // Opened first, because a server that cannot read its table must not say that it is ready.
    let tables = Tables::open(&args.table, args.limits.limits())?;
    let registry = Registry::new();
    let bounds = Bounds {
        time: Duration::from_millis(args.time_limit_ms),
        rows: args.max_rows,
        statements: args.max_statements,
        threads: args.limits.limits().threads,
    };
    let counts = Counts::new(&registry)?;
    let engine = Arc::new(Engine::new(tables, planners, bounds, counts));
    let (stop, stopped) = watch::channel(false);
    let mut fronts = tokio::task::JoinSet::new();
    let mut ready = String::new();
    if let Some(at) = &args.pg {
        let (listener, address) = listen("--pg", at, token.as_ref()).await?;
        // Writing to a string does not fail.
        let _ = writeln!(ready, "listening at postgres://{address}/{DATABASE}");
        let shared = wire::Shared::new(
            Arc::clone(&engine),
            token.clone(),
            tls.clone(),
            args.max_connections,
        );
        fronts.spawn(wire::serve(listener, Arc::new(shared), stopped.clone()));
    }
    if let Some(at) = &args.http {
        let (listener, address) = listen("--http", at, token.as_ref()).await?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let _ = writeln!(ready, "listening at {scheme}://{address}/");
        let shared = http::Shared::new(
            Arc::clone(&engine),
            registry,
            token,
            tls,
            address,
            args.max_connections,
        );
        fronts.spawn(http::serve(listener, Arc::new(shared), stopped));
    }
    // One write, so that a script that waits for the first line has all of them.
    let mut out = io::stdout().lock();
    out.write_all(ready.as_bytes())
        .and_then(|()| out.flush())
        .context("cannot write to stdout")?;
    drop(out);
    info!("serving {}", args.table.display());
    stop_signal().await?;
    info!("stopping: statements under way are ended");
    // An error means that no front listens any more, which is what is wanted.
    let _ = stop.send(true);
    while fronts.join_next().await.is_some() {}
    Ok(())
}

async fn stop_signal() -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// Listens at the address that a flag names, if it is guarded.
async fn listen(flag: &str, at: &str, token: Option<&Token>) -> Result<(TcpListener, SocketAddr)> {
    let wrong = || format!("{flag} {at}: write HOST:PORT");
    let address = at.to_socket_addrs().with_context(wrong)?.next();
    let address = address.ok_or_else(|| anyhow!(wrong()))?;
    guard(address, token)?;
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}"))?;
    let address = listener.local_addr().context("the address of a listener")?;
    Ok((listener, address))
}

fn token(file: Option<&Path>) -> Result<Option<Token>> {
    // An empty file that the user names is an error: the server would otherwise start without a
    // token, open to everyone.
    if let Some(file) = file {
        return Ok(Some(Token::from_file(file)?));
    }
    let text = env::var(TOKEN_VARIABLE).ok();
    let text = text.filter(|text| !text.is_empty());
    Ok(text.as_deref().map(Token::new).transpose()?)
}

fn certificate(args: &ServeArgs) -> Result<Option<Arc<ServerConfig>>> {
    match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => Ok(Some(tls::server(certificate, key)?)),
        _ => Ok(None),
    }
}

fn runtime(threads: usize, name: &str) -> Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name(name)
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .with_context(|| format!("cannot start the threads of {name}"))
}

/// Starts the log as the daemons of `dyno` do: on standard error, so that standard output stays
/// with the addresses that a script waits for.
fn start_log(args: &ServeArgs) {
    let level = match args.log_level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let log = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        // A line that cannot be written is lost. A complaint about it on the same standard error
        // would panic, and a daemon must outlive the pipe that its log goes to.
        .log_internal_errors(false);
    match args.log_format {
        LogFormat::Text => log.with_target(false).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}
