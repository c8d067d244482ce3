//! The most commits a second that the server reaches with one row each: by our client and by
//! PostgreSQL's own pgbench.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use dyno_postgres::Installation;
use dyno_pubsub::Dsn;
use dyno_record::Answer;
use dyno_suite::protocol::{Phase, Reply, Request};
use postgres::Client;

use super::FlowError;
use super::server::{Server, connect};
use crate::peers::unknown;
use crate::{Params, RigError, Windows};

const TABLE: &str = "CREATE TABLE commits (n int NOT NULL)";
const INSERT: &str = "INSERT INTO commits VALUES (1)";

/// Seconds between two progress lines of pgbench, which prints at most one each second.
const PROGRESS_S: u64 = 1;
/// How long it runs if only the answer is wanted; pgbench takes whole seconds.
const VERIFYING_S: u64 = 1;

/// The result of one of the two programs.
struct Committed {
    /// Commits, as the program counted them itself.
    count: u64,
    /// Commits a second over the whole run.
    rate: f64,
    /// Commits a second in each window of `window_s` seconds.
    windows: Vec<f64>,
    window_s: f64,
}

/// `pubsub-commits`: for `seconds`, commits of one row each from `clients` connections. The peer
/// `pgbench` does the same.
pub(crate) fn commits(
    params: &mut Params<'_>,
    request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    let clients = params.count("clients")?;
    let seconds = match request.phase {
        Phase::Verify => params.count("seconds")?.min(VERIFYING_S),
        _ => params.count("seconds")?,
    };
    if clients == 0 || clients > 1_000 {
        return Err(params.wrong("clients", format!("{clients} is not within 1 and 1000")));
    }
    if seconds == 0 || seconds > 36_000 {
        return Err(params.wrong("seconds", format!("{seconds} is not within 1 and 36000")));
    }
    let connections = usize::try_from(clients).unwrap_or(usize::MAX);
    let server = Server::start(&request.scratch, connections, 1)?;
    let mut client = connect(&server.dsn())?;
    client.batch_execute(TABLE).map_err(FlowError::from)?;
    let wal = |client: &mut Client| -> Result<f64, FlowError> {
        let row = client.query_one("SELECT (pg_current_wal_lsn() - '0/0')::float8", &[])?;
        Ok(row.get(0))
    };
    let before = wal(&mut client)?;
    let done = match peer {
        Some("pgbench") => by_pgbench(&server.dsn(), &request.scratch, clients, seconds)?,
        Some(other) => return Err(unknown(other)),
        None => by_us(&server, clients, seconds)?,
    };
    let wal_bytes = wal(&mut client)? - before;
    let row = client.query_one("SELECT count(*) FROM commits", &[]);
    let stored: i64 = row.map_err(FlowError::from)?.get(0);
    // Both programs count for themselves, and the server has the last word.
    if stored.unsigned_abs() != done.count {
        let text = format!("{} rows are there after {} commits", stored, done.count);
        return Err(FlowError::Wrong(text).into());
    }
    Ok(Reply {
        // The number of commits depends on the speed. It was compared above with the server's own
        // count of rows.
        answer: Some(Answer {
            count: 1,
            checksum: "every commit is there".to_string(),
        }),
        metrics: BTreeMap::from([
            ("throughput".to_string(), done.rate),
            (
                "wal-bytes".to_string(),
                wal_bytes / done.count.max(1) as f64,
            ),
        ]),
        facts: BTreeMap::from([("server".to_string(), server.describe()?)]),
        windows: done.windows,
        window_s: Some(done.window_s),
        ..Reply::default()
    })
}

/// Why pgbench cannot run on this machine; `None` if it can.
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

