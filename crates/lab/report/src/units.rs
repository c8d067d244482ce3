//! Numbers as people read them: three significant digits and a unit prefix.

use dyno_record::{Better, CasePlan};

/// The unit and direction of a metric of `case`. The ranking metric has those of the case; the rest
/// follow docs/formats/run.md: `time`, `cpu` and `latency-*` in seconds, sizes in bytes, rates a
/// second. Of a name that it does not know less is better; [`has_direction`] tells counts, of which
/// that is not true.
pub(crate) fn unit_of(case: &CasePlan, metric: &str) -> (String, Better) {
    if metric == case.metric {
        return (case.unit.clone(), case.better);
    }
    let (unit, better) = beside(metric);
    (unit.to_owned(), better)
}

/// Metrics that count what was done. How many there are follows from the time or from the size of
/// the work, so that neither more nor fewer are better.
const COUNTS: [&str; 8] = [
    "checkpoints",
    "commits",
    "conversations",
    "latency-count",
    "operations",
    "probes",
    "records",
    "transactions",
];

/// Whether more or less of a metric of `case` is better, so that systems can be compared by it. The
/// metric that ranks the case always has the direction that the case states.
pub(crate) fn has_direction(case: &CasePlan, metric: &str) -> bool {
    metric == case.metric || !COUNTS.contains(&metric)
}

/// Latencies by operation that are in seconds.
const IN_SECONDS: [&str; 2] = ["first-token", "between-tokens"];

/// The operation of a latency by percentile: `write` of `write-p99`.
fn operation_of(metric: &str) -> Option<&str> {
    let (what, percentile) = metric.rsplit_once("-p")?;
    let digits = !percentile.is_empty() && percentile.bytes().all(|byte| byte.is_ascii_digit());
    digits.then_some(what)
}

/// The unit and direction of a metric that ranks nothing.
fn beside(metric: &str) -> (&'static str, Better) {
    match metric {
        "throughput" => ("1/s", Better::Higher),
        "compression" => ("x", Better::Higher),
        "io-rate" | "read-io-rate" | "scan-rate" | "effective-write" => ("B/s", Better::Higher),
        "reads" => ("1/s", Better::Higher),
        "peak-rss" | "bytes" => ("B", Better::Lower),
        "time" | "cpu" => ("s", Better::Lower),
        "latency-count" => ("requests", Better::Higher),
        name if name.starts_with("latency-") || name.starts_with("generator-lag") => {
            ("s", Better::Lower)
        }
        "memory-per-warehouse" => ("B", Better::Lower),
        name if operation_of(name).is_some_and(|what| IN_SECONDS.contains(&what)) => {
            ("s", Better::Lower)
        }
        // Engines that report a latency by its operation do so in milliseconds.
        name if operation_of(name).is_some() => ("ms", Better::Lower),
        name if name.ends_with("-us") => ("µs", Better::Lower),
        name if name.ends_with("-percent") => ("%", Better::Lower),
        name if name.ends_with("-bytes") => ("B", Better::Lower),
        name if name.ends_with("-db") => ("dB", Better::Lower),
        name if name.ends_with("-per-s") => ("1/s", Better::Higher),
        name if name.ends_with("-rate") => ("1/s", Better::Higher),
        name if name.ends_with("-s") || name.ends_with("-time") => ("s", Better::Lower),
        _ => ("", Better::Lower),
    }
}

/// Whether a unit is one of bytes, which are few or many and not fast or slow.
pub(crate) fn is_size(unit: &str) -> bool {
    ["B", "kB", "MB", "GB", "KiB", "MiB", "GiB"].contains(&unit)
}

