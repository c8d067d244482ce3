//! A run written, torn, locked and read back.

#![allow(clippy::unwrap_used, reason = "a test stops where something is amiss")]

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use dyno_record::{
    Arm, Load, Outcome, RUN_FILE, RecordError, Run, RunDir, SAMPLES_FILE, Sample, WITHDRAWN_FILE,
    find_runs, latest_run, list_runs,
};
use proptest::prelude::*;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/run-v1")
}

fn example() -> (Run, Vec<Sample>) {
    let stored = RunDir::open(&fixture()).unwrap();
    (stored.run, stored.samples)
}

/// Writes the example into a fresh directory, unfinished.
fn write(dir: &Path) -> (Run, Vec<Sample>) {
    let (mut run, samples) = example();
    run.finished_at = None;
    let mut writer = RunDir::create(dir, run.clone()).unwrap();
    for sample in &samples {
        writer.append(sample).unwrap();
    }
    (run, samples)
}

#[test]
fn the_fixture_of_version_1_is_read() {
    let stored = RunDir::open(&fixture()).unwrap();
    assert_eq!(stored.warnings, []);
    assert_eq!(stored.run.plan.cases[0].axis, Some(("rows".into(), 6e6)));
    assert_eq!(stored.samples.len(), 5);
    assert_eq!(stored.samples[0].metrics["throughput"], 6.1e6);
    assert_eq!(stored.samples[0].usage.storage_written_bytes, None);
    let reason = "checksum 00 is not 00ff-01".to_owned();
    assert_eq!(stored.samples[3].outcome, Outcome::Failed(reason));
}

#[test]
fn the_fixture_of_version_2_is_read() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/run-v2");
    let stored = RunDir::open(&dir).unwrap();
    assert_eq!(stored.warnings, []);
    let loads: Vec<Load> = stored.run.plan.cases.iter().map(|c| c.load).collect();
    assert_eq!(loads, [Load::Job, Load::Service]);
    assert_eq!(stored.samples[0].measured_s(), None);
    assert_eq!(stored.samples[5].measured_s(), Some(20.0));
}

#[test]
fn the_fixture_of_version_3_is_read() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/run-v3");
    let stored = RunDir::open(&dir).unwrap();
    assert_eq!(stored.warnings, []);
    assert_eq!(stored.run.beside.as_deref(), Some("memory"));
    assert_eq!(stored.run.plan.left_out.cases, ["top-ten-2"]);
    assert_eq!(stored.run.plan.left_out.variants["load-gz-2"], ["memory"]);
    let last = stored.samples.last().unwrap();
    assert_eq!(last.arm, Arm::Beside);
    assert_eq!(last.sensors.clock_mhz.unwrap().max, 3_100.0);
    assert_eq!(stored.run.unread["temperature"], "no sensor");
}

#[test]
fn cases_of_version_1_are_jobs_or_services_by_their_workload() {
    let dir = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(fixture().join(RUN_FILE)).unwrap();
    std::fs::write(dir.path().join(SAMPLES_FILE), "").unwrap();
    for (workload, load) in [("ingest-load", Load::Job), ("tpcc-run", Load::Service)] {
        let named = text.replace("\"ingest-load\"", &format!("\"{workload}\""));
        std::fs::write(dir.path().join(RUN_FILE), named).unwrap();
        let run = RunDir::read_run(dir.path()).unwrap();
        assert_eq!(run.plan.cases[0].load, load);
        assert_eq!(run.schema_version, dyno_record::SCHEMA_VERSION);
    }
}

#[test]
fn a_document_that_version_1_cites_by_its_path_is_cited_by_its_title() {
    let dir = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(fixture().join(RUN_FILE)).unwrap();
    let mut run: serde_json::Value = serde_json::from_str(&text).unwrap();
    run["plan"]["seed_document"] = "seeds/4-txn-k2.md".into();
    std::fs::write(dir.path().join(RUN_FILE), run.to_string()).unwrap();
    let run = RunDir::read_run(dir.path()).unwrap();
    assert_eq!(
        run.plan.seed_document.as_deref(),
        Some("Initial performance results as of 5/15/2020, of K2 transactions")
    );
}

#[test]
fn a_program_of_a_changed_tree_cannot_be_found_again() {
    let (mut run, _) = example();
    let untraceable = |revision: &str, run: &mut Run| {
        run.program.git_revision = revision.to_owned();
        run.program.untraceable()
    };
    assert_eq!(untraceable("59a74695818e", &mut run), None);
    let changed = untraceable("59a74695818e+", &mut run).unwrap();
    assert!(changed.starts_with("changed tree: "), "{changed}");
    assert!(untraceable("unknown", &mut run).is_some());
    let lost = untraceable("9154a291c754", &mut run).unwrap();
    assert!(lost.starts_with("lost revision: "), "{lost}");
}

