//! The module `dynolab`, read by programs that we did not write: pyarrow, DuckDB, Polars and
//! pandas.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Rows of the table in `fixtures/table-v1` of the engine.
const SPOTS: &str = "597";

/// The Python that `scripts/test` has given these programs to.
fn python() -> Option<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/share")))?;
    let python = data.join("dynolab/peers/arrow-readers/venv/bin/python");
    python.exists().then_some(python)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

#[test]
fn other_programs_read_the_tables() {
    let Some(python) = python() else {
        println!(
            "skipped: the Python module: no environment with pyarrow, DuckDB, Polars and pandas; scripts/test makes it"
        );
        return;
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let at = tempfile::tempdir().expect("a directory");
    let module = at.path().join("dynolab");
    copy(&here.join("dynolab"), &module);
    // The library lies beside this test.
    let test = std::env::current_exe().expect("the test's path");
    let built = test.parent().expect("a target directory");
    fs::copy(
        built.join("libdyno_python.so"),
        module.join("libdyno_python.so"),
    )
    .expect("the library");
    let spots = at.path().join("spots");
    copy(
        &here.join("../engines/ingest/tests/fixtures/table-v1"),
        &spots,
    );
    let output = Command::new(python)
        .arg(here.join("tests/module.py"))
        .args([spots.as_os_str(), SPOTS.as_ref()])
        .env("PYTHONPATH", at.path())
        .output()
        .expect("it starts");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