/// A verdict in the word that fits its metric: memory and bytes are smaller or larger, and what has
/// no direction in time is better or worse.
pub(crate) fn verdict_word(verdict: &'static str, unit: &str, metric: &str) -> &'static str {
    let size = is_size(unit);
    let timed = metric == "throughput" || unit.ends_with("/s") || in_seconds(1.0, unit).is_some();
    match verdict {
        "faster" if size => "smaller",
        "slower" if size => "larger",
        "faster" if !timed => "better",
        "slower" if !timed => "worse",
        other => other,
    }
}

/// A number of things by their name in the singular: `1 archive`, `2 archives`.
pub fn counted(number: u64, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        _ => format!("{number} {thing}s"),
    }
}

/// `value` with its unit, scaled: `6.10 M rows/s`, `850 MB`, `12.4 µs`, `4.20×`.
pub fn quantity(value: f64, unit: &str) -> String {
    if let Some(time) = in_seconds(value, unit) {
        return seconds(time);
    }
    match unit {
        "" => number(value),
        "1/s" => {
            let (scaled, prefix) = scale(value, &["", "k", "M", "G", "T", "P"]);
            let gap = if prefix.is_empty() { "" } else { " " };
            format!("{}{gap}{prefix}/s", significant(scaled))
        }
        "x" => format!("{}×", significant(value)),
        "B" | "B/s" => {
            let (scaled, prefix) = scale(value, &["", "k", "M", "G", "T", "P"]);
            format!("{} {prefix}{unit}", significant(scaled))
        }
        _ => {
            let (scaled, prefix) = scale(value, &["", "k", "M", "G", "T", "P"]);
            // A prefix of a word stands apart: `6.10 M rows/s`.
            let gap = if prefix.is_empty() { "" } else { " " };
            format!("{} {prefix}{gap}{unit}", significant(scaled))
        }
    }
}

/// A number alone: `12`, `6.10 M`.
pub fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 10_000.0 {
        return format!("{value}");
    }
    let (scaled, prefix) = scale(value, &["", "k", "M", "G", "T", "P"]);
    match prefix {
        "" => significant(scaled),
        prefix => format!("{} {prefix}", significant(scaled)),
    }
}

/// Prints a ratio with its sign and three significant digits: `4.21×`.
pub fn ratio_text(ratio: f64) -> String {
    format!("{}×", bare_ratio(ratio))
}

/// The ends of a ratio's interval: `4.18 .. 4.25`.
pub(crate) fn ratio_range(low: f64, high: f64) -> String {
    format!("{} .. {}", bare_ratio(low), bare_ratio(high))
}

fn bare_ratio(ratio: f64) -> String {
    // Around 1 two decimals stand for three digits, and 1.00 keeps its zeros so that it does not
    // look exact.
    if (0.995..9.995).contains(&ratio) {
        format!("{ratio:.2}")
    } else {
        significant(ratio)
    }
}

/// Prints a share, given as a part of 1, in percent: `52%`.
pub fn share_text(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 10.0 => format!("{percent:.1}%"),
        percent => format!("{percent:.0}%"),
    }
}

/// A range, the unit once where both ends have the same: `6.06 .. 6.16 M rows/s`.
pub(crate) fn range_text(low: f64, high: f64, unit: &str) -> String {
    let (low, high) = (quantity(low, unit), quantity(high, unit));
    // The two ends are scaled by themselves, so they may have different prefixes; then both keep
    // their unit.
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((bare, a)), Some((_, b))) if a == b => format!("{bare} .. {high}"),
        _ => format!("{low} .. {high}"),
    }
}

/// `value` of a unit of time in seconds; nothing when the unit is not one.
pub(crate) fn in_seconds(value: f64, unit: &str) -> Option<f64> {
    let factor = match unit {
        "s" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        "ns" => 1e-9,
        _ => return None,
    };
    Some(value * factor)
}

fn seconds(value: f64) -> String {
    let size = value.abs();
    let (scaled, unit) = match size {
        0.0 => (0.0, "s"),
        _ if size < 0.999_5e-6 => (value * 1e9, "ns"),
        _ if size < 0.999_5e-3 => (value * 1e6, "µs"),
        _ if size < 0.999_5 => (value * 1e3, "ms"),
        _ => (value, "s"),
    };
    format!("{} {unit}", significant(scaled))
}

