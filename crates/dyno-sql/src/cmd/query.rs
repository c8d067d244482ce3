//! `dyno-sql query`: runs statements and prints their results.

use std::io::{BufWriter, Write};

use anyhow::{Result, bail};
use datafusion::prelude::DataFrame;
use futures::StreamExt;

use crate::args::QueryArgs;
use crate::output::ResultWriter;
use crate::{session, statement};

/// Runs the statements one after the other and prints each result to `out`.
///
/// # Errors
/// The table cannot be opened; a statement cannot be parsed, planned or run; Ctrl-C.
pub async fn run(args: QueryArgs, out: impl Write) -> Result<()> {
    let context = session::open(&args.table, args.limits.limits())?;
    let mut out = BufWriter::new(out);
    for parsed in statement::parse(&args.sql)? {
        let frame = statement::plan(&context, parsed, &args.sql).await?;
        tokio::select! {
            done = print(frame, &args, &mut out) => done?,
            // Dropping the query ends its threads and removes what it spilled to disk.
            _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        }
    }
    Ok(())
}

async fn print(frame: DataFrame, args: &QueryArgs, out: &mut impl Write) -> Result<()> {
    // SET and its like have no columns and nothing to print.
    let silent = frame.schema().fields().is_empty();
    let explained = |error| statement::explain(&error, &args.sql);
    let mut stream = frame.execute_stream().await.map_err(explained)?;
    if silent {
        while let Some(batch) = stream.next().await {
            batch.map_err(explained)?;
        }
        return Ok(());
    }
    let mut writer = ResultWriter::new(args.format, stream.schema(), out)?;
    while let Some(batch) = stream.next().await {
        writer.write(batch.map_err(explained)?)?;
    }
    writer.finish()
}