/// Inserts from `clients` connections, each as fast as it is answered.
fn by_us(server: &Server, clients: u64, seconds: u64) -> Result<Committed, FlowError> {
    let measured = Duration::from_secs(seconds);
    // All connections are open and all statements prepared before the clock starts: a server forks
    // a process for each.
    let mut ready = Vec::new();
    for _ in 0..clients {
        let mut client = connect(&server.dsn())?;
        let insert = client.prepare(INSERT)?;
        ready.push((client, insert));
    }
    let started = Instant::now();
    let parts: Vec<Result<(u64, Windows), FlowError>> = thread::scope(|scope| {
        let threads: Vec<_> = ready
            .into_iter()
            .map(|(mut client, insert)| {
                scope.spawn(move || {
                    let (mut count, mut windows) = (0, Windows::over(measured));
                    while started.elapsed() < measured {
                        client.execute(&insert, &[])?;
                        count += 1;
                        windows.count(started.elapsed().as_nanos() as u64, 1);
                    }
                    Ok((count, windows))
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|part| part.unwrap_or(Err(FlowError::Panicked)))
            .collect()
    });
    let took_s = started.elapsed().as_secs_f64();
    let (mut count, mut windows) = (0, Windows::over(measured));
    for part in parts {
        let (more, seen) = part?;
        count += more;
        windows.add(&seen);
    }
    Ok(Committed {
        count,
        rate: count as f64 / took_s,
        windows: windows.rates(1.0),
        window_s: windows.length_s(),
    })
}

/// The same by pgbench. The rate is the one that it reports without the time to connect.
fn by_pgbench(
    dsn: &Dsn,
    scratch: &Path,
    clients: u64,
    seconds: u64,
) -> Result<Committed, FlowError> {
    let script = scratch.join("insert.sql");
    fs::write(&script, format!("{INSERT};\n")).map_err(|e| FlowError::Way(e.to_string()))?;
    let installation = Installation::find(None).map_err(|e| FlowError::Way(e.to_string()))?;
    let output = Command::new(installation.program("pgbench"))
        .args(["--no-vacuum", "--protocol", "prepared", "--jobs", "2"])
        .args(["--client", &clients.to_string()])
        .args(["--time", &seconds.to_string()])
        .args(["--progress", &PROGRESS_S.to_string()])
        .arg("--file")
        .arg(&script)
        .arg(dsn.text())
        .output()
        .map_err(|e| FlowError::Way(format!("pgbench does not run: {e}")))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let progress = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(FlowError::Way(format!("pgbench: {}", progress.trim())));
    }
    let missing = || {
        FlowError::Way(format!(
            "pgbench named no rate and count: {}",
            stdout.trim()
        ))
    };
    let (rate, count) = rate_and_count_in(&stdout).ok_or_else(missing)?;
    let mut windows = windows_in(&progress);
    // The last line may cover only a fraction of a second.
    windows.truncate(seconds as usize);
    Ok(Committed {
        count,
        rate,
        windows,
        window_s: PROGRESS_S as f64,
    })
}

/// The rate and the number of transactions in pgbench's report.
fn rate_and_count_in(report: &str) -> Option<(f64, u64)> {
    let after = |prefix: &str| report.lines().find_map(|line| line.strip_prefix(prefix));
    let rate = after("tps = ")?.split_whitespace().next()?.parse().ok()?;
    let count = after("number of transactions actually processed: ")?;
    // With a fixed number of transactions it prints `DONE/ASKED`.
    let done = count.split('/').next()?.trim();
    Some((rate, done.parse().ok()?))
}

/// Rates in pgbench's progress: `progress: 5.0 s, 1234.5 tps, lat ...`.
fn windows_in(progress: &str) -> Vec<f64> {
    let lines = progress.lines().filter_map(|line| {
        let (_, rest) = line.strip_prefix("progress: ")?.split_once(" s, ")?;
        rest.split_once(" tps")?.0.parse().ok()
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_count_and_windows_are_read_from_a_report_of_pgbench() {
        let report = "number of transactions actually processed: 4021\nlatency average = 0.512 ms\n\
                      initial connection time = 9.871 ms\n\
                      tps = 1953.125000 (without initial connection time)\n";
        assert_eq!(rate_and_count_in(report), Some((1_953.125, 4_021)));
        assert_eq!(rate_and_count_in("number of clients: 8\n"), None);
        let progress = "pgbench: starting\nprogress: 1.0 s, 1950.1 tps, lat 0.5 ms stddev 0.1, 0 failed\n\
                        progress: 2.0 s, 1903.0 tps, lat 0.5 ms stddev 0.1, 0 failed\n";
        assert_eq!(windows_in(progress), [1_950.1, 1_903.0]);
    }
}
