//! A small made-up run, printed in every form.

use crate::made_up::{HOSTILE, stored};
use dyno_report::{Severity, build, build_stored, figures_of, headline, lint};

#[test]
fn headline_of_a_run() {
    insta::assert_snapshot!(headline(&build_stored(&stored())).to_lines().join("\n"));
}

#[test]
fn markdown_of_a_run() {
    insta::assert_snapshot!(build_stored(&stored()).to_markdown().unwrap());
}

#[test]
fn json_has_the_figures_in_the_stated_form() {
    let json = build_stored(&stored()).to_json().unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let figures = value["figures"].as_array().unwrap();
    let figure = |case: &str, system: &str, metric: &str| {
        let same = |f: &&serde_json::Value| {
            f["case"] == case && f["system"] == system && f["metric"] == metric
        };
        figures.iter().find(same).unwrap().clone()
    };
    let some = serde_json::json!([
        figure("load-gz-2", "dyno", "throughput"),
        figure("load-gz-2", "chdb", "throughput"),
        figure("load-once", "dyno", "throughput"),
        figure("ask-open", "duckdb", "latency-p99"),
    ]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&some).unwrap());
    let cpu = figure("load-gz-2", "dyno", "cpu");
    // A lower number of CPU seconds is better, and above 1 means that ours is better.
    assert!(cpu["ratio_to"]["duckdb"]["ratio"].as_f64().unwrap() > 5.0);
    assert_eq!(value["failures"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&value["version"], &value["withdrawn"]),
        (&3.into(), &serde_json::Value::Null)
    );
}

#[test]
fn the_same_run_prints_the_same() {
    let report = build_stored(&stored());
    assert_eq!(
        report.to_html().unwrap(),
        build_stored(&stored()).to_html().unwrap()
    );
    assert_eq!(
        report.to_json().unwrap(),
        build_stored(&stored()).to_json().unwrap()
    );
}

#[test]
fn a_ratio_can_be_checked_by_hand_and_failures_are_in_no_figure() {
    let report = build_stored(&stored());
    let ours = report.figure("load-gz-2", "dyno", "throughput").unwrap();
    let duckdb = report.figure("load-gz-2", "duckdb", "throughput").unwrap();
    let ratio = &ours.ratio_to["duckdb"];
    assert!((ratio.ratio - ours.median / duckdb.median).abs() < 1e-9);
    assert_eq!(
        (ratio.verdict, ratio.blocks, ratio.band.is_some()),
        ("faster", 8, true)
    );
    let chdb = report.figure("load-gz-2", "chdb", "throughput").unwrap();
    assert_eq!((chdb.n, report.trouble_count("load-gz-2", "chdb")), (6, 2));
    assert_eq!(ours.ratio_to["chdb"].blocks, 6);
    assert!(chdb.ratio_to.is_empty());
}

#[test]
fn the_limit_is_the_better_of_ours_and_the_independent_tool() {
    let report = build_stored(&stored());
    let ours = report.figure("load-gz-2", "dyno", "throughput").unwrap();
    assert_eq!(ours.limit, Some(431e6 / 42.0));
    let share = ours.share_of_limit.unwrap();
    assert!((share - ours.median / (431e6 / 42.0)).abs() < 1e-12);
}

#[test]
fn a_limit_says_what_the_other_method_measured() {
    let row = |value: f64, other: Option<(&str, f64)>| {
        let mut stored = stored();
        stored.run.limits[0].value = value;
        stored.run.limits[0].independent = other.map(|(name, value)| (name.into(), value));
        let markdown = build_stored(&stored).to_markdown().unwrap();
        let row = markdown.lines().find(|l| l.starts_with("| inflate-1 | "));
        row.unwrap().to_owned()
    };
    let ours_is_better = row(431e6, Some(("igzip", 420e6)));
    assert!(ours_is_better.ends_with("(ours 431 MB/s, igzip 420 MB/s) |"));
    let tool_is_better = row(431e6, Some(("ours", 420e6)));
    assert!(tool_is_better.ends_with("(ours 420 MB/s) |"));
    let ours_is_not_known = row(431e6, Some(("igzip", 431e6)));
    assert!(ours_is_not_known.ends_with("(igzip 431 MB/s) |"));
    assert!(row(431e6, None).ends_with("(no independent tool ran) |"));
}

