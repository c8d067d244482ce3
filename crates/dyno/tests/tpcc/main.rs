//! The transactions of TPC-C on real servers: one is killed in mid-run, and all engines come to the
//! same rows.

mod killed;
mod same;

use std::path::Path;
use std::process::{Command, Stdio};

use assert_cmd::cargo::cargo_bin;
use dyno_rigs::tpcc::database_options;
use dyno_tpcc::load::{self, Progress};
use dyno_tpcc::{Layout, Population, Scale};
use dyno_txn_api::{Database, Target};
use dyno_txn_open::open;
use serde_json::Value;

/// A small population, which is loaded in no time.
const POPULATION: Population = Population {
    scale: Scale {
        warehouses: 2,
        districts: 3,
        customers: 60,
        items: 200,
    },
    seed: 7,
};

fn program() -> &'static Path {
    cargo_bin!("dyno")
}

fn opened(target: &Target) -> Box<dyn Database> {
    let options = database_options().expect("names are free");
    open(target, &options).expect("it is there")
}

fn loaded(target: &Target) {
    loaded_as(target, Layout::for_target(target));
}

fn loaded_as(target: &Target, layout: Layout) {
    let db = opened(target);
    load::load(&*db, layout, POPULATION, 1, &Progress::default()).expect("it is empty");
}

fn dyno(words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(words)
        .stdin(Stdio::null())
        .env_remove("DYNO_TOKEN");
    command
}

/// Runs it; exit code, standard output and standard error.
fn said(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().expect("dyno starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// What `dyno tpcc check` finds, all of which must hold.
fn checked(target: &Target, more: &[&str]) -> Value {
    let on = target.to_string();
    let words = [&["tpcc", "check", "--json", "--on", &on][..], more].concat();
    let (code, out, err) = said(&mut dyno(&words));
    assert_eq!(code, Some(0), "{out}{err}");
    let found: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(found["holds"], true, "{found}");
    found
}

#[test]
fn a_database_that_is_not_loaded_or_is_another_one_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let on = format!("local:{}", folder.path().join("rows").display());
    for command in ["run", "check"] {
        let (code, _, err) = said(&mut dyno(&["tpcc", command, "--on", &on]));
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains("dyno tpcc load"), "{err}");
    }
    loaded(&on.parse().expect("a directory"));
    let words = ["tpcc", "load", "--warehouses", "1", "--on", &on];
    let (code, _, err) = said(&mut dyno(&words));
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("use another one, or load the same"), "{err}");
}

#[test]
fn a_second_run_of_equal_inputs_goes_on_where_the_first_one_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let on = format!("local:{}", folder.path().join("rows").display());
    let target = on.parse().expect("a directory");
    loaded(&target);
    let run = [
        "tpcc",
        "run",
        "--transactions",
        "20",
        "--clients",
        "4",
        "--json",
        "--on",
        &on,
    ];
    for _ in 0..3 {
        let (code, out, err) = said(&mut dyno(&run));
        assert_eq!(code, Some(0), "{out}{err}");
        let figures: Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(figures["incomplete"], Value::Null, "{figures}");
    }
    checked(&target, &[]);
}