#[test]
fn what_was_written_is_read_back_and_finishing_removes_the_warning() {
    let dir = tempfile::tempdir().unwrap();
    let (run, samples) = write(dir.path());
    let stored = RunDir::open(dir.path()).unwrap();
    assert_eq!((stored.run, stored.samples), (run.clone(), samples));
    assert!(stored.warnings[0].0.contains("did not finish"));

    let other = tempfile::tempdir().unwrap();
    let writer = RunDir::create(other.path(), run).unwrap();
    writer.finish("2026-11-21T09:00:00Z").unwrap();
    assert_eq!(RunDir::open(other.path()).unwrap().warnings, []);
}

#[test]
fn a_torn_last_line_is_reported_at_every_length() {
    let dir = tempfile::tempdir().unwrap();
    let (_, samples) = write(dir.path());
    let path = dir.path().join(SAMPLES_FILE);
    let whole = std::fs::read(&path).unwrap();
    let before: usize = whole[..whole.len() - 1]
        .iter()
        .rposition(|b| *b == b'\n')
        .unwrap()
        + 1;
    for cut in before + 1..whole.len() - 1 {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let stored = RunDir::open(dir.path()).unwrap();
        assert_eq!(stored.samples, samples[..4]);
        let expected = format!("line 5: torn after {} bytes", cut - before);
        assert!(stored.warnings[0].0.contains(&expected));
    }
    // Only the line end is missing: the sample is whole.
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert_eq!(RunDir::open(dir.path()).unwrap().samples, samples);
}

#[test]
fn damage_elsewhere_is_an_error_with_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    let path = dir.path().join(SAMPLES_FILE);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("{\"case\"", "{\"cake\"", 1)).unwrap();
    let error = RunDir::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("samples.ndjson: line 1: not a sample: missing field `case`"));
}

fn run_error(edit: impl Fn(String) -> String) -> RecordError {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    let path = dir.path().join(RUN_FILE);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, edit(text)).unwrap();
    RunDir::open(dir.path()).unwrap_err()
}

#[test]
fn a_newer_version_and_a_stray_file_are_refused_by_name() {
    let newer = run_error(|t| t.replace("\"schema_version\": 3", "\"schema_version\": 4"));
    assert!(matches!(
        newer,
        RecordError::Newer {
            found: 4,
            newest: 3,
            ..
        }
    ));
    assert!(
        newer
            .to_string()
            .contains("version 4 of the dyno-run format")
    );

    let stray = run_error(|t| t.replace("dyno-run", "package"));
    assert!(
        stray
            .to_string()
            .contains("magic is \"package\", not \"dyno-run\"")
    );

    let broken = run_error(|t| t.replace("\"order_seed\": 7", "\"order_seed\": -7"));
    assert!(
        broken
            .to_string()
            .contains("line 12: not a run: invalid value"),
        "{broken}"
    );

    let empty = tempfile::tempdir().unwrap();
    let none = RunDir::open(empty.path()).unwrap_err();
    assert!(matches!(none, RecordError::NoRun { .. }));
}

#[test]
fn a_run_is_never_overwritten_and_has_one_writer() {
    let dir = tempfile::tempdir().unwrap();
    let (run, _) = example();
    let writer = RunDir::create(dir.path(), run.clone()).unwrap();
    let second = RunDir::create(dir.path(), run.clone()).unwrap_err();
    assert!(matches!(second, RecordError::Locked { .. }));
    drop(writer);
    let third = RunDir::create(dir.path(), run).unwrap_err();
    assert!(matches!(third, RecordError::Exists { .. }));
}

#[test]
fn a_number_that_json_cannot_hold_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let (mut run, mut samples) = example();
    let mut writer = RunDir::create(dir.path(), run.clone()).unwrap();
    samples[0].metrics.insert("time".into(), f64::NAN);
    let error = writer.append(&samples[0]).unwrap_err().to_string();
    assert!(error.contains("sample of load-gz-2 on dyno: time: NaN is not a finite number"));

    run.limits[0].value = f64::INFINITY;
    let other = tempfile::tempdir().unwrap();
    let error = RunDir::create(other.path(), run).unwrap_err();
    assert!(matches!(error, RecordError::Unstorable { .. }));
}

