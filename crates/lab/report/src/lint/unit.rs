//! Units as reports print them: `MB/s`, `K rows/s`, `Gbit/s`, `us`, `IOPS`.

/// What is counted or measured, without its prefix.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Time,
    Bytes,
    /// Rows, requests, pages; empty for a bare number.
    Thing(String),
}

/// A unit taken apart. Base units are the second, the byte and the single thing.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Unit {
    pub(super) of: Kind,
    /// Base units in one of it: 1e6 for `MB` and for `MB/s`.
    pub(super) scale: f64,
    /// What it is divided by, with the number of base units: (time, 60) for `ops/min`.
    pub(super) per: Option<(Kind, f64)>,
}

const PREFIXES: [(&str, f64); 14] = [
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("thousand ", 1e3),
    ("million ", 1e6),
    ("billion ", 1e9),
    ("k", 1e3),
    ("K", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("", 1.0),
];

const TIMES: [(&str, f64); 18] = [
    ("s", 1.0),
    ("sec", 1.0),
    ("secs", 1.0),
    ("second", 1.0),
    ("seconds", 1.0),
    ("ms", 1e-3),
    ("msec", 1e-3),
    // The micro sign and the Greek letter look the same.
    ("\u{b5}s", 1e-6),
    ("\u{3bc}s", 1e-6),
    ("us", 1e-6),
    ("usec", 1e-6),
    ("ns", 1e-9),
    ("nsec", 1e-9),
    ("min", 60.0),
    ("minute", 60.0),
    ("minutes", 60.0),
    ("h", 3600.0),
    ("hour", 3600.0),
];

/// Rates that are written as one word, which may have a prefix before it.
const RATES: [(&str, &str); 10] = [
    ("Bps", "B/s"),
    ("bps", "bit/s"),
    ("IOPS", "op/s"),
    ("iops", "op/s"),
    ("RPS", "req/s"),
    ("rps", "req/s"),
    ("TPS", "txn/s"),
    ("tps", "txn/s"),
    ("QPS", "query/s"),
    ("qps", "query/s"),
];

/// Things by one name each. A prefix may stick to these words: `Mrows` is a million rows, while
/// `messages` does not begin with a prefix.
const THINGS: [(&str, &str); 32] = [
    ("op", "op"),
    ("ops", "op"),
    ("operation", "op"),
    ("operations", "op"),
    ("io", "op"),
    ("iops", "op"),
    ("req", "req"),
    ("reqs", "req"),
    ("request", "req"),
    ("requests", "req"),
    ("msg", "msg"),
    ("msgs", "msg"),
    ("message", "msg"),
    ("messages", "msg"),
    ("tx", "txn"),
    ("txn", "txn"),
    ("txns", "txn"),
    ("transaction", "txn"),
    ("transactions", "txn"),
    ("query", "query"),
    ("queries", "query"),
    ("row", "row"),
    ("rows", "row"),
    ("page", "page"),
    ("pages", "page"),
    ("call", "call"),
    ("calls", "call"),
    ("record", "record"),
    ("records", "record"),
    ("elem", "element"),
    ("element", "element"),
    ("elements", "element"),
];

/// The unit, unless it has more than one stroke.
pub(super) fn parse(text: &str) -> Option<Unit> {
    let text = text.trim().replace(" per ", "/");
    if let Some((above, below)) = text.split_once('/') {
        let (of, scale) = part(above);
        // `B/s/core` has two strokes. Reading it as `B/s` would compare what one core does with
        // what all do.
        let per = (!below.contains('/')).then(|| part(below))?;
        return Some(Unit {
            of,
            scale,
            per: Some(per),
        });
    }
    for (word, meaning) in RATES {
        let prefix = text.strip_suffix(word).and_then(prefix_value);
        if let (Some(factor), Some(mut unit)) = (prefix, prefix.and_then(|_| parse(meaning))) {
            unit.scale *= factor;
            return Some(unit);
        }
    }
    let (of, scale) = part(&text);
    Some(Unit {
        of,
        scale,
        per: None,
    })
}

fn prefix_value(prefix: &str) -> Option<f64> {
    let known = |(name, _): &&(&str, f64)| name.trim_end() == prefix.trim_end();
    PREFIXES.iter().find(known).map(|(_, factor)| *factor)
}

/// One side of the stroke.
fn part(text: &str) -> (Kind, f64) {
    let text = text.trim();
    match text {
        "" | "1" | "x" | "\u{d7}" => return (Kind::Thing(String::new()), 1.0),
        "%" => return (Kind::Thing(String::new()), 0.01),
        _ => (),
    }
    if let Some((_, seconds)) = TIMES.iter().find(|(name, _)| *name == text) {
        return (Kind::Time, *seconds);
    }
    for (prefix, factor) in PREFIXES {
        let Some(rest) = text.strip_prefix(prefix) else {
            continue;
        };
        match rest.trim_start() {
            "B" | "byte" | "bytes" | "Byte" | "Bytes" => return (Kind::Bytes, factor),
            "b" | "bit" | "bits" => return (Kind::Bytes, factor / 8.0),
            word if rest.starts_with(' ') || prefix.ends_with(' ') => {
                return (thing(word), factor);
            }
            word if THINGS.iter().any(|(name, _)| *name == word) => {
                return (thing(word), factor);
            }
            _ => (),
        }
    }
    (thing(text), 1.0)
}

fn thing(word: &str) -> Kind {
    let lower = word.to_lowercase();
    let known = THINGS.iter().find(|(name, _)| *name == lower);
    let name = known.map_or(lower.trim_end_matches('s'), |(_, name)| name);
    Kind::Thing(name.to_owned())
}

impl Unit {
    /// Base units, a second where it is divided by time.
    pub(super) fn factor(&self) -> f64 {
        self.scale / self.per.as_ref().map_or(1.0, |(_, factor)| *factor)
    }

    pub(super) fn is_rate(&self) -> bool {
        matches!(self.per, Some((Kind::Time, _)))
    }

    /// Whether one can be converted into the other. A bare `/s` counts what the other counts.
    fn compares_with(&self, other: &Unit) -> bool {
        let bare = |kind: &Kind| matches!(kind, Kind::Thing(name) if name.is_empty());
        let thing = |kind: &Kind| matches!(kind, Kind::Thing(_));
        let one_bare = self.is_rate() && (bare(&self.of) || bare(&other.of));
        let same = self.of == other.of || (one_bare && thing(&self.of) && thing(&other.of));
        let below = |unit: &Unit| unit.per.as_ref().map(|(kind, _)| kind.clone());
        same && below(self) == below(other)
    }
}

/// `value` in the unit `to`; nothing when the two measure different things.
pub(super) fn convert(value: f64, from: &str, to: &str) -> Option<f64> {
    if from.trim() == to.trim() {
        return Some(value);
    }
    let (from, to) = (parse(from)?, parse(to)?);
    from.compares_with(&to)
        .then(|| value * from.factor() / to.factor())
}

/// `value` as a number of things a second; nothing for bytes, and for what is not a rate.
pub(super) fn things_per_second(value: f64, unit: &str) -> Option<f64> {
    let unit = parse(unit)?;
    let counts = unit.is_rate() && matches!(unit.of, Kind::Thing(_));
    counts.then(|| value * unit.factor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_compared_is_converted() {
        for (value, from, to, expected) in [
            (900.0, "MB/s", "GB/s", 0.9),
            (1.0, "GiB/s", "MB/s", 1_073.741_824),
            (40.0, "Gbit/s", "GB/s", 5.0),
            (40.0, "Gbps", "MB/s", 5000.0),
            (400.0, "K ops/s", "IOPS", 400e3),
            (24.7, "Mrows/s", "rows/s", 24.7e6),
            (2.0, "kIOPS", "op/s", 2000.0),
            (60.0, "ops/min", "ops/s", 1.0),
            (1.5, "ms", "\u{b5}s", 1500.0),
            (0.5, "s", "ns", 5e8),
            (3.0, "messages/s", "msg/s", 3.0),
            (7.0, "1/s", "txn/s", 7.0),
            (5.0, "million rows per second", "rows/s", 5e6),
            (3.0, "frobs", "frobs", 3.0),
        ] {
            let found = convert(value, from, to).unwrap_or(f64::NAN);
            let off = (found / expected - 1.0).abs();
            assert!(off < 1e-9, "{value} {from} is {found} {to}");
        }
    }

    #[test]
    fn what_differs_is_not() {
        for (from, to) in [
            ("rows/s", "B/s"),
            ("s", "rows/s"),
            ("ops/s", "txn/s"),
            ("B", "B/s"),
            ("a/b/c", "a/b"),
            ("1/s", "B/s"),
        ] {
            assert_eq!(convert(1.0, from, to), None, "{from} {to}");
        }
        assert_eq!(things_per_second(900.0, "MB/s"), None);
        assert_eq!(things_per_second(2.0, "K req/s"), Some(2000.0));
    }
}
