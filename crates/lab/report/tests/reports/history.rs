//! Runs of one suite over time, from made-up runs of a known course.

use crate::made_up;

use std::collections::BTreeMap;
use std::path::Path;

use dyno_record::{
    HistoryLine, Note, RunDir, StoredRun, append_history, append_note, find_runs, read_history,
    read_notes,
};
use dyno_report::{History, HistoryFilter, build, build_stored, history_line};

/// The made-up run on a day, with every rate multiplied by `factor`.
fn line(day: u32, factor: f64, fingerprint: &str) -> HistoryLine {
    let StoredRun {
        mut run,
        mut samples,
        ..
    } = made_up::stored();
    run.started_at = format!("2026-10-{day:02}T08:00:00Z");
    run.program.git_revision = format!("rev{day:02}");
    run.machine.fingerprint = fingerprint.into();
    for sample in &mut samples {
        if let Some(rate) = sample.metrics.get_mut("throughput") {
            // A little scatter, which is no change.
            *rate *= factor * (1.0 + 0.002 * f64::from((day * 7) % 5));
        }
    }
    history_line(&build(&run, &samples), &format!("run-{day:02}"), &[])
}

/// Twelve runs before a step of `factor`, and `newer` behind it.
fn course(newer: u32, factor: f64) -> Vec<HistoryLine> {
    let lines = (1..=12 + newer).map(|day| line(day, if day > 12 { factor } else { 1.0 }, "a1"));
    lines.collect()
}

fn of_case(lines: Vec<HistoryLine>) -> History {
    let cases = vec!["load-gz-2".to_owned()];
    let filter = HistoryFilter {
        cases,
        ..HistoryFilter::default()
    };
    History::from_lines(lines, &filter, Vec::new())
}

#[test]
fn a_step_is_called_once_newer_runs_agree() {
    assert!(of_case(course(1, 0.9)).series[0].changes.is_empty());
    for (factor, is_better) in [(0.9, false), (1.1, true)] {
        let history = of_case(course(4, factor));
        assert_eq!(history.series.len(), 1);
        let series = &history.series[0];
        assert_eq!(
            (series.points.len(), series.changes.len()),
            (16, 1),
            "{:?}",
            series.changes
        );
        let change = &series.changes[0];
        assert_eq!((change.at, change.is_better), (12, is_better));
        assert!((change.change - (factor - 1.0)).abs() < 0.01, "{change:?}");
        let text = history.to_markdown();
        let row = text
            .lines()
            .find(|line| line.contains("2026-10-13"))
            .unwrap();
        let word = if is_better {
            "more, better"
        } else {
            "less, worse"
        };
        assert!(row.contains("rev13") && row.contains(word), "{row}");
    }
}

#[test]
fn runs_of_two_machines_are_two_series() {
    let mut lines = course(4, 1.0);
    for (index, line) in lines.iter_mut().enumerate() {
        if index % 2 == 1 {
            line.fingerprint = "b2".into();
        }
    }
    let history = of_case(lines.clone());
    let lengths: Vec<usize> = history.series.iter().map(|one| one.points.len()).collect();
    assert_eq!(lengths, [8, 8]);
    let refused = history.to_bencher().unwrap_err();
    assert!(refused.contains("--machine, of a1, b2"), "{refused}");
    assert!(history.to_otava().is_err());
    // Another setting and another parameter of the case begin series of their own too.
    lines
        .iter_mut()
        .for_each(|line| line.fingerprint = "a1".into());
    lines[0].setting = "rows=5".into();
    for figure in &mut lines[1].figures {
        figure.params = "other".into();
    }
    assert_eq!(of_case(lines).series.len(), 3);
}

