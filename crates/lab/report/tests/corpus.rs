//! Planted faults and sound files, one a file: `lint/planted` names in its first line the rule that
//! must find the fault, and nothing in `lint/sound` may be called an error.

#![allow(clippy::unwrap_used, reason = "a test stops where something is amiss")]

use std::path::{Path, PathBuf};

use dyno_record::read_figures;
use dyno_report::{Finding, Severity, lint};

/// The share of planted faults that the linter has to find.
const FOUND_MIN: f64 = 0.90;

fn files(kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lint");
    let entries = std::fs::read_dir(folder.join(kind)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The findings of a file, or why it could not be read.
fn findings(path: &Path) -> Result<Vec<Finding>, String> {
    let figures = read_figures(path).map_err(|error| error.to_string())?;
    Ok(lint(&figures))
}

fn told(path: &Path, found: &Result<Vec<Finding>, String>) -> String {
    let name = path.file_stem().unwrap().to_string_lossy();
    match found {
        Ok(findings) => {
            let rules: Vec<&str> = findings.iter().map(|f| f.rule).collect();
            format!("{name}: {rules:?}")
        }
        Err(reason) => format!("{name}: {reason}"),
    }
}

#[test]
fn planted_faults_are_found_by_their_rule() {
    let files = files("planted");
    let mut missed = Vec::new();
    for path in &files {
        let text = std::fs::read_to_string(path).unwrap();
        let first = text.lines().next().unwrap();
        let rule = first.strip_prefix("# expect: ").unwrap();
        let found = findings(path);
        let hit = found.iter().flatten().any(|finding| finding.rule == rule);
        if !hit {
            missed.push(format!("{rule} in {}", told(path, &found)));
        }
    }
    let found = files.len() - missed.len();
    println!("planted: {found} of {} found\n{missed:#?}", files.len());
    assert!(files.len() >= 86, "the 46 of the review and 40 more");
    assert!(
        found as f64 >= FOUND_MIN * files.len() as f64,
        "{missed:#?}"
    );
}

#[test]
fn sound_files_have_no_error() {
    let files = files("sound");
    let mut wrong = Vec::new();
    let mut warned = Vec::new();
    for path in &files {
        let found = findings(path);
        let is_error = |f: &Finding| f.severity == Severity::Error;
        if found.as_ref().map_or(true, |all| all.iter().any(is_error)) {
            wrong.push(told(path, &found));
        }
        let is_warning = |f: &Finding| f.severity == Severity::Warning;
        if found.iter().flatten().any(is_warning) {
            warned.push(told(path, &found));
        }
    }
    println!(
        "sound: {} of {} flagged as an error, {} with a warning\n{wrong:#?}\n{warned:#?}",
        wrong.len(),
        files.len(),
        warned.len()
    );
    assert!(files.len() >= 50, "the 10 of the review and 40 more");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
