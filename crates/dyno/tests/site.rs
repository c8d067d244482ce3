//! `dyno site` on records that can be read and on some that cannot.

#![allow(clippy::unwrap_used, reason = "a test stops where something is amiss")]

use std::path::Path;
use std::process::{Command, Output};

fn site(records: &Path, out: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dyno"))
        .arg("site")
        .arg(records)
        .arg("--out")
        .arg(out)
        .output()
        .unwrap()
}

/// A record of schema version 1.
fn record(dir: &Path) {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/record/tests/fixtures/run-v1");
    std::fs::create_dir_all(dir).unwrap();
    for name in ["run.json", "samples.ndjson"] {
        std::fs::copy(fixture.join(name), dir.join(name)).unwrap();
    }
}

#[test]
fn a_damaged_record_is_named_at_the_end_and_the_others_have_pages() {
    let dir = tempfile::tempdir().unwrap();
    let (records, out) = (dir.path().join("records"), dir.path().join("out"));
    std::fs::create_dir(&records).unwrap();
    let none = site(&records, &out);
    assert_eq!(none.status.code(), Some(2));
    let said = String::from_utf8(none.stderr).unwrap();
    assert!(said.contains("has no record that can be read"), "{said}");
    assert!(!out.exists(), "nothing was written");

    record(&records.join("machine/good"));
    assert_eq!(site(&records, &out).status.code(), Some(0));
    let index = std::fs::read_to_string(out.join("index.html")).unwrap();
    assert!(index.contains("data-engine=\"ingest\""), "{index}");
    assert!(index.contains("data-machine=\"machine\""));

    record(&records.join("machine/torn"));
    std::fs::write(records.join("machine/torn/samples.ndjson"), "{}\n").unwrap();
    let some = site(&records, &out);
    assert_eq!(some.status.code(), Some(1));
    let stdout = String::from_utf8(some.stdout).unwrap();
    assert!(
        stdout.contains("index.html: a site of 1 record"),
        "{stdout}"
    );
    let said = String::from_utf8(some.stderr).unwrap();
    let last = said.lines().last().unwrap();
    assert!(
        last.contains("machine/torn/samples.ndjson: line 1"),
        "{said}"
    );
    assert!(out.join("records/machine/good.html").is_file());
}