#[test]
fn notes_stand_where_they_belong() {
    let note = |date: &str, case: Option<&str>, machine: Option<&str>| Note {
        date: date.into(),
        text: format!("<b>{date}|"),
        case: case.map(Into::into),
        machine: machine.map(Into::into),
    };
    let notes = vec![
        note("2026-10-05", None, Some("a1")),
        note("2026-10-06", Some("other"), None),
        note("2026-12-01", Some("load-gz-2"), None),
    ];
    let filter = HistoryFilter {
        cases: vec!["load-gz-2".into()],
        ..HistoryFilter::default()
    };
    let history = History::from_lines(course(3, 0.8), &filter, notes);
    let text = history.to_markdown();
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("| 2026"))
        .collect();
    assert_eq!(rows.len(), 17, "{text}");
    assert!(rows[4].contains("&lt;b&gt;2026-10-05\\|"), "{}", rows[4]);
    assert!(rows[5].contains("rev05") && rows[16].contains("2026-12-01"));
    assert!(!text.contains("2026-10-06 "), "a note on another case");
    let html = history.to_html().unwrap();
    for piece in [
        "<svg",
        "class=\"change bad\"",
        "class=\"said\"",
        "less, worse",
        "&lt;b&gt;",
    ] {
        assert!(html.contains(piece), "{piece}");
    }
    assert!(!html.contains("<b>") && !html.contains("<script") && !html.contains("NaN"));
}

#[test]
fn the_newest_run_is_exported_to_bencher() {
    let mut lines = course(1, 1.0);
    // A case that the newest run no longer has is not exported with an old figure.
    let last = lines.last_mut().unwrap();
    last.figures.retain(|figure| figure.case == "load-gz-2");
    let history = History::from_lines(lines, &HistoryFilter::default(), Vec::new());
    let exported: serde_json::Value = serde_json::from_str(&history.to_bencher().unwrap()).unwrap();
    let benchmarks = exported.as_object().unwrap();
    assert_eq!(benchmarks.len(), 1, "{exported}");
    let metric = &benchmarks["wspr/load-gz-2/dyno"]["throughput"];
    let number = |name: &str| metric[name].as_f64().unwrap();
    assert!(number("lower_value") <= number("value"));
    assert!(number("value") <= number("upper_value"));
}

#[test]
fn every_run_is_a_line_for_otava() {
    let mut lines = course(1, 1.0);
    lines[3].figures.retain(|figure| figure.case == "load-gz-2");
    let history = History::from_lines(lines, &HistoryFilter::default(), Vec::new());
    let table = history.to_otava().unwrap();
    assert_eq!(table.left_out, ["run-04"]);
    let rows: Vec<Vec<&str>> = table.csv.lines().map(|l| l.split(',').collect()).collect();
    assert_eq!(rows.len(), 13);
    assert_eq!(rows[0][..3], ["time", "run", "revision"]);
    assert!(
        rows[0].contains(&"load-gz-2.dyno.throughput"),
        "{:?}",
        rows[0]
    );
    assert_eq!(rows[1][..3], ["2026-10-01T08:00:00Z", "run-01", "rev01"]);
    for row in &rows[1..] {
        assert_eq!(row.len(), rows[0].len());
        assert!(
            row[3..].iter().all(|cell| cell.parse::<f64>().is_ok()),
            "{row:?}"
        );
    }
}

#[test]
fn a_file_keeps_each_run_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.ndjson");
    for expected in [true, false] {
        assert_eq!(
            append_history(&path, &line(1, 1.0, "a1")).unwrap(),
            expected
        );
    }
    assert!(append_history(&path, &line(2, 1.0, "a1")).unwrap());
    assert_eq!(
        read_history(&path).unwrap(),
        [line(1, 1.0, "a1"), line(2, 1.0, "a1")]
    );

    let text = std::fs::read_to_string(&path).unwrap();
    for (broken, reason) in [
        (
            text.replacen("\"version\":1", "\"version\":9", 1),
            "version 9",
        ),
        (text.replacen("dyno-history", "other", 2), "no magic"),
        (format!("{text}{{\"torn"), "line 3"),
    ] {
        std::fs::write(&path, broken).unwrap();
        let refused = read_history(&path).unwrap_err().to_string();
        assert!(refused.contains(reason), "{refused}");
        assert!(append_history(&path, &line(3, 1.0, "a1")).is_err());
    }
}

#[test]
fn notes_are_appended_and_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notes.toml");
    let note = |date: &str, text: &str| Note {
        date: date.into(),
        text: text.into(),
        case: None,
        machine: None,
    };
    append_note(&path, note("2026-11-02", "second \"one\"\n#")).unwrap();
    append_note(&path, note("2026-11-01", "first")).unwrap();
    let dates: Vec<String> = read_notes(&path)
        .unwrap()
        .into_iter()
        .map(|n| n.date)
        .collect();
    assert_eq!(dates, ["2026-11-01", "2026-11-02"]);
    let refused = append_note(&path, note("yesterday", "x"))
        .unwrap_err()
        .to_string();
    assert!(refused.contains("write it like 2026-11-23"), "{refused}");
    std::fs::write(&path, "[[note]]\ndate = \"2026-11-01\"\ntxt = \"x\"\n").unwrap();
    assert!(read_notes(&path).unwrap_err().to_string().contains("line"));
}