#[test]
fn our_own_report_answers_to_the_linter() {
    let mut stored = stored();
    let rules = |stored: &dyno_record::StoredRun| {
        let report = build(&stored.run, &stored.samples);
        let findings = lint(&figures_of(&report, &stored.samples));
        findings.iter().map(|f| f.rule).collect::<Vec<_>>()
    };
    assert_eq!(
        rules(&stored),
        [
            "percentile-count",
            "percentile-count",
            "spread",
            "failures",
            "conditions"
        ]
    );
    stored.run.program.profile = "debug".into();
    stored.run.limits[0].value = 100e6;
    stored.run.limits[0].high = 100e6;
    stored.run.limits[0].independent = None;
    if let Some(answer) = &mut stored.samples[0].answer {
        answer.count = 5_999_999;
    }
    let found = rules(&stored);
    for rule in ["above-limit", "count", "debug-build"] {
        assert!(found.contains(&rule), "{rule} is missing in {found:?}");
    }
}

#[test]
fn the_time_from_outside_is_not_that_of_a_rate() {
    let mut stored = stored();
    // A workload that does not say what its clock covered: the runner's time is 50 ms longer.
    for sample in &mut stored.samples {
        sample.metrics.remove("time");
    }
    let report = build_stored(&stored);
    let figures = figures_of(&report, &stored.samples);
    assert!(figures.figures.iter().all(|f| f.duration_s.is_none()));
    let findings = lint(&figures);
    assert!(findings.iter().all(|f| f.rule != "rate-times-time"));
}

#[test]
fn a_system_without_any_result_is_a_finding() {
    let mut stored = stored();
    for sample in stored.samples.iter_mut().filter(|s| s.system == "dyno") {
        sample.outcome = dyno_record::Outcome::Hung("killed".into());
    }
    let report = build_stored(&stored);
    let none = report
        .findings
        .iter()
        .find(|f| f.rule == "no-result")
        .unwrap();
    assert_eq!(
        (none.severity, &*none.subject),
        (Severity::Error, "load-gz-2/dyno")
    );
}

#[test]
fn hostile_text_stays_text() {
    let mut stored = stored();
    stored.run.plan.cases[0].unit = HOSTILE.into();
    let report = build_stored(&stored);
    let html = report.to_html().unwrap();
    assert!(!html.contains("<img"), "markup of the record came through");
    // The page's own two elements, and no other, close a script.
    assert_eq!(html.matches("</script").count(), 2);
    assert!(html.contains("\\u003c/script"));
    let markdown = report.to_markdown().unwrap();
    assert!(!markdown.contains("<img") && !markdown.contains(HOSTILE));
}

#[test]
fn the_page_is_small_and_asks_for_nothing() {
    let html = build_stored(&stored()).to_html().unwrap();
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    for outside in [
        "src=\"",
        "href=\"http",
        "url(",
        "@import",
        "fetch(",
        "XMLHttpRequest",
    ] {
        assert!(!html.contains(outside), "{outside} in the page");
    }
}

#[test]
fn a_long_run_stays_below_a_megabyte() {
    let mut stored = stored();
    let some = stored.samples.clone();
    for round in 0..20 {
        stored
            .samples
            .extend(some.iter().cloned().map(|mut sample| {
                sample.block += 100 * (round + 1);
                sample
            }));
    }
    let html = build_stored(&stored).to_html().unwrap();
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    assert!(html.contains("more are in samples.ndjson"));
}

#[test]
fn variants_have_their_table_in_every_form() {
    let mut run = stored();
    let cases = &mut run.run.plan.cases;
    let case = cases.iter_mut().find(|c| c.name == "load-gz-2").unwrap();
    case.variants.insert("chdb".into(), Default::default());
    let report = build_stored(&run);
    let title = "Variants and libraries inside dyno";
    assert!(report.to_json().unwrap().contains(title));
    assert!(report.to_html().unwrap().contains(title));
    assert!(report.to_markdown().unwrap().contains(title));
}

#[test]
fn time_that_was_stolen_while_samples_ran_is_a_condition() {
    let mut stored = stored();
    stored.run.machine.checks.clear();
    let said = |steal: f64| {
        let mut run = stored.clone();
        for sample in &mut run.samples {
            sample.usage.steal = Some(steal);
        }
        let findings = build_stored(&run).findings;
        let condition = findings.into_iter().find(|f| f.rule == "conditions");
        condition.map(|finding| (finding.subject, finding.seen))
    };
    let seen = "3.4% stolen while samples ran".to_owned();
    assert_eq!(said(0.034), Some(("steal".to_owned(), seen)));
    assert_eq!(said(0.009), None);
}
