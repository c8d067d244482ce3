//! What `dyno` may not be built with: libraries that take longer to compile than the program
//! itself. They belong to `dyno-sql`, which `dyno` starts when it needs them, and to tests.

use std::env;
use std::process::Command;

use super::Finding;

/// Crates that are too heavy, each with those whose names begin with it and a hyphen.
const HEAVY: [&str; 5] = ["arrow", "datafusion", "orc-rust", "parquet", "tonic"];

const MANIFEST: &str = "crates/dyno/Cargo.toml";

/// Asks cargo for all that `dyno` is built from, tests and build scripts left out.
///
/// # Errors
/// When cargo does not answer.
pub fn check() -> Result<Vec<Finding>, String> {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let arguments = "tree --package dyno --edges normal --prefix depth --format {p}";
    let output = Command::new(&cargo)
        .args(arguments.split(' '))
        .output()
        .map_err(|error| format!("{cargo}: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo tree: {}", said.trim()));
    }
    Ok(findings(&String::from_utf8_lossy(&output.stdout)))
}

/// The heavy crates of a tree, each line of which has a depth and a crate, such as `3arrow
/// v59.3.2`.
fn findings(tree: &str) -> Vec<Finding> {
    let mut found: Vec<(String, Finding)> = Vec::new();
    let mut way: Vec<&str> = Vec::new();
    for line in tree.lines() {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let (depth, package) = line.split_at(digits);
        let Some(name) = package.split(' ').next() else {
            continue;
        };
        // A line of depth n hangs below the last line of depth n - 1, so what is kept is the way to
        // it.
        way.truncate(depth.parse().unwrap_or(0));
        way.push(name);
        // Cargo prints a crate wherever it is needed; the first way to it is enough.
        if is_heavy(name) && found.iter().all(|(known, _)| known != name) {
            let text = format!(
                "dyno is built with {name}, which is too heavy for it: move what needs it behind dyno-sql \
                 ({})",
                way.join(" -> ")
            );
            found.push((name.to_owned(), Finding::breach(MANIFEST, 0, text)));
        }
    }
    found.into_iter().map(|(_, finding)| finding).collect()
}

fn is_heavy(name: &str) -> bool {
    HEAVY.iter().any(|heavy| {
        let rest = name.strip_prefix(heavy);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heavy_crate_is_found_once_with_the_way_to_it() {
        let tree = "0dyno v0.1.0 (/here)\n1dyno-rigs v0.1.0 (/there)\n2serde v1.0.2\n2orc-rust v0.9.0\n\
                    3arrow-array v59.3.2\n1dyno-ingest v0.1.0\n2arrow-array v59.3.2 (*)\n2arrowhead v1.0.0\n";
        let texts: Vec<String> = findings(tree).iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(
            texts[0].contains("(dyno -> dyno-rigs -> orc-rust)"),
            "{texts:?}"
        );
        assert!(
            texts[1].contains("(dyno -> dyno-rigs -> orc-rust -> arrow-array)"),
            "{texts:?}"
        );
        assert!(findings(tree).iter().all(|finding| finding.breach));
    }

    #[test]
    fn every_crate_of_the_list_fires() {
        for heavy in HEAVY {
            let tree = format!("0dyno v0.1.0\n1{heavy} v1.0.0\n");
            assert_eq!(findings(&tree).len(), 1, "{heavy}");
        }
        assert_eq!(findings("0dyno v0.1.0\n1serde v1.0.0\n"), []);
    }
}
