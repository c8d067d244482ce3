//! `dyno run sage` with scikit-learn, which we did not write, and without it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn dyno(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command.args(words).current_dir(folder);
    command.output().expect("dyno starts")
}

/// Whether the SQL engine, which makes the set, is built beside the program.
fn has_sql() -> bool {
    let program = Path::new(env!("CARGO_BIN_EXE_dyno"));
    let built = program.with_file_name("dyno-sql").is_file();
    if !built {
        println!("skipped: the suite sage: dyno-sql is not built");
    }
    built
}

#[test]
fn a_set_is_made_and_learned_from() {
    let trainer = dyno_suite::peers_root().map(|root| root.join("sage/installed"));
    if !trainer.is_some_and(|marker| marker.is_file()) {
        println!("skipped: the suite sage: no scikit-learn (dyno peers install sage)");
        return;
    }
    if !has_sql() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["run", "sage", "--tiny", "--json", "--data-dir", "data"];
    let output = dyno(folder.path(), &words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let figures = report["figures"].as_array().expect("figures");
    for (case, metric) in [
        ("make-set-1", "throughput"),
        ("make-set-1", "set-bytes"),
        ("train", "throughput"),
        ("train", "model-rmse-db"),
        ("train", "baseline-rmse-db"),
    ] {
        let mut of_case = figures.iter().filter(|figure| figure["case"] == case);
        let figure = of_case.find(|figure| figure["metric"] == metric);
        let median = figure.and_then(|figure| figure["median"].as_f64());
        assert!(median > Some(0.0), "{case} {metric}: {figure:?}: {said}");
    }
    let tables = report["tables"].to_string();
    assert!(
        tables.contains("Training: MLPRegressor of scikit-learn"),
        "{tables}"
    );
    assert!(tables.contains(" the baseline"), "{tables}");
}

/// With several suites the case is left out, and the rest of its suite runs.
#[test]
fn without_the_library_only_its_case_is_left_out() {
    if !has_sql() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command
        .args(["run", "sage", "llm", "--tiny", "--data-dir", "data"])
        .args(["--set", "rows=2000"])
        .env("XDG_DATA_HOME", folder.path())
        .current_dir(folder.path());
    let output = command.output().expect("dyno starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let expected = "sage: case train is not run: sage: not installed; install it with `dyno peers \
                    install sage`";
    assert!(said.contains(expected), "{said}");
    let runs = folder.path().join("runs");
    let mut runs = std::fs::read_dir(runs).expect("a record").flatten();
    let run = runs.next().expect("a record").path();
    let stored = dyno_record::RunDir::open(&run).expect("a record");
    let cases: Vec<&str> = stored
        .run
        .plan
        .cases
        .iter()
        .map(|case| &*case.name)
        .collect();
    assert_eq!(cases, ["make-set-1"]);
    assert_eq!(stored.run.plan.skip, ["train"]);
}
