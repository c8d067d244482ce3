//! What the server can commit at most: one row and one commit a time, by a client of ours and by the server's own pgbench.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use dyno_pubsub::Dsn;
use dyno_pubsub::server::Installation;
use dyno_record::Answer;
use dyno_suite::protocol::{Reply, Request};
use postgres::Client;

use super::FlowError;
use super::server::{Server, connect};
use crate::{Params, RigError};

const TABLE: &str = "CREATE TABLE commits (n int NOT NULL)";
const INSERT: &str = "INSERT INTO commits VALUES (1)";

/// `pubsub-commits`: `commits` of one row each from `clients` connections. The peer `pgbench` does the same.
pub(crate) fn commits(
    params: &mut Params<'_>,
    request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    let clients = params.count("clients")?;
    let asked = params.count("commits")?;
    if clients == 0 || clients > 1_000 {
        return Err(params.wrong("clients", format!("{clients} is not within 1 and 1000")));
    }
    // Each does as many, so that both programs do the same.
    let each = asked.div_ceil(clients);
    let connections = usize::try_from(clients).unwrap_or(usize::MAX);
    let server = Server::start(&request.scratch, connections, 1)?;
    let mut client = connect(&server.dsn())?;
    client.batch_execute(TABLE).map_err(FlowError::from)?;
    let wal = |client: &mut Client| -> Result<f64, FlowError> {
        let row = client.query_one("SELECT (pg_current_wal_lsn() - '0/0')::float8", &[])?;
        Ok(row.get(0))
    };
    let before = wal(&mut client)?;
    let rate = match peer {
        Some("pgbench") => by_pgbench(&server.dsn(), &request.scratch, clients, each)?,
        Some(other) => return Err(RigError::Peer(other.to_string())),
        None => by_us(&server, clients, each)?,
    };
    let wal_bytes = wal(&mut client)? - before;
    let row = client.query_one("SELECT count(*), sum(n) FROM commits", &[]);
    let row = row.map_err(FlowError::from)?;
    let (count, sum): (i64, i64) = (row.get(0), row.get(1));
    Ok(Reply {
        answer: Some(Answer {
            count: count.unsigned_abs(),
            checksum: format!("{sum:x}"),
        }),
        metrics: BTreeMap::from([
            ("throughput".to_string(), rate),
            ("wal-bytes".to_string(), wal_bytes / (each * clients) as f64),
        ]),
        facts: BTreeMap::from([("server".to_string(), server.describe()?)]),
        ..Reply::default()
    })
}

/// Why the machine cannot run it; nothing where it can.
pub(crate) fn pgbench_missing() -> Option<String> {
    match Installation::find(None) {
        Err(error) => Some(error.to_string()),
        Ok(found) => {
            let program = found.program("pgbench");
            let missing = || format!("there is no {}", program.display());
            (!program.is_file()).then(missing)
        }
    }
}

/// Commits a second of connections that insert as fast as they are answered.
fn by_us(server: &Server, clients: u64, each: u64) -> Result<f64, FlowError> {
    let mut ready = Vec::new();
    for _ in 0..clients {
        let mut client = connect(&server.dsn())?;
        let insert = client.prepare(INSERT)?;
        ready.push((client, insert));
    }
    let wrong: Mutex<Option<FlowError>> = Mutex::new(None);
    let started = Instant::now();
    thread::scope(|scope| {
        for (mut client, insert) in ready {
            let wrong = &wrong;
            scope.spawn(move || {
                for _ in 0..each {
                    if let Err(error) = client.execute(&insert, &[]) {
                        if let Ok(mut wrong) = wrong.lock() {
                            wrong.get_or_insert(error.into());
                        }
                        return;
                    }
                }
            });
        }
    });
    let took_s = started.elapsed().as_secs_f64();
    match wrong.into_inner() {
        Ok(None) => Ok((each * clients) as f64 / took_s),
        Ok(Some(error)) => Err(error),
        Err(_) => Err(FlowError::Panicked),
    }
}

/// The same by pgbench: transactions a second without the time to connect, as it says.
fn by_pgbench(dsn: &Dsn, scratch: &Path, clients: u64, each: u64) -> Result<f64, FlowError> {
    let script = scratch.join("insert.sql");
    fs::write(&script, format!("{INSERT};\n")).map_err(|e| FlowError::Way(e.to_string()))?;
    let installation = Installation::find(None).map_err(|e| FlowError::Way(e.to_string()))?;
    let output = Command::new(installation.program("pgbench"))
        .args(["--no-vacuum", "--protocol", "prepared", "--jobs", "2"])
        .args(["--client", &clients.to_string()])
        .args(["--transactions", &each.to_string()])
        .arg("--file")
        .arg(&script)
        .arg(dsn.text())
        .output()
        .map_err(|e| FlowError::Way(format!("pgbench does not run: {e}")))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(FlowError::Way(format!("pgbench: {}", error.trim())));
    }
    rate_in(&said).ok_or_else(|| FlowError::Way(format!("pgbench named no rate: {}", said.trim())))
}

/// The rate in pgbench's report.
fn rate_in(report: &str) -> Option<f64> {
    let line = report
        .lines()
        .find_map(|line| line.strip_prefix("tps = "))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_read_from_a_report_of_pgbench() {
        let report = "latency average = 0.512 ms\ninitial connection time = 9.871 ms\n\
                      tps = 1953.125000 (without initial connection time)\n";
        assert_eq!(rate_in(report), Some(1_953.125));
        assert_eq!(rate_in("number of clients: 8\n"), None);
    }
}
