//! Sources that no `mod` line reaches: they look alive and are never compiled.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::tree::{File, Tree};

pub fn check(tree: &Tree) -> Vec<Finding> {
    let sources: BTreeMap<&str, &File> = tree
        .files
        .iter()
        .filter(|f| f.is_rust())
        .map(|f| (f.path.as_str(), f))
        .collect();
    let mut reached = BTreeSet::new();
    let mut open: Vec<String> = roots(tree);
    while let Some(path) = open.pop() {
        let Some(file) = sources.get(path.as_str()) else {
            continue;
        };
        // A file that two `mod` lines name is gone through once, so the search ends.
        if reached.insert(path) {
            open.extend(children(file, &sources));
        }
    }
    sources
        .keys()
        .filter(|path| !reached.contains(**path))
        .map(|path| {
            Finding::breach(
                path,
                0,
                "no `mod` line reaches this file: add one or delete it",
            )
        })
        .collect()
}

/// Files that cargo compiles by itself.
fn roots(tree: &Tree) -> Vec<String> {
    let mut roots = Vec::new();
    for manifest in tree.files.iter().filter(|f| f.name() == "Cargo.toml") {
        let folder = manifest.path.trim_end_matches("Cargo.toml");
        for fixed in ["src/lib.rs", "src/main.rs", "build.rs"] {
            roots.push(format!("{folder}{fixed}"));
        }
        for found in tree
            .files
            .iter()
            .filter_map(|f| f.path.strip_prefix(folder))
        {
            let at_top = ["src/bin/", "tests/", "benches/", "examples/"]
                .iter()
                .any(|place| {
                    found.strip_prefix(place).is_some_and(|rest| {
                        !rest.contains('/')
                            || rest.ends_with("/main.rs") && rest.matches('/').count() == 1
                    })
                });
            if at_top {
                roots.push(format!("{folder}{found}"));
            }
        }
        for line in manifest
            .text
            .lines()
            .filter(|line| line.starts_with("path = \""))
        {
            let path = line.split('"').nth(1).unwrap_or("");
            roots.push(format!("{folder}{path}"));
        }
    }
    roots
}

/// Files that the `mod` lines of this one name.
fn children(file: &File, sources: &BTreeMap<&str, &File>) -> Vec<String> {
    let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let stem = name.trim_end_matches(".rs");
    // A root or a `mod.rs` has its modules beside it, any other file in a folder of its name. Test
    // roots count as roots, and so may lie in either place.
    let places = [folder.to_owned(), format!("{folder}/{stem}")];
    let mut found = Vec::new();
    let mut path_attribute = None;
    for (code, text) in file.code.lines().zip(file.text.lines()) {
        if code.trim_start().starts_with("#[path") {
            path_attribute = text.split('"').nth(1);
            continue;
        }
        let Some(module) = module_name(code) else {
            continue;
        };
        if let Some(path) = path_attribute.take() {
            found.push(format!("{folder}/{path}"));
            continue;
        }
        let candidates = places.iter().flat_map(|place| {
            [
                format!("{place}/{module}.rs"),
                format!("{place}/{module}/mod.rs"),
            ]
        });
        found.extend(candidates.filter(|path| sources.contains_key(path.as_str())));
    }
    found
}

/// The name in `mod name;`, whatever its visibility.
fn module_name(code: &str) -> Option<&str> {
    let statement = code.trim().strip_suffix(';')?;
    let (before, name) = statement.rsplit_once("mod ")?;
    let visible = before.is_empty() || before.trim_start().starts_with("pub");
    let name = name.trim_start_matches("r#");
    (visible && name.chars().all(super::code::is_name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreached_files_are_dead() {
        let tree = Tree::from_files(&[
            ("a/Cargo.toml", "[package]\n"),
            (
                "a/src/lib.rs",
                "pub mod one;\npub(crate) mod two;\n// mod dead;\n",
            ),
            ("a/src/one.rs", "mod inner;"),
            ("a/src/one/inner.rs", ""),
            ("a/src/two/mod.rs", "#[path = \"odd.rs\"]\nmod three;"),
            ("a/src/two/odd.rs", ""),
            ("a/src/dead.rs", ""),
            ("a/tests/case.rs", "mod oracle;"),
            ("a/tests/oracle/mod.rs", ""),
        ]);
        let dead: Vec<_> = check(&tree).into_iter().map(|f| f.path).collect();
        assert_eq!(dead, ["a/src/dead.rs"]);
    }
}
