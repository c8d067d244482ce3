//! The chain through two engines: the public commands carry lines of archives into a topic and from
//! there into a table. They are killed on the way if the case says so.

mod children;
mod delays;
mod run;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use dyno_suite::protocol::{Reply, Request};

use crate::ingest::{TABLE, load_into};
use crate::{Params, RigError, table_checksum};

/// What is sent through the chain, and what is done to it.
#[derive(Debug, Clone)]
struct ChainParams {
    /// Archives as plain text, because their lines are what is sent.
    files: Vec<PathBuf>,
    partitions: u32,
    /// Lines a second that the producer is fed; `None` feeds all at once.
    rate: Option<f64>,
    /// How long a batch waits for more rows before it is committed.
    batch_wait: Duration,
    /// Processes killed with signal 9 on the way: the watch, the producer and the server in turn.
    kills: u64,
    seed: u64,
}

/// `chain`: lines of `files` through a topic of so many `partitions` into a table, at `rate` lines
/// a second (0: as they come), with so many `kills`. The clock runs from the start of the producer
/// to the commit of the last row. The table must be that of a direct load, in count and checksum.
pub(crate) fn chain(params: &mut Params<'_>, request: &Request) -> Result<Reply, RigError> {
    let rate = params.number("rate")?;
    let params = ChainParams {
        files: params.paths("files")?,
        partitions: u32::try_from(params.count("partitions")?).unwrap_or(u32::MAX),
        rate: (rate > 0.0).then_some(rate),
        batch_wait: Duration::from_millis(params.count("batch-wait-ms")?),
        kills: params.count("kills")?,
        seed: params.count("seed")?,
    };
    let direct = request.scratch.join("direct");
    // The reference is a load without the log in between. A chain that loses or repeats a record
    // across a kill differs from it in count or checksum.
    let expected_rows = load_into(&params.files, 1, &direct)?.rows();
    let expected = table_checksum(&direct)?;
    let table = request.scratch.join(TABLE);
    let ran = run::run(&params, expected_rows, &table, &request.scratch)?;
    let sum = table_checksum(&table)?;
    if sum != expected {
        let reason = format!(
            "the chain made {} rows with checksum {}, and a direct load {} with {}",
            sum.count, sum.checksum, expected.count, expected.checksum
        );
        return Err(RigError::NotLoaded {
            path: table,
            reason,
        });
    }
    let mut metrics = BTreeMap::from([
        ("throughput".to_string(), sum.count as f64 / ran.seconds),
        ("time".to_string(), ran.seconds),
        ("commits".to_string(), ran.commits as f64),
    ]);
    metrics.extend(ran.delays);
    Ok(Reply {
        answer: Some(sum),
        metrics,
        facts: BTreeMap::from([("killed".to_string(), ran.killed)]),
        ..Reply::default()
    })
}
