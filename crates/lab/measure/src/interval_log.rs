//! Histogram logs in the format of HdrHistogram (version 1.3 of the log, V2 deflate inside), which
//! its own tools read.

use std::io::Write;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, IntervalLogWriterError, LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializeError, V2DeflateSerializer};

use crate::error::MeasureError;
use crate::outcome::LoadOutcome;
use crate::recorder::Latencies;

/// Tag of the snapshots that count from the intended start.
pub const CORRECTED_TAG: &str = "corrected";
/// Tag of the one entry, over the whole run, that counts from the actual start.
pub const RAW_TAG: &str = "raw";

/// Writes the snapshots of a load and its raw latencies; values are nanoseconds, maxima in the text
/// are milliseconds. `started_at` is the wall-clock time of the load's start.
///
/// # Errors
/// When `to` refuses the bytes or a histogram cannot be encoded.
pub fn write_interval_log(
    to: &mut impl Write,
    load: &LoadOutcome,
    started_at: SystemTime,
) -> Result<(), MeasureError> {
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[dyno latencies in nanoseconds; tags: corrected, raw]")
        .with_start_time(started_at)
        .with_base_time(started_at)
        .with_max_value_divisor(1_000_000.0)
        .begin_log_with(to, &mut serializer)
        .map_err(MeasureError::Write)?;
    for interval in load.recorder.intervals() {
        log.write_histogram(
            interval.corrected.histogram(),
            Duration::from_nanos(interval.start_ns.saturating_sub(load.started_ns)),
            Duration::from_nanos(interval.length_ns),
            Tag::new(CORRECTED_TAG),
        )
        .map_err(refused)?;
    }
    let length = Duration::from_nanos(load.ended_ns.saturating_sub(load.started_ns));
    log.write_histogram(
        load.recorder.raw.histogram(),
        Duration::ZERO,
        length,
        Tag::new(RAW_TAG),
    )
    .map_err(refused)
}

fn refused(error: IntervalLogWriterError<V2DeflateSerializeError>) -> MeasureError {
    match error {
        IntervalLogWriterError::IoError(error) => MeasureError::Write(error),
        IntervalLogWriterError::SerializeError(error) => MeasureError::histogram("encode", error),
    }
}

/// Adds up every entry of a log that carries `tag`. Logs of several threads, processes or machines
/// are merged by reading each and adding the results.
///
/// # Errors
/// On an entry that cannot be read, named by its number.
pub fn read_interval_log(log: &[u8], tag: &str) -> Result<Latencies, MeasureError> {
    let mut sum = Latencies::new()?;
    let mut deserializer = Deserializer::new();
    for (index, entry) in IntervalLogIterator::new(log).enumerate() {
        let entry_number = index + 1;
        let fail = |reason: String| MeasureError::Read {
            entry: entry_number,
            reason,
        };
        let LogEntry::Interval(interval) = entry.map_err(|e| fail(format!("{e:?}")))? else {
            continue;
        };
        // The log holds the raw histogram beside the corrected ones; adding up both would count
        // each operation twice.
        if interval.tag().is_none_or(|found| found.as_str() != tag) {
            continue;
        }
        let packed = BASE64_STANDARD
            .decode(interval.encoded_histogram())
            .map_err(|e| fail(e.to_string()))?;
        let histogram = deserializer
            .deserialize::<u64, _>(&mut packed.as_slice())
            .map_err(|e| fail(format!("{e:?}")))?;
        sum.add(&Latencies::from_histogram(histogram))?;
    }
    Ok(sum)
}
