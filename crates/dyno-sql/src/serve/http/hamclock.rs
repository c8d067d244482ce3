//! What HamClock and its successors fetch: the last spots of one station or square, a line each.
//!
//! The form is the one in which the backend of HamClock answers: seconds since 1970, grid and call
//! of the sender, grid and call of the receiver, mode, Hz, and dB (open-hamclock-backend, issue
//! 156). `of` in the name of a parameter asks for what was heard of a station, `by` for what it
//! heard itself.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::ScalarValue;

use super::answer::Answer;
use super::request::Request;
use super::spots::Filters;
use crate::serve::engine::{Engine, Question};
use crate::serve::refusal::{Kind, Refusal};

/// The age of spots, in seconds, when the request does not say: that of the clocks.
const AGE_S: i64 = 1800;
/// The greatest age, in seconds: a day, as the backend allows.
const MOST_AGE_S: i64 = 86_400;
/// The most lines, if an answer may have as many rows. A clock draws each as a path on its map.
const LINES: usize = 5000;

/// What is fetched, by the feed that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fetched {
    Wspr,
    Psk,
    Rbn,
}

impl Fetched {
    /// By the name of the file, which a clock asks for in a folder that depends on its version.
    pub(super) fn named(file: &str) -> Option<Self> {
        match file {
            "fetchWSPR.pl" => Some(Self::Wspr),
            "fetchPSKReporter.pl" => Some(Self::Psk),
            "fetchRBN.pl" => Some(Self::Rbn),
            _ => None,
        }
    }

    /// The table, and its columns for the grid and call of the sender, the grid and call of the
    /// receiver, mode, frequency and dB.
    fn columns(self) -> (&'static str, [&'static str; 7]) {
        match self {
            Self::Wspr => (
                "spots",
                [
                    "grid",
                    "callsign",
                    "reporter_grid",
                    "reporter",
                    "mode",
                    "frequency",
                    "snr",
                ],
            ),
            Self::Psk => (
                "psk",
                [
                    "sender_grid",
                    "sender",
                    "receiver_grid",
                    "receiver",
                    "mode",
                    "frequency",
                    "snr",
                ],
            ),
            // The network's archives have no grids. A clock then places a station by its prefix.
            Self::Rbn => (
                "rbn",
                [
                    "''",
                    "dx_call",
                    "''",
                    "de_call",
                    "tx_mode",
                    "frequency",
                    "snr",
                ],
            ),
        }
    }
}

pub(super) async fn answer(engine: &Arc<Engine>, fetched: Fetched, request: &Request) -> Answer {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_s = now.map_or(0, |since| since.as_secs().cast_signed());
    let most = LINES.min(engine.row_limit());
    let question = match question(fetched, request, now_s, most) {
        Ok(question) => question,
        Err(refusal) => return Answer::refused(&refusal),
    };
    match lines(engine, question).await {
        Ok(text) => Answer::text(text),
        // A table that has nothing of this feed has no spots of it, which a clock can show.
        Err(refusal) if refusal.kind == Kind::NoTable => Answer::text(String::new()),
        Err(refusal) => Answer::refused(&refusal),
    }
}

fn question(
    fetched: Fetched,
    request: &Request,
    now_s: i64,
    most: usize,
) -> Result<Question, Refusal> {
    let (table, columns) = fetched.columns();
    let [of_grid, of_call, by_grid, by_call, mode, frequency, snr] = columns;
    let wrong = |message: String| Refusal::new(Kind::Value, message);
    let mut filters = Filters::new();
    let calls = [("ofcall", of_call), ("bycall", by_call)];
    for (name, column) in calls {
        if let Some(call) = request.parameter(name) {
            filters.add(&format!("upper({column}) = ?"), call.to_uppercase());
        }
    }
    let grids = [("ofgrid", of_grid), ("bygrid", by_grid)];
    for (name, column) in grids {
        if let Some(grid) = request.parameter(name) {
            // A clock sends its own grid with six characters and means the square of four.
            let square: String = grid.chars().take(4).collect();
            let condition = format!("starts_with(upper({column}), ?)");
            filters.add(&condition, square.to_uppercase());
        }
    }
    let given = ["ofcall", "bycall", "ofgrid", "bygrid"];
    if given.iter().all(|name| request.parameter(name).is_none()) {
        return Err(wrong(
            "say whose spots: ofcall=, bycall=, ofgrid= or bygrid=".to_owned(),
        ));
    }
    let age_s = match request.parameter("maxage") {
        None => AGE_S,
        Some(text) => match text.parse() {
            Ok(age) if (1..=MOST_AGE_S).contains(&age) => age,
            _ => {
                let message = format!("maxage={text}: 1 to {MOST_AGE_S} seconds are needed");
                return Err(wrong(message));
            }
        },
    };
    let since_ms = now_s.saturating_sub(age_s).saturating_mul(1000);
    let since = ScalarValue::TimestampMillisecond(Some(since_ms), Some("UTC".into()));
    filters.add("timestamp >= ?", since);
    let select = format!(
        "SELECT date_part('epoch', timestamp), {of_grid}, {of_call}, {by_grid}, {by_call}, {mode}, \
         {frequency}, {snr} FROM {table}"
    );
    // Of more spots than lines, the last are wanted.
    let rest = format!("ORDER BY timestamp DESC LIMIT {most}");
    let (statement, values) = filters.statement(&select, &rest)?;
    let mut question = Question::from_statement(statement);
    question.parameters = Some(values);
    Ok(question)
}

async fn lines(engine: &Arc<Engine>, question: Question) -> Result<String, Refusal> {
    let (_, mut running) = engine.start(question).await?;
    let mut lines = Vec::new();
    while let Some(batch) = running.next().await {
        add_lines(&mut lines, &batch?)?;
    }
    // The newest are asked for first. A clock gets them in the order of time.
    lines.reverse();
    Ok(lines.concat())
}

/// Adds a line for each row.
fn add_lines(lines: &mut Vec<String>, batch: &RecordBatch) -> Result<(), Refusal> {
    // The feeds have the same columns in different types.
    let wrong = |error| Refusal::from(datafusion::common::DataFusionError::from(error));
    let times = cast(batch.column(0), &DataType::Int64).map_err(wrong)?;
    let times = times.as_primitive::<Int64Type>();
    let others: Vec<_> = batch.columns()[1..]
        .iter()
        .map(|column| cast(column, &DataType::Utf8))
        .collect::<Result<_, _>>()
        .map_err(wrong)?;
    for row in 0..batch.num_rows() {
        let mut line = times.value(row).to_string();
        for column in &others {
            let values = column.as_string::<i32>();
            let value = if values.is_null(row) {
                ""
            } else {
                values.value(row)
            };
            // A comma inside a value would move all that follows it by one.
            let value = value.replace([',', '\n', '\r'], " ");
            line.push(',');
            line.push_str(&value);
        }
        line.push('\n');
        lines.push(line);
    }
    Ok(())
}
