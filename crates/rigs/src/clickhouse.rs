//! Loads into a real ClickHouse server, which each invocation starts for itself on loopback.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use dyno_ingest::contract::{COLUMNS, MODE, TEXT_COLUMNS, bands};
use dyno_ingest::load::{Input, LoadReport, Options, Outcome, Progress};
use dyno_ingest_clickhouse::private_server::{Config, Ports, PrivateServer};
use dyno_ingest_clickhouse::{Servers, Settings};
use dyno_ingest_feeds::{load_into, wspr};
use dyno_record::Answer;
use dyno_suite::protocol::Reply;

use crate::ingest::{all_loaded, detail, total_bytes};
use crate::pipeline::at_once;
use crate::{Params, RigError};

/// The server's own client, which is the peer.
const PEER: &str = "clickhouse-client";

/// The table that both loaders fill.
const TABLE: &str = "wspr.bronze";

/// Why the peer cannot run on this machine; `None` if it can.
pub(crate) fn peer_missing() -> Option<String> {
    let client = Command::new(PEER).arg("--version").output();
    let text = "clickhouse-client: it is not installed (Debian: clickhouse-client)";
    PrivateServer::missing().or_else(|| client.is_err().then(|| text.to_owned()))
}

/// `clickhouse-load`: loads `files` with `workers` into a table of a fresh server. The clock runs
/// from opening the inputs to the last commit; the server is up before it. `text` is how strings
/// are stored: `fixed` or `dictionary`.
pub(crate) fn load(
    params: &mut Params<'_>,
    scratch: &Path,
    speak_as: Option<&str>,
) -> Result<Reply, RigError> {
    params.text("source")?;
    let files = params.paths("files")?;
    let workers = usize::try_from(params.count("workers")?).unwrap_or(usize::MAX);
    let dictionary_types = match params.text("text")? {
        "fixed" => false,
        "dictionary" => true,
        other => {
            return Err(params.wrong("text", format!("`{other}` is neither fixed nor dictionary")));
        }
    };
    let inputs_bytes = total_bytes(&files)?;
    let folder = scratch.join("server");
    fs::create_dir_all(&folder).map_err(|e| RigError::io(&folder, e))?;
    let server = PrivateServer::start(&folder, Ports::free()?, &Config::default())?;
    let (seconds, columns, facts) = match speak_as {
        None => {
            let settings = Settings {
                dictionary_types,
                connections: workers.div_ceil(files.len().max(1)),
                ..Settings::default()
            };
            let report = ours(&server, &files, workers, &settings)?;
            (report.seconds, stored(), facts(&report))
        }
        Some(_) => {
            let seconds = by_pipe(&server, &files, workers)?;
            (seconds, computed(), BTreeMap::new())
        }
    };
    // Both loaders are judged by the same query on the server. The peer's table lacks the derived
    // columns, so they are computed there.
    let sum = sums(&server, TABLE, &columns)?;
    let bytes = "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'wspr' AND table = 'bronze'";
    let table_bytes = number(&server, bytes)?;
    let per_second = |amount: f64| amount / seconds;
    Ok(Reply {
        metrics: BTreeMap::from([
            ("throughput".to_string(), per_second(sum.count as f64)),
            ("time".to_string(), seconds),
            ("io-rate".to_string(), per_second(inputs_bytes as f64)),
            ("table-bytes".to_string(), table_bytes as f64),
            (
                "effective-write".to_string(),
                per_second(table_bytes as f64),
            ),
        ]),
        answer: Some(sum),
        facts,
        ..Reply::default()
    })
}

/// Loads the files as the public command does.
fn ours(
    server: &PrivateServer,
    files: &[PathBuf],
    workers: usize,
    settings: &Settings,
) -> Result<LoadReport, RigError> {
    let address = server.address(TABLE)?;
    let options = Options {
        workers,
        ..Options::default()
    };
    let servers = Servers {
        address,
        settings: settings.clone(),
    };
    let inputs = files.iter().cloned().map(Input::File).collect();
    let report = load_into(
        &wspr::FEED,
        inputs,
        &servers,
        &options,
        &Progress::default(),
    )?;
    all_loaded(&report)?;
    Ok(report)
}

/// Names the slowest stage, and what the server did about merging.
fn facts(report: &LoadReport) -> BTreeMap<String, String> {
    let (stage, stage_s) = report.stages().longest();
    let (mut waited_s, mut parts_most) = (0.0, 0);
    for archive in &report.archives {
        if let Outcome::Loaded {
            server: Some(server),
            ..
        } = &archive.outcome
        {
            waited_s += server.merge_wait_s;
            parts_most = parts_most.max(server.parts_most);
        }
    }
    // The loader waits while the server has too many parts, which no stage of its own counts.
    let bottleneck = if waited_s > stage_s {
        "database merges".to_string()
    } else {
        stage.to_string()
    };
    let merges = format!("{waited_s:.2} s waited for merges, at most {parts_most} parts");
    BTreeMap::from([
        ("bottleneck".to_string(), bottleneck),
        (
            "detail".to_string(),
            format!("{}; {merges}", detail(report, stage_s)),
        ),
    ])
}

