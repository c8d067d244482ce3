//! Judging the tables of a directory: their sizes, the rules of the specification, and the rows
//! themselves.

use anyhow::{Context, Result};
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::record_batch::RecordBatch;
use dyno_tpch::rules::{Rule, Test, key_columns};
use dyno_tpch::{Generator, Table};
use futures::StreamExt;
use serde::Serialize;

use super::open::Tables;
use super::text;

/// Offending rows that a check names.
pub const ROWS_SHOWN: usize = 3;

/// One check and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The table that it is about.
    pub table: &'static str,
    /// What must be true, as a sentence.
    pub says: String,
    /// Whether it is true, and the rows that break it.
    #[serde(flatten)]
    pub state: State,
}

/// What came of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum State {
    /// It holds for every row.
    Good,
    /// It does not hold, or not for some rows.
    Broken {
        /// How many rows break it, where rows do.
        #[serde(skip_serializing_if = "Option::is_none")]
        rows: Option<u64>,
        /// What is wrong, the first rows first.
        found: Vec<String>,
    },
    /// It cannot be decided from the tables that are there.
    Unknown {
        /// Which table is missing.
        reason: String,
    },
}

/// How many rows a table has.
///
/// # Errors
/// The table cannot be read.
pub async fn count(tables: &Tables, table: Table, generator: &Generator) -> Result<Check> {
    let expected = generator.rows(table);
    let found = tables.count(table).await?;
    Ok(Check {
        table: table.name(),
        says: format!("there are {expected} rows (clause 4.2.5)"),
        state: if found == expected {
            State::Good
        } else {
            State::Broken {
                rows: None,
                found: vec![format!("there are {found}")],
            }
        },
    })
}

/// All rules of one table. Those about single rows are tried in one pass over it.
///
/// # Errors
/// The table cannot be read, or a query does not fit into the memory that it may use.
pub async fn rules(tables: &Tables, table: Table, rules: &[Rule]) -> Result<Vec<Check>> {
    let conditions: Vec<&str> = rules.iter().filter_map(condition).collect();
    let mut broken = broken_rows(tables, table, &conditions).await?.into_iter();
    let mut checks = Vec::with_capacity(rules.len());
    for rule in rules {
        let missing = rule
            .needs
            .iter()
            .find(|need| !tables.files.contains_key(need));
        let state = match (&rule.test, missing) {
            (_, Some(missing)) => State::Unknown {
                reason: format!("there is no table {missing}"),
            },
            (Test::EachRow { holds, shows }, None) => match broken.next().unwrap_or(0) {
                0 => State::Good,
                rows => {
                    let sql = offenders(table, holds, shows);
                    let (_, found) = first_rows(tables, &sql).await?;
                    State::Broken {
                        rows: Some(rows),
                        found,
                    }
                }
            },
            (Test::NoRows { sql }, None) => match first_rows(tables, sql).await? {
                (0, _) => State::Good,
                (rows, found) => State::Broken {
                    rows: Some(rows),
                    found,
                },
            },
        };
        checks.push(Check {
            table: table.name(),
            says: rule.says.clone(),
            state,
        });
    }
    Ok(checks)
}

fn condition(rule: &Rule) -> Option<&str> {
    match &rule.test {
        Test::EachRow { holds, .. } => Some(holds),
        Test::NoRows { .. } => None,
    }
}

/// Counts for each condition the rows that break it, in one pass over the table.
async fn broken_rows(tables: &Tables, table: Table, conditions: &[&str]) -> Result<Vec<u64>> {
    let sums: Vec<String> = conditions
        .iter()
        .enumerate()
        .map(|(place, holds)| {
            // A condition over a NULL is neither true nor false. It goes to ELSE and counts as
            // broken, because no column of TPC-H may be NULL. An empty table sums to NULL.
            format!("coalesce(sum(CASE WHEN {holds} THEN 0 ELSE 1 END), 0) AS c{place}")
        })
        .collect();
    let sql = format!("SELECT {} FROM {table}", sums.join(", "));
    let batches = collect(tables, &sql).await?;
    let mut counts = Vec::with_capacity(conditions.len());
    for column in batches.iter().flat_map(RecordBatch::columns) {
        let count = column.as_primitive_opt::<Int64Type>();
        let count = count.filter(|counts| counts.len() == 1);
        let count = count.context("a count is not an integer")?.value(0);
        counts.push(count.unsigned_abs());
    }
    Ok(counts)
}

fn offenders(table: Table, holds: &str, shows: &[&str]) -> String {
    let keys = key_columns(table).join(", ");
    let mut shown = vec![keys.as_str()];
    shown.extend(shows);
    let columns = match shows {
        [] => "*".to_owned(),
        _ => shown.join(", "),
    };
    format!(
        "SELECT {columns} FROM {table} WHERE ({holds}) IS NOT TRUE ORDER BY {keys} LIMIT {ROWS_SHOWN}"
    )
}

/// How many rows a query gives, and the first of them as `name value, name value`.
async fn first_rows(tables: &Tables, sql: &str) -> Result<(u64, Vec<String>)> {
    let frame = tables.sql(sql).await.with_context(|| failed(sql))?;
    let mut stream = frame.execute_stream().await.with_context(|| failed(sql))?;
    let (mut rows, mut shown) = (0, Vec::new());
    // A table with one wrong column breaks millions of rows. They are counted as they come, and
    // only the first few are kept.
    while let Some(batch) = stream.next().await {
        let batch = batch.with_context(|| failed(sql))?;
        rows += batch.num_rows() as u64;
        let wanted = batch.num_rows().min(ROWS_SHOWN - shown.len());
        let schema = batch.schema();
        for row in text::rows(&[batch.slice(0, wanted)])? {
            let values = schema.fields().iter().zip(row);
            let values: Vec<String> = values
                .map(|(field, value)| format!("{} {value}", field.name()))
                .collect();
            shown.push(values.join(", "));
        }
    }
    Ok((rows, shown))
}

async fn collect(tables: &Tables, sql: &str) -> Result<Vec<RecordBatch>> {
    let frame = tables.sql(sql).await.with_context(|| failed(sql))?;
    frame.collect().await.with_context(|| failed(sql))
}

fn failed(sql: &str) -> String {
    let sql: Vec<&str> = sql.split_whitespace().collect();
    format!("cannot check: {}", sql.join(" "))
}
