//! The text format ("Exposition formats" of the Prometheus documentation, version 0.0.4).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::cells::Histogram;
use super::registry::{Cell, Family, Kind, Labels};

/// Writing to a string cannot fail, which is what each `let _` below stands on.
pub(super) fn render(families: &BTreeMap<String, Family>) -> String {
    let mut text = String::new();
    for (name, family) in families {
        if family.series.is_empty() {
            continue;
        }
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let help = family.help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, cell) in &family.series {
            match cell {
                Cell::Counter(counter) => line(&mut text, name, labels, None, counter.shown()),
                Cell::Gauge(gauge) => line(&mut text, name, labels, None, gauge.get()),
                Cell::Histogram(histogram) => buckets(&mut text, name, labels, histogram),
            }
        }
    }
    text
}

fn buckets(text: &mut String, name: &str, labels: &Labels, histogram: &Histogram) {
    let (counts, sum) = histogram.read();
    let per_unit = histogram.scale().per_unit();
    let bounds = histogram.bounds().iter();
    let bounds = bounds.map(|bound| (*bound as f64 / per_unit).to_string());
    let bounds = bounds.chain(["+Inf".to_owned()]);
    let bucket = format!("{name}_bucket");
    for (bound, count) in bounds.zip(&counts) {
        line(text, &bucket, labels, Some(&bound), count);
    }
    let total = counts.last().copied().unwrap_or(0);
    line(
        text,
        &format!("{name}_sum"),
        labels,
        None,
        sum as f64 / per_unit,
    );
    line(text, &format!("{name}_count"), labels, None, total);
}

fn line(text: &mut String, name: &str, labels: &Labels, bound: Option<&str>, value: impl ToString) {
    text.push_str(name);
    let labels = labels
        .iter()
        .map(|(label, value)| (label.as_str(), value.as_str()));
    let mut sign = '{';
    for (label, value) in labels.chain(bound.map(|bound| ("le", bound))) {
        let value = value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        let _ = write!(text, "{sign}{label}=\"{value}\"");
        sign = ',';
    }
    if sign == ',' {
        text.push('}');
    }
    let _ = writeln!(text, " {}", value.to_string());
}

#[cfg(test)]
mod tests {
    use crate::metrics::{Histogram, Registry, Scale};

    #[test]
    fn the_text_is_as_the_format_says() {
        let registry = Registry::new();
        let sent = registry.counter(
            "sent_total",
            "Sent.\nAll of it.",
            &[("topic", "a\"b\\c\nd")],
        );
        sent.unwrap().add(3);
        registry.gauge("open", "Open.", &[]).unwrap().set(-2);
        let slept =
            registry.scaled_counter("slept_seconds_total", "Slept.", &[], Scale::Nanoseconds);
        slept.unwrap().add(2_500_000);
        registry
            .gauge("open", "Open.", &[("gone", "1")])
            .unwrap()
            .set(1);
        registry.remove("open", &[("gone", "1")]);
        let waits = registry
            .histogram(
                "wait_seconds",
                "Waits.",
                &[("q", "1")],
                Scale::Nanoseconds,
                &[1_000_000, 2_500_000_000],
            )
            .unwrap();
        for ns in [1_000_000, 1_000_001, 9_000_000_000] {
            waits.observe(ns);
        }
        assert_eq!(
            registry.text(),
            "# HELP open Open.\n# TYPE open gauge\nopen -2\n\
             # HELP sent_total Sent.\\nAll of it.\n# TYPE sent_total counter\n\
             sent_total{topic=\"a\\\"b\\\\c\\nd\"} 3\n\
             # HELP slept_seconds_total Slept.\n# TYPE slept_seconds_total counter\n\
             slept_seconds_total 0.0025\n\
             # HELP wait_seconds Waits.\n# TYPE wait_seconds histogram\n\
             wait_seconds_bucket{q=\"1\",le=\"0.001\"} 1\n\
             wait_seconds_bucket{q=\"1\",le=\"2.5\"} 2\n\
             wait_seconds_bucket{q=\"1\",le=\"+Inf\"} 3\n\
             wait_seconds_sum{q=\"1\"} 9.002000001\n\
             wait_seconds_count{q=\"1\"} 3\n"
        );
    }

    #[test]
    fn one_name_is_one_metric() {
        let registry = Registry::new();
        let a = registry.counter("a_total", "A.", &[("x", "1")]).unwrap();
        a.add(1);
        let same = registry.counter("a_total", "A.", &[("x", "1")]).unwrap();
        same.add(1);
        assert_eq!(a.get(), 2);
        assert!(registry.gauge("a_total", "A.", &[]).is_err());
        assert!(registry.counter("a_total", "Other.", &[]).is_err());
        assert!(registry.counter("a", "No total.", &[]).is_err());
        assert!(registry.gauge("9", "Digit.", &[]).is_err());
        assert!(registry.gauge("b", "Kept.", &[("le", "1")]).is_err());
        assert!(
            registry
                .gauge("b", "Twice.", &[("x", "1"), ("x", "2")])
                .is_err()
        );
        let bounds = Histogram::LATENCY_NS;
        let wait = |bounds: &[u64]| {
            registry
                .histogram("w_seconds", "W.", &[], Scale::Nanoseconds, bounds)
                .is_ok()
        };
        assert!(wait(&bounds) && !wait(&bounds[1..]) && !wait(&[2, 1]) && !wait(&[]));
        registry.forget("x", "1");
        assert!(!registry.text().contains("a_total"));
    }

    #[test]
    fn gauges_are_refreshed_before_they_are_shown() {
        let registry = Registry::new();
        let gauge = registry.gauge("g", "G.", &[]).unwrap();
        let seen = gauge.clone();
        registry.refresh_by(move || seen.add(5));
        assert!(registry.text().contains("g 5\n"));
        assert!(registry.text().contains("g 10\n"));
    }
}
