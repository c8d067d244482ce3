//! Result files of other tools. Those in `foreign` were printed by the tools themselves, except for
//! the ones that its README.md names.

use std::path::{Path, PathBuf};

use dyno_record::Figures;
use dyno_report::{ForeignError, Severity, lint, lint_text, read_foreign};
use proptest::prelude::*;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign")
}

fn text(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

fn read(name: &str) -> Figures {
    read_foreign(name, &text(name)).unwrap()
}

/// (id, value, unit, n) of each figure, the value with four digits.
fn figure_lines(figures: &Figures) -> Vec<String> {
    let lines = figures.figures.iter().map(|f| {
        let n = f.n.map_or("?".to_owned(), |n| n.to_string());
        format!("{}: {:.4e} {}, n = {n}", f.id, f.value, f.unit)
    });
    lines.collect()
}

/// The rules that find something, in the order of their findings.
fn rules(figures: &Figures) -> Vec<&'static str> {
    lint(figures).iter().map(|f| f.rule).collect()
}

/// Every tool's file is read, has no error of its own, and says what it cannot tell.
#[test]
fn every_file_is_read_and_says_what_it_cannot_tell() {
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name == "README.md" {
            continue;
        }
        let figures = read(&name);
        assert!(!figures.figures.is_empty(), "{name}");
        assert!(figures.unknown.len() >= 3, "{name}");
        let findings = lint(&figures);
        println!("{name}: {:#?}", figure_lines(&figures));
        let errors = findings.iter().filter(|f| f.severity == Severity::Error);
        let errors: Vec<_> = errors.filter(|f| f.rule != "count").collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
        assert!(
            lint_text(&figures, &findings).contains("What cannot be known"),
            "{name}"
        );
    }
}

#[test]
fn a_loop_is_closed_where_the_file_says_so() {
    let in_flight = |name: &str| -> Vec<Option<f64>> {
        let figures = read(name).figures;
        let rates = figures.iter().filter(|f| f.metric != "bandwidth");
        rates.map(|f| f.in_flight).collect()
    };
    assert_eq!(in_flight("fio.json"), [Some(1.0)]);
    assert_eq!(in_flight("fio-mixed.json"), [None, None]);
    assert_eq!(in_flight("pgbench.txt"), [Some(4.0)]);
    assert_eq!(in_flight("pgbench-rate.txt"), [None]);
    assert_eq!(in_flight("wrk.txt"), [Some(4.0)]);
    assert_eq!(in_flight("wrk2.txt"), [None]);
}

/// fio states the rate of one clone, and the figure of a group is that of all clones.
#[test]
fn the_rate_of_a_group_is_that_of_all_its_clones() {
    let offered = |options: &str| -> Vec<Option<f64>> {
        let numjobs = "\"numjobs\" : \"2\",";
        let limited = text("fio-mixed.json").replacen(numjobs, &format!("{numjobs} {options}"), 1);
        let figures = read_foreign("fio.json", &limited).unwrap().figures;
        let rates = figures.iter().filter(|f| f.metric == "iops");
        rates.map(|f| f.offered_rate).collect()
    };
    let rate = "\"rate_iops\" : \"500\",";
    assert_eq!(offered(rate), [Some(500.0); 2]);
    let grouped = format!("{rate} \"group_reporting\" : \"\",");
    assert_eq!(offered(&grouped), [Some(1000.0); 2]);
    assert_eq!(offered(""), [None; 2]);
}

#[test]
fn percentiles_come_with_their_number_and_mean() {
    let wrk2 = read("wrk2.txt");
    assert_eq!(wrk2.latencies[0].count, Some(39500.0));
    assert_eq!(wrk2.latencies[0].points[3], (99.0, 0.01118));
    assert_eq!(wrk2.figures[0].latency_mean_s, Some(0.0066));
    let redis = read("redis-benchmark.csv");
    assert_eq!(redis.latencies[0].points.len(), 5);
    assert_eq!(redis.latencies[0].mean, Some(0.156));
    let jmh = read("jmh-sample.json");
    assert_eq!(jmh.latencies[0].unit, "us");
    let fio = read("fio.json");
    assert!(fio.latencies[0].count.unwrap() > 1000.0);
}

