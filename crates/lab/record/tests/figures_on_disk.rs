//! A `FIGURES.toml` written, broken and read back.

#![allow(clippy::unwrap_used, reason = "a test stops where something is amiss")]

use std::path::{Path, PathBuf};

use dyno_record::{RecordError, read_figures, write_figures};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/figures-v1.toml")
}

fn error_of(edit: impl Fn(String) -> String) -> RecordError {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("FIGURES.toml");
    let text = std::fs::read_to_string(fixture()).unwrap();
    std::fs::write(&path, edit(text)).unwrap();
    read_figures(&path).unwrap_err()
}

#[test]
fn the_fixture_is_read_and_written_again() {
    let figures = read_figures(&fixture()).unwrap();
    assert_eq!(figures.figures[0].limit.as_deref(), Some("copy"));
    assert_eq!(figures.latencies[0].points[1], (99.0, 20.0));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("FIGURES.toml");
    write_figures(&path, &figures).unwrap();
    assert_eq!(read_figures(&path).unwrap(), figures);
}

#[test]
fn errors_name_file_line_and_reason() {
    let newer = error_of(|t| t.replace("version = 1", "version = 9"));
    assert!(matches!(newer, RecordError::Newer { found: 9, .. }));
    let stray = error_of(|t| t.replace("dyno-figures", "x"));
    assert!(matches!(stray, RecordError::Magic { .. }));
    let unknown = error_of(|t| t.replace("high = 41.0", "hihg = 41.0")).to_string();
    assert!(
        unknown.contains("FIGURES.toml: line 24: unknown field `hihg`"),
        "{unknown}"
    );
    let from = error_of(|t| t.replace("n = 5", "n = 5\nfrom = [\"b\"]")).to_string();
    assert!(
        from.contains("figure \"a\": it is made from something that is not in the file, \"b\""),
        "{from}"
    );
    let latency = error_of(|t| t.replace("n = 5", "n = 5\nlatency = \"sort\"")).to_string();
    assert!(
        latency.contains("figure \"a\": no percentiles are those of \"sort\""),
        "{latency}"
    );
    let dangling = error_of(|t| t.replace("limit = \"copy\"", "limit = \"scan-all\"")).to_string();
    assert!(
        dangling.contains("line 25: figure \"a\": no limit is named \"scan-all\""),
        "{dangling}"
    );
}
