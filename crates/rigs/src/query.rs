//! The top-ten query on a table, by `dyno-sql` as a child: the SQL engine is a program of its own.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use dyno_record::Answer;
use dyno_suite::protocol::Reply;
use md5::{Digest, Md5};
use serde::Deserialize;

use crate::ingest::{TABLE, load_into};
use crate::table_checksum::hex;
use crate::{Params, RigError};

const TOP_TEN: &str = "SELECT callsign, avg(snr) AS avg_snr, count(*) AS count FROM spots \
                       GROUP BY callsign ORDER BY count DESC, callsign LIMIT 10";

/// What `dyno-sql bench` prints.
#[derive(Debug, Deserialize)]
struct Bench {
    rows_scanned: u64,
    /// Seconds of each repetition.
    windows: Vec<f64>,
    rows: Vec<Row>,
    operator: String,
}

#[derive(Debug, Deserialize)]
struct Row {
    callsign: String,
    avg_snr: f64,
    count: u64,
}

/// `query-prepare`: loads `files` into a table that stays.
pub(crate) fn prepare(params: &mut Params<'_>, scratch: &Path) -> Result<Reply, RigError> {
    params.text("source")?;
    let files = params.paths("files")?;
    let report = load_into(&files, params.count("workers")?, &scratch.join(TABLE))?;
    Ok(Reply {
        answer: Some(Answer {
            count: report.rows(),
            checksum: "-".to_string(),
        }),
        ..Reply::default()
    })
}

/// `query-top-ten`: the query on the table below `db`, `repeats` times with `threads`; the median
/// is the figure, each repetition a window.
pub(crate) fn top_ten(params: &mut Params<'_>) -> Result<Reply, RigError> {
    let table = Path::new(params.text("db")?).join(TABLE);
    let (threads, repeats) = (params.count("threads")?, params.count("repeats")?);
    let program = sql_program()?;
    let output = Command::new(&program)
        .arg("bench")
        .arg(&table)
        .arg(TOP_TEN)
        .args(["--threads", &threads.to_string()])
        .args(["--repeats", &repeats.to_string()])
        .output()
        .map_err(|e| RigError::io(&program, e))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
        return Err(RigError::Sql(format!(
            "dyno-sql failed, {}: {said}",
            output.status
        )));
    }
    reply(&serde_json::from_slice(&output.stdout)?)
}

fn reply(bench: &Bench) -> Result<Reply, RigError> {
    let mut times_s = bench.windows.clone();
    times_s.sort_by(f64::total_cmp);
    let Some(&median_s) = times_s.get(times_s.len() / 2) else {
        return Err(RigError::Sql("dyno-sql timed nothing".to_string()));
    };
    let count = bench.rows_scanned;
    Ok(Reply {
        answer: Some(Answer {
            count,
            checksum: rows_checksum(&bench.rows),
        }),
        metrics: [
            ("throughput".to_string(), count as f64 / median_s),
            ("time".to_string(), median_s),
        ]
        .into(),
        facts: [("detail".to_string(), format!("read by {}", bench.operator))].into(),
        windows: bench.windows.iter().map(|s| count as f64 / s).collect(),
        histogram: None,
    })
}

/// MD5 of the answer's rows, as FORMAT.md defines it.
fn rows_checksum(rows: &[Row]) -> String {
    let rows: Vec<String> = rows
        .iter()
        .map(|row| format!("{}|{}|{:.6}", row.callsign, row.count, row.avg_snr))
        .collect();
    hex(&Md5::digest(rows.join(";")))
}

/// The SQL engine lies beside this program.
fn sql_program() -> Result<PathBuf, RigError> {
    let own = env::current_exe().map_err(|e| RigError::io("this program", e))?;
    let program = own.with_file_name("dyno-sql");
    if program.is_file() {
        Ok(program)
    } else {
        Err(RigError::Sql(format!(
            "{} is missing; build it with `cargo build --release -p dyno-sql`",
            program.display()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_hashed_as_the_peers_hash_them() {
        let rows = [
            Row {
                callsign: "K1ABC".into(),
                avg_snr: -12.5,
                count: 7,
            },
            Row {
                callsign: "G4XYZ".into(),
                avg_snr: 1.0 / 3.0,
                count: 3,
            },
        ];
        // printf 'K1ABC|7|-12.500000;G4XYZ|3|0.333333' | md5sum
        assert_eq!(rows_checksum(&rows), "efb8f7dd840b18431148e8ca4226fe2c");
    }
}
