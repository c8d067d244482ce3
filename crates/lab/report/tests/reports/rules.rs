//! The rules that no seed document breaks, and what each leaves alone.

use crate::made_up;

use std::path::Path;

use dyno_record::{Better, Figures, Sample, read_figures};
use dyno_report::{Severity, build_stored, lint};

fn blameless() -> Figures {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/blameless.toml");
    read_figures(&path).unwrap()
}

/// Breaks one thing in a report that has nothing wrong, and expects one finding.
fn check(rule: &str, change: impl FnOnce(&mut Figures)) {
    let mut figures = blameless();
    assert_eq!(lint(&figures), []);
    change(&mut figures);
    let rules: Vec<&str> = lint(&figures).iter().map(|f| f.rule).collect();
    assert_eq!(rules, [rule]);
}

#[test]
fn each_rule_alone() {
    check("debug-build", |f| f.build = Some("debug".into()));
    check("generator-behind", |f| {
        f.figures[0].generator_kept_up = Some(false)
    });
    check("generator-behind", |f| {
        f.figures[0].generator_lag_s = Some(1e-3);
        f.figures[0].latency_p50_s = Some(5e-3);
    });
    check("mixed-row", |f| {
        f.claims.clear();
        f.figures[1].machine = Some("another".into());
    });
    check("mixed-row", |f| {
        f.claims.clear();
        f.figures[1].program = Some("another".into());
    });
    check("percentile-order", |f| f.latencies[0].points[2].1 = 0.5);
    check("percentile-count", |f| f.latencies[0].count = Some(900.0));
    check("failures", |f| f.figures[0].failed = 1);
    check("spread", |f| {
        f.claims.clear();
        f.figures[0].n = Some(1);
    });
    check("spread", |f| f.figures[0].low = None);
    check("above-limit", |f| f.limits[0].value = 30.0);
    check("littles-law", |f| f.figures[0].in_flight = Some(3.0));
    check("short-cell", |f| {
        f.claims.clear();
        f.figures[0].duration_s = Some(20e-6);
        f.figures[0].count = None;
    });
    check("own-throttle", |f| {
        f.figures[0].offered_rate = Some(41.0);
        f.figures[0].latency_mean_s = None;
    });
    check("same-filled", |f| {
        f.figures[0].pages = Some("same-filled".into())
    });
    check("winner-in-noise", |f| f.claims[0].ratio_low = Some(0.99));
    check("count", |f| f.counts[0].stated = 24.0);
    check("total", |f| f.totals[0].stated = 5.0);
    check("rate-times-time", |f| f.figures[0].count = Some(50.0));
}

#[test]
fn a_mark_excuses_a_mixed_row() {
    let mut figures = blameless();
    figures.figures[1].machine = Some("another".into());
    figures.figures.iter_mut().for_each(|f| f.marked = true);
    assert_eq!(lint(&figures), []);
}

#[test]
fn errors_come_before_notes() {
    let mut figures = blameless();
    figures.limits[0].measured = false;
    figures.build = Some("debug".into());
    let order: Vec<Severity> = lint(&figures).iter().map(|f| f.severity).collect();
    assert_eq!(order, [Severity::Error, Severity::Note]);
}

#[test]
fn a_write_may_take_longer_than_a_read() {
    let mut figures = blameless();
    for (name, value) in [("disk-read-latency", 80.0), ("disk-write-latency", 900.0)] {
        let mut limit = figures.limits[0].clone();
        (limit.name, limit.value) = (name.into(), value);
        (limit.unit, limit.better) = ("us".into(), Better::Lower);
        figures.limits.push(limit);
    }
    assert_eq!(lint(&figures), []);
}

/// What bounds a case need not bound a variant of it, such as one that keeps its log in memory.
#[test]
fn a_variant_is_not_held_against_the_limit_of_its_case() {
    let above = |is_variant: bool| -> Vec<String> {
        let mut stored = made_up::stored();
        if is_variant {
            let case = &mut stored.run.plan.cases[0];
            case.variants.insert("chdb".into(), Default::default());
        }
        let fast = |s: &&mut Sample| s.case == "load-gz-2" && s.system == "chdb";
        for sample in stored.samples.iter_mut().filter(fast) {
            *sample.metrics.get_mut("throughput").unwrap() *= 10.0;
        }
        let findings = build_stored(&stored).findings;
        let above = findings.into_iter().filter(|f| f.rule == "above-limit");
        above.map(|finding| finding.subject).collect()
    };
    assert_eq!(above(false), ["load-gz-2/chdb/throughput"]);
    assert!(above(true).is_empty());
}