#[test]
fn a_query_without_an_answer_is_counted() {
    let figures = read("clickbench.json");
    assert_eq!(figures.figures.len(), 4);
    assert_eq!(
        (figures.counts[0].stated, figures.counts[0].expected),
        (4.0, 5.0)
    );
    assert!(rules(&figures).contains(&"count"));
}

#[test]
fn a_tampered_mean_is_found() {
    let tampered = text("hyperfine.json").replacen("\"mean\": 0.", "\"mean\": 1.", 1);
    let figures = read_foreign("hyperfine.json", &tampered).unwrap();
    assert!(rules(&figures).contains(&"total"), "{figures:#?}");
}

#[test]
fn a_command_that_failed_or_was_killed_is_counted() {
    let codes = "{\"results\": [{\"command\": \"a\", \"mean\": 1.0, \"median\": 1.0, \
                 \"times\": [0.9, 1.0, 1.1], \"exit_codes\": [0, 1, null]}]}";
    let figures = read_foreign("x", codes).unwrap();
    assert_eq!(figures.figures[0].failed, 2);
    assert!(rules(&figures).contains(&"failures"));
}

#[test]
fn little_s_law_is_held_against_pgbench() {
    let figures = read("pgbench.txt");
    let tps = &figures.figures[0];
    assert!(tps.in_flight.is_some() && tps.latency_mean_s.is_some());
    let slow = text("pgbench.txt").replacen("tps = ", "tps = 9", 1);
    let figures = read_foreign("pgbench.txt", &slow).unwrap();
    assert!(rules(&figures).contains(&"littles-law"));
}

#[test]
fn what_no_tool_wrote_is_refused_with_the_list_of_tools() {
    for text in [
        "",
        "{}",
        "[]",
        "null",
        "hello",
        "[[[[",
        "{\"jobs\": 1}",
        "\u{0}\u{1}",
    ] {
        let error = read_foreign("x", text).unwrap_err();
        assert!(matches!(error, ForeignError::Unknown), "{text}: {error}");
        assert!(error.to_string().contains("hyperfine"), "{error}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let error = read_foreign("x", "{\"fio version\": \"fio-3.1\"}").unwrap_err();
    assert_eq!(
        error.to_string(),
        "it looks like a file of fio, but there is no list at /jobs"
    );
    let error = read_foreign("x", "\"test\",\"rps\"\n\"SET\",\"fast\"\n").unwrap_err();
    assert!(error.to_string().ends_with("row 1 has no rate"), "{error}");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(read_foreign("x", &deep).is_err());
}

#[test]
fn hostile_numbers_are_findings_and_not_panics() {
    let text = text("fio.json").replace("\"iops\" : ", "\"iops\" : -1e308");
    if let Ok(figures) = read_foreign("fio.json", &text) {
        lint(&figures);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// A file with a piece cut out, or bytes changed, is read or refused.
    #[test]
    fn damaged_files_never_panic(
        which in 0_usize..10,
        from in 0.0_f64..1.0,
        length in 0_usize..400,
        put in "[-0-9eE.,:\"{}\\[\\]a-zA-Z%\n ]{0,6}",
    ) {
        let mut names: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.file_name().unwrap() != "README.md")
            .collect();
        names.sort();
        let whole = std::fs::read_to_string(&names[which % names.len()]).unwrap();
        let chars: Vec<char> = whole.chars().collect();
        let start = (from * chars.len() as f64) as usize;
        let end = (start + length).min(chars.len());
        let mut damaged: String = chars[..start].iter().collect();
        damaged.push_str(&put);
        damaged.extend(&chars[end..]);
        if let Ok(figures) = read_foreign("target/criterion/a/new/estimates.json", &damaged) {
            let findings = lint(&figures);
            lint_text(&figures, &findings);
        }
    }
}
