//! The server threads of all clients: in this process, or in one of their own, as on two hosts.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use dyno_net::Address;
use dyno_suite::protocol::{Phase, Reply, Request};
use serde_json::json;

use super::super::k2::{K2Error, Process, first_line, spawn};
use super::server::Server;
use super::{CallParams, LEAST_BYTES};
use crate::txn::k2::{Transport, size};
use crate::{Params, RigError};

/// The workload of a process of server threads.
const WORKLOAD: &str = "txn-calls-server";

/// Running server threads, which end when this is dropped.
pub(super) enum Servers {
    Here {
        _servers: Vec<Server>,
        at: Vec<Address>,
    },
    Apart {
        _process: Process,
        at: Vec<Address>,
    },
}

impl Servers {
    pub fn start(params: &CallParams, scratch: &Path) -> Result<Servers, K2Error> {
        if params.apart {
            let (process, at) = apart(params, scratch)?;
            return Ok(Servers::Apart {
                _process: process,
                at,
            });
        }
        let servers = here(params, scratch)?;
        let at = servers.iter().map(|server| server.address.clone());
        let at = at.collect();
        Ok(Servers::Here {
            _servers: servers,
            at,
        })
    }

    /// One address for each client thread.
    pub fn addresses(&self) -> &[Address] {
        match self {
            Servers::Here { at, .. } | Servers::Apart { at, .. } => at,
        }
    }
}

fn here(params: &CallParams, scratch: &Path) -> Result<Vec<Server>, K2Error> {
    (0..params.threads)
        .map(|number| Server::start(params, scratch, number))
        .collect()
}

/// Starts this program as a child with the server threads in it. It is killed when dropped, as a
/// server of transactions is.
fn apart(params: &CallParams, scratch: &Path) -> Result<(Process, Vec<Address>), K2Error> {
    let failed = |reason: String| K2Error::Process {
        what: "the process of the server threads".to_owned(),
        reason,
    };
    let request = Request {
        workload: WORKLOAD.to_owned(),
        params: [
            ("carrier", json!(params.transport.name())),
            ("answer", json!(params.answer_bytes)),
            ("ack-every", json!(params.every)),
            ("threads", json!(params.threads)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into(),
        scratch: scratch.to_owned(),
        phase: Phase::Measure,
    };
    // A file instead of a pipe, because the child reads its stdin to the end, which a pipe has
    // when it is closed.
    let file = scratch.join("server.json");
    let text = serde_json::to_vec(&request).map_err(|error| failed(error.to_string()))?;
    fs::write(&file, text).map_err(|error| failed(error.to_string()))?;
    let input = File::open(&file).map_err(|error| failed(error.to_string()))?;
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(program);
    command.arg("rig").stdin(input).stdout(Stdio::piped());
    let mut process = spawn(&mut command).map_err(&failed)?;
    let line = first_line(&mut process).map_err(&failed)?;
    let at: Result<Vec<Address>, _> = line.split(',').map(str::parse).collect();
    Ok((process, at?))
}

/// `txn-calls-server`: the server threads of `txn-rpc` and `txn-transport`, until the process is
/// killed. It is the child of such a workload and of no use in a suite.
pub(crate) fn serve(params: &mut Params<'_>, request: &Request) -> Result<Reply, RigError> {
    let parsed = CallParams {
        transport: Transport::read(params)?,
        request_bytes: LEAST_BYTES,
        answer_bytes: size(params.count("answer")?),
        connections: 1,
        window: 1,
        every: size(params.count("ack-every")?),
        duration: std::time::Duration::ZERO,
        threads: size(params.count("threads")?),
        apart: false,
    };
    let servers = here(&parsed, &request.scratch)?;
    let at: Vec<String> = servers
        .iter()
        .map(|server| server.address.to_string())
        .collect();
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "listening at {}", at.join(",")).and_then(|()| out.flush());
    written.map_err(|error| RigError::io("standard output", error))?;
    // The threads serve; this one has nothing to do until the parent kills the process.
    loop {
        thread::park();
    }
}