/// Runs `gzip -dc FILE | clickhouse-client` on `workers` threads, and returns the seconds from the
/// first file's start to the last file's end.
fn by_pipe(server: &PrivateServer, files: &[PathBuf], workers: usize) -> Result<f64, RigError> {
    server.ask("CREATE DATABASE wspr")?;
    server.ask(
        "CREATE TABLE wspr.bronze (id UInt64, timestamp DateTime('UTC'), reporter FixedString(16), \
         reporter_grid FixedString(8), snr Int8, frequency Decimal64(7), callsign FixedString(16), \
         grid FixedString(8), power Int8, drift Int8, distance UInt32, azimuth UInt16, band Int16, \
         version FixedString(8), code UInt8) ENGINE = MergeTree PARTITION BY toYYYYMM(timestamp) \
         ORDER BY (timestamp, band, callsign)",
    )?;
    let begun = Instant::now();
    at_once(files, workers as u64, |file| pipe(server, file))?;
    Ok(begun.elapsed().as_secs_f64())
}

fn pipe(server: &PrivateServer, file: &Path) -> Result<(), RigError> {
    let packed = file.extension().is_some_and(|extension| extension == "gz");
    let mut unpacking = Command::new(if packed { "gzip" } else { "cat" });
    if packed {
        unpacking.arg("-dc");
    }
    let input = File::open(file).map_err(|e| RigError::io(file, e))?;
    let mut unpacking = unpacking
        .stdin(input)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| failed("gzip", e))?;
    let text = unpacking.stdout.take();
    let client = Command::new(PEER)
        .args(["--host", "127.0.0.1", "--port"])
        .arg(server.ports().tcp.to_string())
        .args(["--query", "INSERT INTO wspr.bronze FORMAT CSV"])
        .stdin(text.map_or(Stdio::null(), Stdio::from))
        .output()
        .map_err(|e| failed(PEER, e))?;
    // The client's output is collected to its end first. Waiting for gzip before that could block
    // for ever: it stops when the pipe to the client is full.
    let unpacked = unpacking.wait().map_err(|e| failed("gzip", e))?;
    // gzip is judged first. If it failed, the client has loaded a part of the file and reports
    // success.
    if !unpacked.success() {
        return Err(failed("gzip", unpacked));
    }
    if client.status.success() {
        Ok(())
    } else {
        Err(failed(PEER, String::from_utf8_lossy(&client.stderr)))
    }
}

fn failed(program: &'static str, reason: impl std::fmt::Display) -> RigError {
    let reason = reason.to_string();
    RigError::Program { program, reason }
}

/// The SQL expression of each contract column, for a table in our layout.
fn stored() -> Vec<String> {
    COLUMNS.map(str::to_owned).into()
}

/// The SQL expression of each contract column, computed from the fields of an archive.
fn computed() -> Vec<String> {
    let hertz = "toUInt64(intDiv(toInt64(frequency * 10000000) + 5, 10))";
    let bands: Vec<String> = bands()
        .iter()
        .map(|(low, high, code)| format!("{hertz} >= {low} AND {hertz} <= {high}, {code}"))
        .collect();
    let column = |name: &str| match name {
        "frequency" => hertz.to_owned(),
        "band" => format!("multiIf({}, 0)", bands.join(", ")),
        "mode" => format!("'{MODE}'"),
        "column_count" => "15".to_owned(),
        other => other.to_owned(),
    };
    COLUMNS.map(column).into()
}

/// Rows and checksum (docs/formats/checksums.md) of a table with the contract's columns on a
/// server, by that server's own functions.
///
/// # Errors
/// When the server does not answer, or with something else.
pub fn server_checksum(server: &PrivateServer, table: &str) -> Result<Answer, RigError> {
    sums(server, table, &stored())
}

fn sums(server: &PrivateServer, table: &str, columns: &[String]) -> Result<Answer, RigError> {
    // A sum of products wraps at 64 bits in the same way on every system, so it does not depend on
    // the order of the rows.
    let sums: Vec<String> = COLUMNS
        .iter()
        .zip(columns)
        .map(|(name, column)| {
            let value = if TEXT_COLUMNS.contains(name) {
                let text = format!("toStringCutToZero(CAST({column} AS String))");
                format!("reinterpretAsUInt32(reverse(unhex(substring(hex(MD5({text})), 1, 8))))")
            } else {
                column.clone()
            };
            format!("lower(hex(sum(toUInt64({value}) * (1 + id % 65521))))")
        })
        .collect();
    let answer = server.ask(&format!("SELECT count(), {} FROM {table}", sums.join(", ")))?;
    let mut values = answer.trim_end().split('\t');
    let count = values.next().and_then(|rows| rows.parse().ok());
    let count = count.ok_or_else(|| failed("clickhouse-server", &answer))?;
    let sums: Vec<String> = values.map(|sum| format!("{sum:0>16}")).collect();
    Ok(Answer {
        count,
        checksum: sums.join("-"),
    })
}

fn number(server: &PrivateServer, sql: &str) -> Result<u64, RigError> {
    let answer = server.ask(sql)?;
    let number = answer.trim().parse();
    number.map_err(|_| failed("clickhouse-server", answer))
}
