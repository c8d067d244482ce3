//! Documents that point at files which are not there, and crates that the map leaves out.

use super::Finding;
use super::tree::Tree;

/// Where every crate has its line.
const MAP: &str = "ARCHITECTURE.md";

/// A path in backquotes is checked when it begins with one of these.
const FOLDERS: [&str; 8] = [
    "crates/", "scripts/", "suites/", "peers/", "fuzz/", "xtask/", "docs/", ".ci/",
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = missing_targets(tree);
    findings.extend(unmapped_crates(tree));
    findings
}

/// Crates below `crates/` that the map does not name.
fn unmapped_crates(tree: &Tree) -> Vec<Finding> {
    let Some(map) = tree.files.iter().find(|file| file.path == MAP) else {
        return Vec::new();
    };
    let crates = tree
        .files
        .iter()
        .filter_map(|file| file.path.strip_suffix("/Cargo.toml"))
        .filter(|folder| folder.starts_with("crates/"));
    crates
        .filter(|folder| !map.text.contains(&format!("`{folder}`")))
        .map(|folder| Finding::breach(MAP, 0, format!("does not name the crate {folder}")))
        .collect()
}

fn missing_targets(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        let folder = file
            .path
            .rsplit_once('/')
            .map_or(String::new(), |(f, _)| format!("{f}/"));
        let mut in_block = false;
        for (at, line) in file.text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                in_block = !in_block;
                continue;
            }
            if in_block {
                continue;
            }
            for target in links(line).chain(quoted(line)) {
                // A target may be written from the top of the tree, as our documents do in
                // backquotes, or from its own folder, as Markdown has it.
                if !tree.has(&target) && !tree.has(&resolved(&folder, &target)) {
                    let text = format!("mentions {target}, which does not exist");
                    findings.push(Finding::breach(&file.path, at + 1, text));
                }
            }
        }
    }
    findings
}

/// A target as seen from a folder, without `..`.
fn resolved(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Relative targets of `[text](target)` in a line.
fn links(line: &str) -> impl Iterator<Item = String> + '_ {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', ' ', '#']).next()?;
        let outside = target.contains("://") || target.starts_with("mailto:");
        (!outside && !target.is_empty()).then(|| target.trim_start_matches("./").to_owned())
    })
}

/// Paths in backquotes: those below a folder of the tree, and documents in capitals.
fn quoted(line: &str) -> impl Iterator<Item = String> + '_ {
    line.split('`').skip(1).step_by(2).filter_map(|word| {
        let path = word.split([':', '#']).next()?;
        // A pattern or a placeholder names no one file.
        if path.contains(['*', '{', '<', '$', ' ', '|']) {
            return None;
        }
        let document = path
            .strip_suffix(".md")
            .is_some_and(|stem| !stem.is_empty() && stem.chars().all(|c| c.is_ascii_uppercase()));
        let in_tree = FOLDERS.iter().any(|folder| path.starts_with(folder));
        (document || in_tree).then(|| path.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_targets_are_named() {
        let text = "See `crates/a/src/lib.rs:3`, `GONE.md`, [x](docs/x.md), [y](https://a.b/c), \
                    `crates/*/x` and\n```\n`crates/none`\n```\n";
        let tree = Tree::from_files(&[("README.md", text), ("crates/a/src/lib.rs", "")]);
        let found: Vec<_> = check(&tree).into_iter().map(|f| f.text).collect();
        assert_eq!(
            found,
            [
                "mentions docs/x.md, which does not exist",
                "mentions GONE.md, which does not exist"
            ]
        );
    }

    #[test]
    fn a_link_may_lead_upwards() {
        let page = "[up](../b/y.md) [gone](../b/z.md)";
        let tree = Tree::from_files(&[("docs/a/x.md", page), ("docs/b/y.md", "")]);
        let found: Vec<_> = check(&tree).into_iter().map(|f| f.text).collect();
        assert_eq!(found, ["mentions ../b/z.md, which does not exist"]);
    }

    #[test]
    fn every_crate_is_on_the_map() {
        let tree = Tree::from_files(&[
            ("ARCHITECTURE.md", "| `crates/lab/stats` | medians |"),
            ("crates/lab/stats/Cargo.toml", ""),
            ("crates/parts/io/Cargo.toml", ""),
            ("xtask/Cargo.toml", ""),
        ]);
        let found: Vec<_> = check(&tree).into_iter().map(|f| f.text).collect();
        assert_eq!(found, ["does not name the crate crates/parts/io"]);
    }
}
