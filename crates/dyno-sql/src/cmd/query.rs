//! `dyno-sql query`: runs statements and prints their results.

use std::io::{BufWriter, Write};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use datafusion::prelude::DataFrame;
use futures::StreamExt;
use tokio::sync::oneshot;

use crate::args::QueryArgs;
use crate::output::ResultWriter;
use crate::{session, statement};

/// Runs the statements one after the other and prints each result to `out`.
///
/// # Errors
/// The table cannot be opened; a statement cannot be parsed, planned or run; the time limit;
/// Ctrl-C.
pub async fn run(args: QueryArgs, out: Box<dyn Write + Send>) -> Result<()> {
    let too_late = too_late(args.time_limit)?;
    // A query may compute for long without yielding. In a task of its own it does not keep the
    // select below from noticing Ctrl-C or the time limit.
    let queries = tokio::spawn(queries(args, out));
    // Dropping the query ends its threads and removes what it spilled to disk.
    tokio::select! {
        done = queries => done.context("the query panicked")?,
        Ok(seconds) = too_late => bail!("no answer within {seconds} s"),
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    }
}

async fn queries(args: QueryArgs, out: Box<dyn Write + Send>) -> Result<()> {
    let context = session::open(&args.table, args.limits.limits())?;
    let mut out = BufWriter::new(out);
    let statements = statement::parse(&args.sql)?;
    if args.select_only {
        statement::check_one_select(&statements)?;
    }
    for parsed in statements {
        let frame = statement::plan(&context, parsed, &args.sql).await?;
        print(frame, &args, &mut out).await?;
    }
    Ok(())
}

/// Receives the limit, in seconds, when it has passed. A thread of its own measures it, because all
/// threads of the runtime may be busy with the query. Without a limit nothing is ever received.
fn too_late(limit_s: Option<u64>) -> Result<oneshot::Receiver<u64>> {
    // Without a limit the sender is dropped at once. The receiver then returns an error, which the
    // pattern of the select does not match, so that branch is never taken.
    let (sender, receiver) = oneshot::channel();
    if let Some(seconds) = limit_s {
        let wait = move || {
            thread::sleep(Duration::from_secs(seconds));
            // The receiver may have ended.
            sender.send(seconds).ok();
        };
        thread::Builder::new()
            .name("time-limit".to_owned())
            .spawn(wait)?;
    }
    Ok(receiver)
}

async fn print(frame: DataFrame, args: &QueryArgs, out: &mut impl Write) -> Result<()> {
    // SET and its like have no columns and nothing to print.
    let silent = frame.schema().fields().is_empty();
    let explained = |error| statement::explain(&error, &args.sql);
    // Batches are printed as they come: a result may be larger than the memory that the query may
    // use.
    let mut stream = frame.execute_stream().await.map_err(explained)?;
    if silent {
        while let Some(batch) = stream.next().await {
            batch.map_err(explained)?;
        }
        return Ok(());
    }
    let mut writer = ResultWriter::new(args.format, stream.schema(), out)?;
    let mut room = args.max_rows.unwrap_or(usize::MAX);
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(explained)?;
        // The reader must be able to tell a complete answer from one that was cut off.
        if batch.num_rows() > room {
            writer.write(batch.slice(0, room))?;
            eprintln!(
                "dyno-sql: there are more rows than {}",
                args.max_rows.unwrap_or(0)
            );
            break;
        }
        room -= batch.num_rows();
        writer.write(batch)?;
    }
    writer.finish()
}
