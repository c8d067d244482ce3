//! `dyno txn serve`: serves the engine to other processes and hosts.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::bail;
use dyno_serve::{Registry, Token, guard, tls};
use dyno_suite::Stop;
use dyno_tpcc::transactions;
use dyno_txn_api::Procedures;
use dyno_txn_check::workload;
use dyno_txn_node::{OpenOptions, Role, ServeOptions, Server, Share, serve};
use dyno_txn_resp::{Options as RespOptions, RespServer};
use tracing::info;

use crate::args::{ProceduresArg, RoleArg, TxnServeArgs};
use crate::exit::Exit;
use crate::logging;
use crate::secrets;
use crate::terminal;

/// Time between two checks for a request to stop.
const TICK: Duration = Duration::from_millis(50);

pub fn run(args: &TxnServeArgs, stop: &Stop) -> anyhow::Result<Exit> {
    logging::start(args.log);
    let options = options(args)?;
    let registry = options.registry.clone();
    let server = serve(options)?;
    let front = |at| front(args, &server, at, registry);
    let mut resp = args.resp.map(front).transpose()?;
    let mut text = format!("listening at {}\n", server.address());
    if let Some(resp) = &resp {
        let _ = writeln!(text, "clients of Redis at {}", resp.address());
    }
    if let Some(metrics) = server.metrics() {
        let scheme = if args.tls_cert.is_some() {
            "https"
        } else {
            "http"
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "metrics at {scheme}://{metrics}/metrics");
    }
    terminal::print(&text)?;
    info!("serving at {}", server.address());
    while !stop.asked() {
        // A server whose engine has failed could only refuse its clients, so the process ends and
        // whatever started it can start it again.
        if let Some(reason) = server.failure() {
            bail!("the engine has stopped: {reason}");
        }
        if resp.as_ref().is_some_and(RespServer::has_failed) {
            bail!("the listener for clients of Redis has stopped");
        }
        thread::sleep(TICK);
    }
    info!("stopping: transactions under way are ended first");
    // Before the engine, because what clients of Redis have sent is still carried out by it.
    if let Some(resp) = &mut resp {
        resp.stop();
    }
    server.stop()?;
    Ok(Exit::Done)
}

/// Starts the listener for clients of Redis, with the token and the certificate of the server.
fn front(
    args: &TxnServeArgs,
    server: &Server,
    at: SocketAddr,
    registry: Registry,
) -> anyhow::Result<RespServer> {
    let token = secrets::token(args.token_file.as_deref())?;
    let options = RespOptions {
        token: token.as_deref().map(Token::new).transpose()?,
        tls: secrets::server_tls(args.tls_cert.as_deref(), args.tls_key.as_deref())?,
        registry,
        ..RespOptions::new(at)
    };
    Ok(RespServer::start(server.database()?, options)?)
}

fn options(args: &TxnServeArgs) -> anyhow::Result<ServeOptions> {
    let role = match args.role {
        RoleArg::All => Role::All,
        RoleArg::Persist => Role::Persist,
        RoleArg::Partitions => Role::Partitions,
        RoleArg::Oracle => Role::Oracle,
    };
    let data = match (role, &args.data) {
        (Role::Persist | Role::Oracle, None) => PathBuf::new(),
        (Role::Persist | Role::Oracle, Some(_)) => {
            bail!("--role {role} keeps nothing on a disk: leave --data out")
        }
        (_, Some(data)) => data.clone(),
        (_, None) => bail!("--data DIR is missing: where rows and logs are"),
    };
    if role == Role::Persist && args.backups.is_some() {
        bail!("--role persist has no rows to back up: leave --backups out");
    }
    if args.resp.is_some() && role != Role::All {
        bail!("--resp is for --role all: clients of Redis need all rows in one process");
    }
    let calls = role == Role::Partitions || !args.persist.is_empty();
    match (&args.tls_cert, &args.tls_ca) {
        (Some(_), None) if role == Role::Partitions => bail!(
            "--tls-ca PEM is missing: with --tls-cert the processes of a database speak TLS with each other, and know \
             each other by it"
        ),
        (_, Some(_)) if !calls => {
            bail!(
                "--tls-ca is for a process that calls others: --role partitions, or with --persist"
            )
        }
        _ => {}
    }
    let token = secrets::token(args.token_file.as_deref())?;
    if let Some(at) = args.resp {
        // Before the engine recovers, which may take minutes.
        let token = token.as_deref().map(Token::new).transpose()?;
        guard(at, token.as_ref())?;
    }
    Ok(ServeOptions {
        data,
        listen: args.listen.clone(),
        engine: OpenOptions {
            procedures: procedures(args)?,
            cores: args.cores.clone().map_or(Vec::new(), |cores| cores.0),
            partitions: args.partitions,
            durability: args.durability,
            persist: args.persist.clone(),
            memory_bytes: args.memory,
            checkpoint_bytes: args.checkpoint,
            segment_bytes: segment(args.checkpoint),
            tls: args.tls_ca.as_deref().map(tls::client).transpose()?,
            ..OpenOptions::default()
        },
        tls: secrets::server_tls(args.tls_cert.as_deref(), args.tls_key.as_deref())?,
        token,
        metrics: args.metrics,
        registry: Registry::new(),
        backups: args.backups.clone(),
        role,
        share: share(args)?,
    })
}

/// The procedures of each workload, and of clients of Redis; a workload that is named twice counts
/// once.
fn procedures(args: &TxnServeArgs) -> dyno_txn_api::Result<Procedures> {
    let workloads = &args.procedures;
    let mut procedures = Procedures::new();
    if args.resp.is_some() {
        dyno_txn_resp::register_procedures(&mut procedures)?;
    }
    if workloads.contains(&ProceduresArg::Tpcc) {
        transactions::register(&mut procedures)?;
    }
    if workloads.contains(&ProceduresArg::Check) {
        workload::register_procedures(&mut procedures)?;
    }
    Ok(procedures)
}

/// Bytes of a log segment. A checkpoint frees whole segments, so there are about eight for each
/// checkpoint, each of 1 to 64 MiB.
fn segment(checkpoint: u64) -> u64 {
    (checkpoint / 8)
        .clamp(1 << 20, 64 << 20)
        .next_multiple_of(1 << 20)
}

/// The share of the partitions that this process serves; `None` if it serves all.
fn share(args: &TxnServeArgs) -> anyhow::Result<Option<Share>> {
    match (args.role, args.part, args.join.is_empty()) {
        (RoleArg::Partitions, Some((part, of)), false) => Ok(Some(Share {
            part,
            of,
            join: args.join.clone(),
            advertise: args.advertise.clone(),
        })),
        (RoleArg::Partitions, ..) => bail!(
            "--role partitions needs --part I/N (which process of how many, from 0) and --join, where oracles are"
        ),
        (_, None, true) => Ok(None),
        _ => bail!("--part and --join are for --role partitions"),
    }
}