fn scale<'a>(value: f64, prefixes: &[&'a str]) -> (f64, &'a str) {
    let mut scaled = value;
    let mut step = 0;
    // 999.6 would print as 1000, so it moves up already.
    while scaled.abs() >= 999.5 && step + 1 < prefixes.len() {
        scaled /= 1000.0;
        step += 1;
    }
    (scaled, prefixes[step])
}

/// Three significant digits, no exponent; whole numbers of up to three digits as they are.
fn significant(value: f64) -> String {
    let size = value.abs();
    // A product such as 25e-9 x 1e9 is whole but for the last bit.
    if size < 999.5 && (value - value.round()).abs() <= size * 1e-12 {
        return format!("{}", value.round());
    }
    match size {
        _ if size >= 99.95 => format!("{value:.0}"),
        _ if size >= 9.995 => format!("{value:.1}"),
        _ if size >= 0.995 => format!("{value:.2}"),
        _ if size >= 0.0995 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_has_the_unit_and_the_direction_that_its_name_says() {
        for metric in [
            "reads",
            "record-rate",
            "io-rate",
            "read-io-rate",
            "effective-write",
            "rows-per-s",
            "compression",
        ] {
            assert_eq!(beside(metric).1, Better::Higher, "{metric}");
        }
        for metric in [
            "read-p99",
            "latency-p50",
            "wal-bytes",
            "empty-polls",
            "aborts",
        ] {
            assert_eq!(beside(metric).1, Better::Lower, "{metric}");
        }
        for (metric, unit) in [
            ("write-p99", "ms"),
            ("new-order-p50", "ms"),
            ("first-token-p95", "s"),
            ("latency-p999", "s"),
            ("server-cpu-us", "µs"),
            ("top-pages", ""),
        ] {
            assert_eq!(beside(metric).0, unit, "{metric}");
        }
    }

    #[test]
    fn a_verdict_has_the_word_of_its_metric() {
        assert_eq!(verdict_word("faster", "B", "page-bytes"), "smaller");
        assert_eq!(verdict_word("slower", "B", "peak-rss"), "larger");
        assert_eq!(verdict_word("faster", "x", "compression"), "better");
        assert_eq!(verdict_word("slower", "ms", "write-p99"), "slower");
        assert_eq!(verdict_word("faster", "rows/s", "throughput"), "faster");
        assert_eq!(verdict_word("not judged", "B", "bytes"), "not judged");
    }

    #[test]
    fn numbers_read_well() {
        for (value, unit, expected) in [
            (6.1e6, "rows/s", "6.10 M rows/s"),
            (999_600.0, "rows/s", "1.00 M rows/s"),
            (12.0, "rows/s", "12 rows/s"),
            (458_000.0, "1/s", "458 k/s"),
            (12.0, "1/s", "12/s"),
            (850_123_456.0, "B", "850 MB"),
            (1.23e-5, "s", "12.3 µs"),
            (61.5, "us", "61.5 µs"),
            (25.0, "ns", "25 ns"),
            (0.000_999_9, "s", "1.00 ms"),
            (0.0, "s", "0 s"),
            (437.91, "s", "438 s"),
            (4.4321, "x", "4.43×"),
            (17.0, "", "17"),
        ] {
            assert_eq!(quantity(value, unit), expected, "{value} {unit}");
        }
        assert_eq!(
            range_text(6.06e6, 6.16e6, "rows/s"),
            "6.06 .. 6.16 M rows/s"
        );
        assert_eq!(range_text(0.9996e-3, 2.0, "s"), "1.00 ms .. 2 s");
        assert_eq!(share_text(0.523), "52%");
        assert_eq!(share_text(0.0123), "1.2%");
    }
}
