//! `dyno ingest ask` with an endpoint that says what is written here, on the real SQL engine.

#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]

#[path = "../../engines/ingest/ask/tests/questions/scripted.rs"]
mod scripted;

use std::path::Path;
use std::process::{Command, Output};

use scripted::{Reply, Scripted};

fn dyno(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    let output = command.args(args).current_dir(folder).output();
    output.expect("dyno starts")
}

/// A folder with a table of 3,000 spots; `None` where the SQL engine was not built.
fn table() -> Option<tempfile::TempDir> {
    if !Path::new(env!("CARGO_BIN_EXE_dyno"))
        .with_file_name("dyno-sql")
        .is_file()
    {
        println!("skipped: questions in plain words: dyno-sql is not built");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for args in [
        &["ingest", "gen", "--rows", "3k", "--out", "archives"][..],
        &[
            "ingest",
            "load",
            "archives/wsprspots-2023-01.csv.gz",
            "--into",
            "spots",
        ][..],
    ] {
        let output = dyno(folder.path(), args);
        assert!(output.status.success(), "{output:?}");
    }
    Some(folder)
}

fn asked(folder: &Path, script: Vec<Reply>, more: &[&str]) -> (Output, Scripted) {
    let endpoint = Scripted::start(script);
    let args = [
        "ingest",
        "ask",
        "spots",
        "How many?",
        "--model",
        "tiny",
        "--endpoint",
    ];
    let args = [&args[..], &[endpoint.address.as_str()], more].concat();
    (dyno(folder, &args), endpoint)
}

#[test]
fn the_statement_its_rows_and_a_plot_are_shown() {
    let Some(folder) = table() else { return };
    let counts = "```sql\nSELECT 'all' AS which, count(*) AS n FROM spots \
                  UNION ALL SELECT 'none', 0 ORDER BY n DESC\n```";
    let script = vec![
        Reply::Writes("```sql\nSELECT cuont(*) FROM spots\n```"),
        Reply::Writes(counts),
    ];
    let (output, endpoint) = asked(folder.path(), script, &[]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    for part in [
        "-- could not be run: ",
        "-- SELECT cuont(*)",
        "SELECT 'all' AS which",
        "3000",
        "█",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let requests = endpoint.asked();
    assert!(
        requests[0].contains("3000 rows, timestamps from 2023-01-01T"),
        "{}",
        requests[0]
    );
    assert!(requests[1].contains("cuont"), "{}", requests[1]);
}

#[test]
fn a_statement_that_writes_is_refused_and_nothing_is_written() {
    let Some(folder) = table() else { return };
    let copy = "```sql\nCOPY spots TO 'stolen.csv'\n```";
    let (output, _) = asked(
        folder.path(),
        vec![Reply::Writes(copy)],
        &["--corrections", "0"],
    );
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("only a SELECT is run here"), "{said}");
    assert!(!folder.path().join("stolen.csv").exists());
}

#[test]
fn json_and_bounds() {
    let Some(folder) = table() else { return };
    let script = vec![Reply::Writes("SELECT id FROM spots ORDER BY id")];
    let (output, _) = asked(folder.path(), script, &["--json", "--max-rows", "2"]);
    assert!(output.status.success(), "{output:?}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["columns"], serde_json::json!(["id"]));
    assert_eq!(answer["rows"].as_array().map(Vec::len), Some(2));
    assert_eq!(answer["more_rows"], true);
    assert_eq!(answer["tokens"]["read"], 100);
}

#[test]
fn a_key_is_sent_and_never_shown() {
    let Some(folder) = table() else { return };
    std::fs::write(folder.path().join("key"), "sk-secret\n").expect("a file");
    let refused = Reply::Says(
        401,
        r#"{"error": {"message": "sk-secret has expired"}}"#.to_owned(),
    );
    let (output, endpoint) = asked(folder.path(), vec![refused], &["--key-file", "key"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("status 401: [key] has expired"), "{said}");
    assert!(
        endpoint.asked()[0]
            .to_lowercase()
            .contains("bearer sk-secret")
    );
}

#[test]
fn an_endpoint_that_is_silent_or_something_else_is_said_to_be() {
    let Some(folder) = table() else { return };
    for (reply, part) in [
        (
            Reply::Waits(std::time::Duration::from_secs(5)),
            "no answer in time",
        ),
        (Reply::Raw(b"SSH-2.0-OpenSSH_9\r\n".to_vec()), "not HTTP"),
    ] {
        let (output, _) = asked(folder.path(), vec![reply], &["--wait", "1s"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(part), "{said}");
    }
}
