//! Which crate may see which: dyno -> rigs -> {engines, workloads, lab}; dyno, rigs and engines ->
//! parts; the lab never sees an engine, nor (except `machine`) a part; no engine sees another. A
//! crate that re-exported another one would let its users see what their manifests do not name, so
//! none does.

use std::collections::BTreeMap;

use super::Finding;
use super::tree::{File, Tree};

pub fn check(tree: &Tree) -> Vec<Finding> {
    let manifests: Vec<&File> = tree
        .files
        .iter()
        .filter(|f| f.name() == "Cargo.toml")
        .collect();
    let mut folders = BTreeMap::new();
    for manifest in &manifests {
        if let Some(name) = package_name(&manifest.text) {
            folders.insert(name.to_owned(), folder(&manifest.path).to_owned());
        }
    }
    let mut findings = Vec::new();
    for manifest in manifests {
        let from = folder(&manifest.path);
        if let Some(name) = package_name(&manifest.text)
            && let Some(expected) = expected_name(from)
            && name != expected
        {
            findings.push(Finding::breach(
                &manifest.path,
                0,
                format!("package {name}: call it {expected}"),
            ));
        }
        // Names that are not folders of the workspace are crates of others, which cargo-deny looks
        // after.
        for (line, name) in dependencies(&manifest.text) {
            if let Some(to) = folders.get(name)
                && !allowed(from, to)
            {
                let text =
                    format!("{from} may not depend on {to} (see the arrows in ARCHITECTURE.md)");
                findings.push(Finding::breach(&manifest.path, line, text));
            }
        }
    }
    for file in tree.files.iter().filter(|file| file.is_rust()) {
        for (at, line) in file.code.lines().enumerate() {
            if let Some(name) = reexported_crate(line) {
                let text = format!("re-exports {name}: let its users depend on it");
                findings.push(Finding::breach(&file.path, at + 1, text));
            }
        }
    }
    findings
}

/// The crate of ours that a line makes public as a whole; single items of one may be.
fn reexported_crate(line: &str) -> Option<&str> {
    let path = line.trim_start().strip_prefix("pub use ")?;
    let end = path.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    let (name, rest) = path.split_at(end);
    // `pub use dyno_io;`, `pub use dyno_io as io;`, a glob and `{self, ...}` all bring the whole
    // crate along.
    let is_whole =
        rest.starts_with([';', ' ']) || rest.starts_with("::*") || rest.starts_with("::{self");
    (name.starts_with("dyno_") && is_whole).then_some(name)
}

/// Whether the crate in folder `from` may name the one in folder `to`.
fn allowed(from: &str, to: &str) -> bool {
    let under = |group: &str| to.starts_with(group);
    let parts = || under("crates/parts/");
    let lab = |names: &[&str]| {
        to.strip_prefix("crates/lab/")
            .is_some_and(|name| names.contains(&name))
    };
    let job = || under("crates/engines/") || under("crates/workloads/");
    match from {
        // Parts that only tests and measurements have a use for, the one that every message goes
        // through, and random numbers.
        _ if matches!(
            to,
            "crates/parts/certificates"
                | "crates/parts/ports"
                | "crates/parts/messages"
                | "crates/parts/random"
        ) =>
        {
            true
        }
        // Its tests; that the program itself has none of the libraries there is for `weight` to
        // see.
        "crates/dyno" if to == "crates/readback" => true,
        "crates/dyno" => to == "crates/rigs" || job() || under("crates/lab/") || parts(),
        "crates/dyno-sql" => to == "crates/readback" || under("crates/engines/") || parts(),
        "crates/python" | "crates/readback" => under("crates/engines/"),
        "crates/rigs" => job() || under("crates/lab/") || parts(),
        "crates/lab/machine" => lab(&["record"]) || parts(),
        "crates/lab/suite" => lab(&["record", "machine"]),
        "crates/lab/report" => lab(&["record", "stats"]),
        "crates/lab/ab" => lab(&["record", "machine", "stats", "suite"]),
        "fuzz" => under("crates/engines/") || parts(),
        _ if from.starts_with("crates/engines/") => parts() || same_engine(from, to),
        _ if from.starts_with("crates/workloads/") => {
            to == "crates/engines/txn/api" || to == "crates/parts/wire"
        }
        _ if from.starts_with("crates/parts/") => parts(),
        _ => false,
    }
}

