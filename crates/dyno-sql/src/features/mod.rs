//! A training set from a table of spots: one row a spot, in the order of time, numbers alone.
//!
//! Spots come from the engine sorted, batch by batch, so that a set may be larger than memory: the
//! sort spills to disk, and no batch is kept once it is written. A few batches make a part of the
//! set. As many parts as there are threads are computed and encoded at once.

mod columns;
mod out;
mod solar;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::common::runtime::SpawnedTask;
use datafusion::prelude::SessionContext;
use futures::stream::TryChunksError;
use futures::{FutureExt, TryStreamExt};
use serde::Serialize;

use crate::args::features::{FeaturesArgs, TrainingFormat};
use crate::session::{self, Limits};

pub use columns::LeftOut;
use columns::{Counts, Training};
use out::{Part, PartEncoder, SetWriter};
use solar::DailyIndices;

/// Spots that were reported within the same second are ordered by their number, so that the same
/// table always makes the same set.
///
/// A table with Iceberg metadata has wider types. The casts bring them back, and vanish from the
/// plan of any other table.
const SPOTS: &str = "SELECT arrow_cast(id, 'UInt64') AS id, \
                     arrow_cast(timestamp, 'Timestamp(Millisecond, Some(\"UTC\"))') AS timestamp, \
                     grid, reporter_grid, band, arrow_cast(power, 'Int8') AS power, \
                     arrow_cast(snr, 'Int8') AS snr FROM spots ORDER BY timestamp, id";

/// Most memory that each thread's sort keeps back for merging; the library's default.
const MERGE_BYTES_MAX: usize = 10 << 20;

/// What came of making a training set.
#[derive(Debug, Serialize)]
pub struct TrainingSetSummary {
    /// Rows of the set.
    pub rows: u64,
    /// Spots that were read, those that were left out among them.
    pub spots: u64,
    /// Spots without a position, which are not in the set.
    pub left_out: LeftOut,
    /// Rows whose day has no value of any index; 0 if no indices were requested.
    pub rows_without_indices: u64,
    /// Length of the file or of the stream.
    pub bytes: u64,
    /// From before the table was opened until the file had its name, on stable storage.
    pub seconds: f64,
}

/// Makes the training set.
///
/// # Errors
/// A table cannot be opened or read; the output cannot be written. A file then does not get its
/// name; a stream ends without its end mark.
pub async fn make(args: &FeaturesArgs) -> Result<TrainingSetSummary> {
    let began = Instant::now();
    let limits = args.limits.limits();
    let indices = match &args.solar {
        None => None,
        Some(table) => Some(daily_indices(table, limits).await?),
    };
    let context = session::open(&args.table, limits)?;
    let expected = spots_of(&context).await?;
    let training = Arc::new(Training::new(indices));
    let mut writer = SetWriter::open(&args.out, args.format, training.schema())?;
    reserve(&context, limits).await?;
    let counts = write(&context, &training, &mut writer, limits.threads)
        .await
        .map_err(|error| too_little(error, limits))?;
    let spots = counts.spots;
    // The session has one snapshot of the table, so a load that commits meanwhile changes neither
    // count. If they differ, rows are missing from the set, and it must not get its name.
    ensure!(
        spots == expected,
        "{spots} spots were sorted, and {} has {expected}",
        args.table.display()
    );
    let bytes = writer.finish()?;
    Ok(TrainingSetSummary {
        rows: counts.rows,
        spots,
        rows_without_indices: counts.rows_without_indices,
        left_out: counts.left_out,
        bytes,
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// Sets how much of the memory each thread's sort keeps back for merging what it has spilled. The
/// library's 10 MiB would leave nothing to sort in if the memory is small or the threads are many.
async fn reserve(context: &SessionContext, limits: Limits) -> Result<()> {
    let bytes = (limits.memory_bytes / limits.threads / 4).min(MERGE_BYTES_MAX);
    let set = format!("SET datafusion.execution.sort_spill_reservation_bytes = {bytes}");
    context.sql(&set).await?;
    Ok(())
}

/// The error, in words for the command line if memory ran out.
fn too_little(error: anyhow::Error, limits: Limits) -> anyhow::Error {
    let exhausted = error.chain().any(|cause| {
        let cause = cause.downcast_ref::<DataFusionError>();
        cause.is_some_and(|cause| {
            matches!(cause.find_root(), DataFusionError::ResourcesExhausted(_))
        })
    });
    if !exhausted {
        return error;
    }
    anyhow!(
        "a memory of {} bytes is too small to sort the spots with {} threads; raise --memory, or lower \
         --threads",
        limits.memory_bytes,
        limits.threads
    )
}

/// Streams the spots of a session through `training` into `writer`, and returns what became of
/// them.
async fn write(
    context: &SessionContext,
    training: &Arc<Training>,
    writer: &mut SetWriter,
    threads: usize,
) -> Result<Counts> {
    let encoder = writer.encoder();
    let sorted = context.sql(SPOTS).await?.execute_stream().await?;
    // Sorted runs are merged by this thread, and only while fewer parts than `threads` are at work
    // or wait for those before them.
    let mut parts = sorted
        .try_chunks(encoder.batches())
        .map_err(|TryChunksError(_, error)| anyhow::Error::from(error))
        .map_ok(|batches| {
            let (training, encoder) = (Arc::clone(training), encoder.clone());
            SpawnedTask::spawn_blocking(move || part(&training, &encoder, batches))
                .join_unwind()
                .map(|made| made?)
        })
        .try_buffered(threads);
    let mut counts = Counts::default();
    while let Some((of_part, part)) = parts.try_next().await? {
        if of_part.rows > 0 {
            writer.write(part)?;
        }
        counts.add(of_part);
    }
    Ok(counts)
}

/// Makes a part of a set, and says what became of its spots.
fn part(
    training: &Training,
    encoder: &PartEncoder,
    batches: Vec<RecordBatch>,
) -> Result<(Counts, Part)> {
    let mut counts = Counts::default();
    let rows = batches
        .into_iter()
        .map(|batch| training.convert(&batch, &mut counts));
    let part = encoder.encode(rows)?;
    Ok((counts, part))
}

/// Spots that the table of a session has, by the footers of its files.
async fn spots_of(context: &SessionContext) -> Result<u64> {
    let spots = context.table("spots").await?.count().await?;
    Ok(spots as u64)
}

async fn daily_indices(table: &Path, limits: Limits) -> Result<DailyIndices> {
    let context = session::open(table, limits)?;
    DailyIndices::read(&context)
        .await
        .with_context(|| format!("cannot read the solar indices of {}", table.display()))
}

impl TrainingFormat {
    /// As the command line names it.
    pub fn name(self) -> &'static str {
        match self {
            TrainingFormat::Parquet => "parquet",
            TrainingFormat::Arrow => "arrow",
        }
    }
}
