//! The commands of the README and of the book do what the page says, run as they stand there.
//!
//! Each page is one scenario: its blocks of shell are run line by line, in order, in a fresh
//! directory where `suites` and `results` lead to the tree's and `dyno` is on the PATH. A block of
//! text directly behind a block of shell is what the commands print; numbers in it may differ
//! (`output.rs`). What `scripts/demo` runs is not run twice; the scripts themselves are only parsed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod line;
mod output;
mod page;
mod running;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use line::Line;
use page::Page;

/// Folders of the book that have a test of their own below, so that they run apart.
const FOLDERS: [&str; 7] = [
    "docs/engines/ingest",
    "docs/engines/tpch",
    "docs/engines/pubsub",
    "docs/engines/txn",
    "docs/engines/pages",
    "docs/lab",
    "docs/operating",
];

#[test]
fn every_command_of_the_readme_works() {
    let readme = Page::read("README.md");
    assert!(readme.blocks().len() >= 5, "the README lost its examples");
    one_at_a_time(|| readme.run());
}

#[test]
fn the_commands_about_ingest_work() {
    run_folder(FOLDERS[0]);
}

#[test]
fn the_commands_about_tpch_work() {
    run_folder(FOLDERS[1]);
}

#[test]
fn the_commands_about_pubsub_work() {
    run_folder(FOLDERS[2]);
}

#[test]
fn the_commands_about_txn_work() {
    run_folder(FOLDERS[3]);
}

#[test]
fn the_commands_about_pages_work() {
    run_folder(FOLDERS[4]);
}

#[test]
fn the_commands_about_the_lab_work() {
    run_folder(FOLDERS[5]);
}

#[test]
fn the_commands_about_operating_work() {
    run_folder(FOLDERS[6]);
}

#[test]
fn the_commands_of_all_other_pages_work() {
    let of_a_folder = |path: &String| FOLDERS.iter().any(|folder| path.starts_with(folder));
    let mut pages = markdown("docs");
    pages.retain(|path| !of_a_folder(path));
    pages.push("CONTRIBUTING.md".to_owned());
    pages.push("TESTING.md".to_owned());
    one_at_a_time(|| run_pages(&pages));
}

/// Runs the pages of a folder, of which at least one has commands.
fn run_folder(folder: &str) {
    let pages = markdown(folder);
    let with_commands = pages.iter().filter(|p| !Page::read(p).blocks().is_empty());
    assert!(with_commands.count() > 0, "{folder} has no commands");
    one_at_a_time(|| run_pages(&pages));
}

fn run_pages(pages: &[String]) {
    for path in pages {
        Page::read(path).run();
    }
}

/// Pages use the programs' usual ports, so that they can be pasted; two of them at once would meet.
/// The lock is a file, because a test runner may give each test a process of its own.
fn one_at_a_time(run: impl FnOnce()) {
    let lock = File::create(std::env::temp_dir().join("dyno-book.lock")).unwrap();
    lock.lock().unwrap();
    run();
}

/// The Markdown below a folder of the tree, as paths relative to the tree.
fn markdown(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(tree().join(folder)).unwrap() {
        let path = format!("{folder}/{}", entry.unwrap().file_name().to_str().unwrap());
        if tree().join(&path).is_dir() {
            found.extend(markdown(&path));
        } else if path.ends_with(".md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

#[test]
fn the_scripts_of_the_readme_exist_and_parse() {
    let readme = Page::read("README.md");
    for name in ["scripts/demo", "scripts/test"] {
        assert!(
            readme
                .blocks()
                .iter()
                .any(|block| block.shell.contains(name)),
            "the README does not show {name}"
        );
        let parsed = Command::new("bash")
            .arg("-n")
            .arg(tree().join(name))
            .output();
        let parsed = parsed.unwrap();
        assert!(parsed.status.success(), "{name}: {}", line::said(&parsed));
    }
}

#[test]
fn every_error_code_is_in_the_reference() {
    let page = fs::read_to_string(tree().join("docs/reference/errors.md")).unwrap();
    let (of_pubsub, of_txn) = page.split_once("## Codes of txn").unwrap();
    let pubsub = dyno_pubsub::Code::ALL
        .iter()
        .map(|code| (code.name(), of_pubsub));
    let txn = dyno_txn_api::Code::ALL
        .iter()
        .map(|code| (code.name(), of_txn));
    for (name, table) in pubsub.chain(txn) {
        assert!(
            table.contains(&format!("| `{name}` | ")),
            "{name} is not in errors.md"
        );
    }
}

#[test]
fn documents_that_are_made_are_up_to_date() {
    let checked = Command::new(line::program())
        .args(["documents", "--check"])
        .arg(tree())
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}", line::said(&checked));
}

#[test]
fn comments_state_exit_codes() {
    let codes = |text: &str| Line::parse(text).map(|line| line.codes);
    assert_eq!(codes("dyno lint x   # exits 1: wrong"), Some(vec![1]));
    assert_eq!(codes("dyno doctor # may exit 1"), Some(vec![0, 1]));
    assert_eq!(codes("dyno plan wspr # fine"), Some(vec![0]));
    assert_eq!(codes("  "), None);
    assert_eq!(codes("# a line of its own"), None);
}