/// Crates of one engine, as `engines/txn/core` and `engines/txn/api`, may see each other.
fn same_engine(from: &str, to: &str) -> bool {
    let engine = |path: &str| path.split('/').take(3).collect::<Vec<_>>().join("/");
    from.split('/').count() > 3 && engine(from) == engine(to)
}

/// `dyno-<folder>`, for the crates that live in a group.
fn expected_name(folder: &str) -> Option<String> {
    match folder.split('/').collect::<Vec<_>>()[..] {
        ["crates", "lab" | "engines" | "parts" | "workloads", name] => Some(format!("dyno-{name}")),
        ["crates", "engines", engine, name] => Some(format!("dyno-{engine}-{name}")),
        _ => None,
    }
}

fn folder(manifest: &str) -> &str {
    manifest.strip_suffix("/Cargo.toml").unwrap_or("")
}

fn package_name(text: &str) -> Option<&str> {
    let package = &text[text.find("[package]")?..];
    let line = package.lines().find(|line| line.starts_with("name"))?;
    line.split('"').nth(1)
}

/// (line, package) of every dependency table, those of tests and of targets included. The
/// workspace's own table names crates without using them.
fn dependencies(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_table = false;
    for (at, line) in text.lines().enumerate() {
        if let Some(header) = line.trim().strip_prefix('[') {
            let header = header.trim_end_matches(']');
            in_table = header.ends_with("dependencies") && !header.starts_with("workspace");
            // `[dependencies.NAME]` is a table of one dependency.
            if let Some((table, name)) = header.rsplit_once('.')
                && table.ends_with("dependencies")
                && !table.starts_with("workspace")
            {
                found.push((at + 1, name));
            }
        } else if in_table {
            let name = line.split(['.', '=', ' ']).next().unwrap_or("");
            if !name.is_empty() && !name.starts_with('#') {
                found.push((at + 1, name));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(name: &str, table: &str) -> String {
        format!("[package]\nname = \"{name}\"\n{table}\n")
    }

    #[test]
    fn a_forbidden_arrow_is_named_with_its_line() {
        let engine = manifest(
            "dyno-ingest",
            "[dev-dependencies]\nserde = \"1\"\ndyno-record.workspace = true",
        );
        let record = manifest("dyno-record", "");
        let tree = Tree::from_files(&[
            ("crates/engines/ingest/Cargo.toml", &engine),
            ("crates/lab/record/Cargo.toml", &record),
        ]);
        let findings = check(&tree);
        assert_eq!(findings.len(), 1);
        assert_eq!(
            (&*findings[0].path, findings[0].line),
            ("crates/engines/ingest/Cargo.toml", 5)
        );
    }

    #[test]
    fn a_crate_is_not_reexported_and_its_items_may_be() {
        let text = "pub use dyno_net as net;\npub use dyno_io::SinkKind;\n    pub use dyno_io;\n\
                    pub use dyno_sim::{self as sim, Sim};\npub(crate) use dyno_net::*;\nuse dyno_net;\n";
        let findings = check(&Tree::from_files(&[(
            "crates/engines/ingest/src/lib.rs",
            text,
        )]));
        let lines: Vec<_> = findings.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [1, 3, 4]);
    }

    #[test]
    fn layers() {
        assert!(allowed("crates/dyno", "crates/rigs"));
        assert!(allowed("crates/lab/machine", "crates/parts/io"));
        assert!(!allowed("crates/lab/suite", "crates/parts/io"));
        assert!(!allowed("crates/lab/stats", "crates/lab/record"));
        assert!(!allowed("crates/engines/ingest", "crates/engines/pages"));
        assert!(allowed("crates/engines/txn/core", "crates/engines/txn/api"));
        assert!(!allowed("crates/parts/io", "crates/engines/ingest"));
        assert!(!allowed("crates/rigs", "crates/dyno"));
    }

    #[test]
    fn package_names_follow_folders() {
        let odd = manifest("dyno-io-parts", "");
        let findings = check(&Tree::from_files(&[("crates/parts/io/Cargo.toml", &odd)]));
        assert_eq!(findings[0].text, "package dyno-io-parts: call it dyno-io");
    }
}
