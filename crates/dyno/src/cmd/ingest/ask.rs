//! `dyno ingest ask`: a question in plain words; a language model writes the statement, the SQL
//! engine runs it within bounds.

use anyhow::Context;
use dyno_ingest::table::{Snapshot, WSPR};
use dyno_ingest_ask::{Answer, Endpoint, Question, Rows, ask, bars};
use serde_json::json;

use super::moment;
use crate::args::AskArgs;
use crate::exit::Exit;
use crate::{secrets, sql, terminal};

/// A statement is shorter; models that think aloud first need some room.
const MOST_TOKENS: u32 = 2048;

pub fn run(args: &AskArgs) -> anyhow::Result<Exit> {
    let snapshot = Snapshot::open(&args.table)?;
    let key = secrets::llm_key(args.key_file.as_deref())?;
    let mut endpoint = Endpoint::new(&args.endpoint, args.model.as_deref(), key, args.wait)?;
    let model = endpoint.settle_model()?;
    let about = about(&snapshot);
    let question = Question {
        words: &args.question,
        about: &about,
        mends: args.corrections.into(),
        most_tokens: MOST_TOKENS,
    };
    let mut more = false;
    let answer = ask(&endpoint, &question, |sql| {
        let (rows, cut) = query(args, sql).map_err(|error| format!("{error:#}"))?;
        more = cut;
        Ok(rows)
    })?;
    let text = if args.json {
        as_json(&answer, &model, more)?
    } else {
        as_text(&answer, args.max_rows, more)
    };
    terminal::print(&text)?;
    Ok(Exit::Done)
}

/// What the model is told of the spots table, besides its columns.
fn about(snapshot: &Snapshot) -> String {
    let files = || snapshot.manifest().files_of(WSPR);
    let day = |seconds: Option<i64>| seconds.map_or("none".to_owned(), moment);
    format!(
        "{} rows, timestamps from {} to {}",
        files().map(|file| file.rows).sum::<u64>(),
        day(files().map(|file| file.time_min_s).min()),
        day(files().map(|file| file.time_max_s).max()),
    )
}

/// Runs a statement that a language model wrote, so it is not trusted. Returns the rows, and
/// whether there were more than the bound.
fn query(args: &AskArgs, statement: &str) -> anyhow::Result<(Rows, bool)> {
    // The bounds are those of the child process. A statement that takes all of its memory or never
    // ends cannot harm this one.
    let mut command = sql::command()?;
    // The statement may begin with a dash, as a comment does.
    command.args(["query", "--format", "csv", "--select-only"]);
    command.args(["--max-rows", &args.max_rows.to_string()]);
    let seconds = args.time_limit.as_secs_f64().ceil().max(1.0);
    command.args(["--time-limit", &seconds.to_string()]);
    command.args(["--memory", &args.memory.to_string(), "--"]);
    command.arg(&args.table).arg(statement);
    let output = command.output().context("cannot start the SQL engine")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{}", stderr.trim());
    let rows = Rows::from_csv(&output.stdout)?;
    Ok((rows, stderr.contains("more rows than")))
}

fn as_text(answer: &Answer, max_rows: u32, more: bool) -> String {
    let names: Vec<&str> = answer.rows.columns.iter().map(String::as_str).collect();
    let mut table = terminal::table(&names);
    for row in &answer.rows.values {
        table.add_row(row);
    }
    let mut text = String::new();
    for (sql, reason) in &answer.failed {
        text += &format!(
            "-- could not be run: {}\n{}\n\n",
            first_line(reason),
            commented(sql)
        );
    }
    text += &format!("{}\n\n{table}\n", answer.sql);
    if more {
        text += &format!("There are more than these {max_rows} rows.\n");
    }
    if let Some(bars) = bars(&answer.rows) {
        text += &format!("\n{bars}");
    }
    text.trim_end().to_owned()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn commented(sql: &str) -> String {
    let lines = sql.lines().map(|line| format!("-- {line}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn as_json(answer: &Answer, model: &str, more: bool) -> anyhow::Result<String> {
    let failed = answer.failed.iter();
    let failed = failed.map(|(sql, reason)| json!({"sql": sql, "reason": reason}));
    Ok(serde_json::to_string_pretty(&json!({
        "model": model,
        "sql": answer.sql,
        "columns": answer.rows.columns,
        "rows": answer.rows.values,
        "more_rows": more,
        "failed": failed.collect::<Vec<_>>(),
        "tokens": {"read": answer.usage.prompt_tokens, "written": answer.usage.completion_tokens},
    }))?)
}