#[test]
fn the_latest_run_of_a_suite_is_found_and_a_bad_one_named() {
    let runs = tempfile::tempdir().unwrap();
    let (mut run, _) = example();
    for (name, suite, started) in [
        ("a", "wspr", "2026-11-21T08:00:00Z"),
        ("b", "wspr", "2026-11-22T08:00:00Z"),
        ("c", "pages", "2026-11-23T08:00:00Z"),
    ] {
        run.plan.suite = suite.into();
        run.started_at = started.into();
        RunDir::create(&runs.path().join(name), run.clone()).unwrap();
    }
    std::fs::create_dir(runs.path().join("bad")).unwrap();
    std::fs::write(runs.path().join("bad").join(RUN_FILE), "{}").unwrap();
    let found = |suite| latest_run(runs.path(), suite).map(|p| p.file_name().unwrap().to_owned());
    assert_eq!(found(None).unwrap(), "c");
    assert_eq!(found(Some("wspr")).unwrap(), "b");
    assert!(matches!(found(Some("txn")), Err(RecordError::NoRun { .. })));
    let (entries, warnings) = list_runs(runs.path()).unwrap();
    assert_eq!(entries.len(), 3);
    assert!(warnings[0].0.contains("magic is null"));
    let itself = runs.path().join("a");
    assert_eq!(latest_run(&itself, None).unwrap(), itself);
}

proptest! {
    /// Any finite numbers and any text come back as they were.
    #[test]
    fn samples_survive_the_file(value in proptest::num::f64::NORMAL, text in ".*") {
        let (_, mut samples) = example();
        let mut sample = samples.swap_remove(0);
        sample.metrics.insert(text.clone(), value);
        sample.facts.insert("bottleneck".into(), text.clone());
        sample.outcome = Outcome::Hung(text);
        let line = serde_json::to_vec(&sample).unwrap();
        prop_assert!(!line.contains(&b'\n'));
        prop_assert_eq!(serde_json::from_slice::<Sample>(&line).unwrap(), sample);
    }
}

#[test]
fn appending_goes_to_the_end_even_when_somebody_else_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let (_, samples) = write(dir.path());
    let path = dir.path().join(SAMPLES_FILE);
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"case\":\"lo").unwrap();
    let stored = RunDir::open(dir.path()).unwrap();
    assert_eq!(stored.samples, samples);
    assert_eq!(stored.warnings.len(), 2);
}

#[test]
fn a_withdrawn_run_says_what_is_withdrawn_and_why() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    assert_eq!(RunDir::open(dir.path()).unwrap().withdrawn, None);
    let withdrawn = |text: &str| {
        std::fs::write(dir.path().join(WITHDRAWN_FILE), text).unwrap();
        let found = RunDir::open(dir.path()).unwrap().withdrawn.unwrap();
        (found.what, found.why)
    };
    let both = |what: &str, why: &str| (what.to_owned(), why.to_owned());
    assert_eq!(
        withdrawn("# Withdrawn: all rates\n\nOne second is too short.\n\nIt stays.\n"),
        both(
            "Withdrawn: all rates",
            "One second is too short.\n\nIt stays."
        )
    );
    assert_eq!(withdrawn("Too short.\n"), both("Withdrawn", "Too short."));
    assert_eq!(withdrawn(""), both("Withdrawn", ""));
    // Bytes that cannot be read must not make the figures valid again.
    std::fs::write(dir.path().join(WITHDRAWN_FILE), [0xff]).unwrap();
    let error = RunDir::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains(WITHDRAWN_FILE), "{error}");
}

#[test]
fn runs_are_found_at_any_depth() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(find_runs(dir.path()).unwrap(), Vec::<PathBuf>::new());
    let places = [dir.path().join("a/one"), dir.path().join("b")];
    for place in &places {
        write(place);
    }
    std::fs::create_dir_all(dir.path().join("c/empty")).unwrap();
    std::os::unix::fs::symlink(dir.path(), dir.path().join("c/loop")).unwrap();
    assert_eq!(find_runs(dir.path()).unwrap(), places);
    assert_eq!(find_runs(&places[1]).unwrap(), places[1..]);
    assert!(find_runs(&dir.path().join("none")).is_err());
}

#[test]
fn a_run_whose_last_line_end_was_cut_goes_on_on_a_line_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let (_, samples) = write(dir.path());
    let path = dir.path().join(SAMPLES_FILE);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.trim_end()).unwrap();
    let mut writer = RunDir::resume(dir.path(), samples.len()).unwrap();
    writer.append(&samples[0]).unwrap();
    drop(writer);
    let mut expected = samples;
    expected.push(expected[0].clone());
    assert_eq!(RunDir::open(dir.path()).unwrap().samples, expected);
    let now = std::fs::read_to_string(&path).unwrap();
    assert!(now.starts_with(&text), "what was there stays as it was");
}