/// Withdrawn figures are in no history, and every committed record has a line.
#[test]
fn committed_records_have_lines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../results");
    let mut lines = Vec::new();
    for dir in find_runs(&root).unwrap() {
        let stored = RunDir::open(&dir).unwrap();
        let line = history_line(&build_stored(&stored), "run", &[]);
        let is_whole = stored.withdrawn.is_none();
        assert!(!is_whole || !line.figures.is_empty(), "{}", dir.display());
        // The first two records of K2 are withdrawn with all of their figures.
        if line.suite == "k2" && !is_whole {
            assert_eq!(line.figures, [], "{} is withdrawn", dir.display());
        }
        lines.push(line);
    }
    let history = History::from_lines(lines, &HistoryFilter::default(), Vec::new());
    assert!(history.series.len() > 20);
    assert!(history.to_html().unwrap().contains("Fewer") || !history.to_markdown().is_empty());
}

#[test]
fn a_history_whose_last_line_end_was_cut_takes_another_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.ndjson");
    append_history(&path, &line(1, 1.0, "a1")).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.trim_end()).unwrap();
    append_history(&path, &line(2, 1.0, "a1")).unwrap();
    let runs: Vec<String> = read_history(&path)
        .unwrap()
        .into_iter()
        .map(|line| line.run)
        .collect();
    assert_eq!(runs, ["run-01", "run-02"]);
}

#[test]
fn a_note_that_does_not_fit_into_the_file_leaves_it_readable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notes.toml");
    // Valid, but a table cannot be added to an array in brackets.
    let text = "note = [{ date = \"2026-11-01\", text = \"a new disk\" }]\n";
    std::fs::write(&path, text).unwrap();
    let note = Note {
        date: "2026-11-02".into(),
        text: "a new kernel".into(),
        case: None,
        machine: None,
    };
    let refused = append_note(&path, note).unwrap_err().to_string();
    assert!(refused.contains("[[note]]"), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_change_from_zero_is_told_in_words() {
    let mut lines = course(4, 1.0);
    for (index, line) in lines.iter_mut().enumerate() {
        for figure in &mut line.figures {
            figure.median = if index < 12 { 0.0 } else { 5.0 };
        }
    }
    let text = of_case(lines).to_markdown();
    assert!(!text.contains("inf"), "{text}");
    assert!(text.contains("**up from 0, better (p = 0.0"), "{text}");
}

#[test]
fn a_run_that_lies_in_two_places_counts_once() {
    let mut lines = course(1, 0.9);
    let mut again = line(13, 0.9, "a1");
    again.run = "copy".into();
    // The copy was kept with one metric fewer, so the whole line is the one that stays.
    again.figures.retain(|figure| figure.metric != "cpu");
    lines.push(again);
    let history = of_case(lines);
    let series = &history.series[0];
    assert_eq!(series.points.len(), 13);
    assert_eq!(series.points[12].run, "run-13");
    assert!(series.changes.is_empty(), "{:?}", series.changes);
}

#[test]
fn a_variant_with_other_parameters_begins_a_series() {
    let params = |codec: Option<&str>, system: &str| {
        let StoredRun {
            mut run, samples, ..
        } = made_up::stored();
        if let Some(codec) = codec {
            let own = BTreeMap::from([("codec".to_owned(), codec.into())]);
            run.plan.cases[0].variants.insert("chdb".into(), own);
        }
        let line = history_line(&build(&run, &samples), "run", &[]);
        let mut figures = line.figures.into_iter();
        let found = figures.find(|f| f.case == "load-gz-2" && f.system == system && f.ranks);
        found.unwrap().params
    };
    assert_ne!(params(Some("lz4"), "chdb"), params(Some("zstd"), "chdb"));
    assert_eq!(params(Some("lz4"), "dyno"), params(None, "dyno"));
    assert_eq!(params(None, "chdb"), params(None, "dyno"));
}
