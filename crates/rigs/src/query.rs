//! Queries on a table, by `dyno-sql` as a child: the SQL engine is a program of its own.

use std::collections::BTreeMap;
use std::path::Path;

use dyno_record::Answer;
use dyno_suite::protocol::Reply;
use md5::{Digest, Md5};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ingest::{TABLE, load_into};
use crate::sql::{printed, sql_engine};
use crate::{Params, RigError};

const TOP_TEN: &str = "SELECT callsign, avg(snr) AS avg_snr, count(*) AS count FROM spots \
                       GROUP BY callsign ORDER BY count DESC, callsign LIMIT 10";

/// The texts of `query-spots`, the same for all systems.
const SPOTS_QUERIES: &str = include_str!("../../../peers/spots_queries.sql");

/// The line before each query of the file, followed by its name.
const NAME: &str = "-- name: ";

/// Rows of the top ten that the record keeps as they are, for a table of them.
const SHOWN: usize = 5;

/// What `dyno-sql bench` prints; `R` is a row of the answer.
#[derive(Debug, Deserialize)]
struct Bench<R> {
    rows_scanned: u64,
    /// Bytes of the table's files that one repetition read.
    bytes_scanned: u64,
    /// Seconds of each repetition, in order.
    windows: Vec<f64>,
    row_count: usize,
    rows: Vec<R>,
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
    let bench: Bench<Row> = bench(params, TOP_TEN)?;
    let rows: Vec<String> = bench
        .rows
        .iter()
        .map(|row| format!("{}|{}|{:.6}", row.callsign, row.count, row.avg_snr))
        .collect();
    let count = bench.rows_scanned;
    let mut reply = reply(&bench, count, count, &rows)?;
    for (number, row) in (1..=SHOWN).zip(&bench.rows) {
        let cells = [
            ("callsign", row.callsign.clone()),
            ("mean-snr", format!("{:.2} dB", row.avg_snr)),
            ("spots", row.count.to_string()),
        ];
        let facts = cells.map(|(name, text)| (format!("row-{number}-{name}"), text));
        reply.facts.extend(facts);
    }
    Ok(reply)
}

/// `query-spots`: a query of the texts by its name, on a table of `rows` rows; the count of the
/// answer is that of its rows.
pub(crate) fn spots(params: &mut Params<'_>) -> Result<Reply, RigError> {
    let name = params.text("query")?;
    let table_rows = params.count("rows")?;
    let sql =
        spots_query(name).ok_or_else(|| params.wrong("query", format!("there is no `{name}`")))?;
    let bench: Bench<BTreeMap<String, Value>> = bench(params, sql)?;
    if bench.rows.len() != bench.row_count {
        return Err(RigError::Sql(format!(
            "{name} has {} rows, too many to be compared",
            bench.row_count
        )));
    }
    let mut rows: Vec<String> = bench.rows.iter().map(line).collect();
    rows.sort_unstable();
    reply(&bench, bench.row_count as u64, table_rows, &rows)
}

/// Runs a query as often as the parameters say.
fn bench<R: DeserializeOwned>(params: &mut Params<'_>, sql: &str) -> Result<Bench<R>, RigError> {
    let table = Path::new(params.text("db")?).join(TABLE);
    let (threads, repeats) = (params.count("threads")?, params.count("repeats")?);
    let mut command = sql_engine()?;
    command
        .arg("bench")
        .arg(&table)
        .arg(sql)
        .args(["--threads", &threads.to_string()])
        .args(["--repeats", &repeats.to_string()]);
    printed(command)
}

/// The median repetition is the figure, in rows of the table by second.
fn reply<R>(
    bench: &Bench<R>,
    count: u64,
    table_rows: u64,
    rows: &[String],
) -> Result<Reply, RigError> {
    let mut times_s = bench.windows.clone();
    times_s.sort_by(f64::total_cmp);
    let Some(&median_s) = times_s.get(times_s.len() / 2) else {
        return Err(RigError::Sql("dyno-sql timed nothing".to_string()));
    };
    let rate = |seconds: f64| table_rows as f64 / seconds;
    Ok(Reply {
        answer: Some(Answer {
            count,
            checksum: rows_checksum(rows),
        }),
        metrics: [
            ("throughput".to_string(), rate(median_s)),
            ("time".to_string(), median_s),
            ("scanned-bytes".to_string(), bench.bytes_scanned as f64),
            (
                "scan-rate".to_string(),
                bench.bytes_scanned as f64 / median_s,
            ),
        ]
        .into(),
        facts: [("detail".to_string(), format!("read by {}", bench.operator))].into(),
        windows: bench.windows.iter().map(|s| rate(*s)).collect(),
        ..Reply::default()
    })
}

/// The query of this name, without the line that names it.
fn spots_query(name: &str) -> Option<&'static str> {
    SPOTS_QUERIES
        .split(NAME)
        .skip(1)
        .filter_map(|part| part.split_once('\n'))
        .find(|(named, _)| named.trim() == name)
        .map(|(_, sql)| sql.trim())
}

/// A row of the answer as docs/formats/checksums.md defines it, its columns in the order of their
/// names.
fn line(row: &BTreeMap<String, Value>) -> String {
    let fields: Vec<String> = row
        .values()
        .map(|field| match field {
            Value::Null => "NULL".to_string(),
            Value::Number(number) if number.is_f64() => {
                format!("{:.4}", number.as_f64().unwrap_or(f64::NAN))
            }
            Value::String(text) => match text.strip_suffix('Z') {
                Some(moment) if moment.len() >= 19 && moment.as_bytes()[10] == b'T' => {
                    moment.to_string()
                }
                _ => text.clone(),
            },
            other => other.to_string(),
        })
        .collect();
    fields.join("|")
}

/// MD5 of the answer's rows, as docs/formats/checksums.md defines it.
fn rows_checksum(rows: &[String]) -> String {
    hex(&Md5::digest(rows.join(";")))
}

/// Formats bytes as lower-case hex digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_hashed_as_the_peers_hash_them() {
        let rows = [
            "K1ABC|7|-12.500000".to_string(),
            "G4XYZ|3|0.333333".to_string(),
        ];
        // printf 'K1ABC|7|-12.500000;G4XYZ|3|0.333333' | md5sum
        assert_eq!(rows_checksum(&rows), "efb8f7dd840b18431148e8ca4226fe2c");
    }

    #[test]
    fn a_row_is_written_as_the_peers_write_it() {
        let row = serde_json::json!({
            "snr": -12.0, "callsign": "UR5Z", "band": 7, "seen": "2023-02-01T00:00:00Z", "grid": null
        });
        let row: BTreeMap<String, Value> = serde_json::from_value(row).expect("an object");
        assert_eq!(line(&row), "7|UR5Z|NULL|2023-02-01T00:00:00|-12.0000");
    }

    #[test]
    fn every_query_has_a_name_and_a_text() {
        let names: Vec<&str> = SPOTS_QUERIES
            .split(NAME)
            .skip(1)
            .filter_map(|part| part.lines().next())
            .collect();
        assert_eq!(names.len(), 10);
        for name in names {
            let sql = spots_query(name).expect(name);
            assert!(sql.starts_with("SELECT "), "{name}: {sql}");
            assert!(!sql.contains("--"), "{name}: {sql}");
        }
        assert_eq!(spots_query("band"), None);
    }
}
