//! Each recipe of CONTRIBUTING.md is followed by a test: its commands are run by the test of the
//! book, or it names tests that exist.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(tree().join(path)).unwrap()
}

/// Appends the Rust files below a folder.
fn rust_files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            into.push(path);
        }
    }
}

/// The names of all test functions below `crates` and `xtask`.
fn tests_of_the_tree() -> BTreeSet<String> {
    let mut files = Vec::new();
    for folder in ["crates", "xtask"] {
        rust_files(&tree().join(folder), &mut files);
    }
    let mut names = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for behind in text.split("#[test]").skip(1) {
            let name = behind.split_once("fn ").map_or("", |(_, name)| name);
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
            names.insert(name[..end.unwrap_or(name.len())].to_owned());
        }
    }
    names
}

/// The words of a text between single backquotes, outside of blocks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|prose| prose.split('`').skip(1).step_by(2))
}

/// Whether a word is written as the name of a test: four words or more in lower case. Fields and
/// functions have shorter names.
fn is_like_a_test(word: &str) -> bool {
    word.matches('_').count() >= 3 && word.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

#[test]
fn every_recipe_is_followed_by_a_test() {
    let page = read("CONTRIBUTING.md");
    let tests = tests_of_the_tree();
    assert!(tests.len() > 1000, "{} tests", tests.len());
    let recipes: Vec<&str> = page.split("\n## Recipe: ").skip(1).collect();
    assert!(recipes.len() >= 11, "{} recipes", recipes.len());
    for recipe in recipes {
        let recipe = recipe.split("\n## ").next().unwrap();
        let title = recipe.lines().next().unwrap();
        let named: Vec<&str> = quoted(recipe).filter(|word| is_like_a_test(word)).collect();
        for name in &named {
            assert!(tests.contains(*name), "{title}: there is no test {name}");
        }
        let is_run = recipe.contains("\n```sh\n");
        assert!(is_run || !named.is_empty(), "{title} names no test");
    }
}

#[test]
fn testing_lists_every_fuzz_target() {
    let page = read("TESTING.md");
    let (_, list) = page.split_once("\nThe targets are ").unwrap();
    let list = list.split_once('.').unwrap().0;
    let listed: BTreeSet<&str> = quoted(list).collect();
    let files = fs::read_dir(tree().join("fuzz/fuzz_targets")).unwrap();
    let names = files.map(|file| file.unwrap().path().file_stem().unwrap().to_owned());
    let names: BTreeSet<String> = names.map(|name| name.into_string().unwrap()).collect();
    assert_eq!(listed, names.iter().map(String::as_str).collect());
}
