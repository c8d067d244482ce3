//! The latency histogram logs of a record, which samples name.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

/// Entries with this tag count from the intended start of each operation; the log has others, which
/// count the same operations again.
const TAG: &str = "corrected";

/// What one invocation's log holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LatencyLog {
    /// Stretches of the measured time, in order.
    pub spans: Vec<LatencySpan>,
    /// Operations by their latency in nanoseconds, over all stretches; the histogram keeps three
    /// digits.
    pub counts: BTreeMap<u64, u64>,
}

/// The latencies of one stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencySpan {
    /// Seconds from the start of the load to the middle of the stretch.
    pub middle_s: f64,
    /// The 99th percentile of the operations that ended in it, from when each was to start, in
    /// seconds.
    pub p99_s: f64,
}

impl LatencyLog {
    /// Reads a log.
    ///
    /// # Errors
    /// The reason, when the file cannot be read or an entry is not a histogram.
    pub(crate) fn read(path: &Path) -> Result<LatencyLog, String> {
        let text = std::fs::read(path).map_err(|error| error.to_string())?;
        LatencyLog::parse(&text)
    }

    fn parse(text: &[u8]) -> Result<LatencyLog, String> {
        let mut log = LatencyLog::default();
        let mut deserializer = Deserializer::new();
        for (index, entry) in IntervalLogIterator::new(text).enumerate() {
            let fail = |reason: String| format!("entry {}: {reason}", index + 1);
            let LogEntry::Interval(interval) = entry.map_err(|e| fail(format!("{e:?}")))? else {
                continue;
            };
            if interval.tag().is_none_or(|tag| tag.as_str() != TAG) {
                continue;
            }
            let packed = BASE64_STANDARD
                .decode(interval.encoded_histogram())
                .map_err(|error| fail(error.to_string()))?;
            let histogram: Histogram<u64> = deserializer
                .deserialize(&mut packed.as_slice())
                .map_err(|error| fail(format!("{error:?}")))?;
            // A stretch in which nothing ended has no percentile, and zero would look fast.
            if histogram.is_empty() {
                continue;
            }
            let half = interval.duration() / 2;
            log.spans.push(LatencySpan {
                middle_s: (interval.start_timestamp() + half).as_secs_f64(),
                p99_s: histogram.value_at_quantile(0.99) as f64 / 1e9,
            });
            for step in histogram.iter_recorded() {
                let count = log.counts.entry(step.value_iterated_to()).or_default();
                *count += step.count_since_last_iteration();
            }
        }
        Ok(log)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hdrhistogram::serialization::V2DeflateSerializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

    use super::*;

    /// A log of two stretches of a second, and the same operations again under another tag.
    fn log() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let mut writer = IntervalLogWriterBuilder::new()
            .begin_log_with(&mut bytes, &mut serializer)
            .expect("a log");
        for (second, base_ns) in [(0, 1_000_u64), (1, 50_000)] {
            let mut histogram = Histogram::<u64>::new(3).expect("three digits");
            for step in 1..=100 {
                histogram.record(base_ns * step).expect("in range");
            }
            for tag in [TAG, "raw"] {
                let start = Duration::from_secs(second);
                let tag = Tag::new(tag);
                writer
                    .write_histogram(&histogram, start, Duration::from_secs(1), tag)
                    .expect("it is written");
            }
        }
        bytes
    }

    #[test]
    fn stretches_and_counts_of_the_intended_starts_are_read() {
        let read = LatencyLog::parse(&log()).expect("a sound log");
        let middles: Vec<f64> = read.spans.iter().map(|span| span.middle_s).collect();
        assert_eq!(middles, [0.5, 1.5]);
        assert!((read.spans[0].p99_s / 99e-6 - 1.0).abs() < 0.002);
        assert!((read.spans[1].p99_s / 4.95e-3 - 1.0).abs() < 0.002);
        assert_eq!(
            read.counts.values().sum::<u64>(),
            200,
            "none is counted twice"
        );
    }

    #[test]
    fn a_broken_log_names_its_entry() {
        let text = String::from_utf8(log()).expect("text");
        let broken = text.replacen("HISTF", "!ISTF", 1);
        assert_ne!(broken, text);
        let said = LatencyLog::parse(broken.as_bytes()).expect_err("broken");
        assert!(said.starts_with("entry "), "{said}");
    }
}
