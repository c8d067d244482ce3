//! The rules of the tree, one file a rule. CONTRIBUTING.md says what each is for.

mod arrows;
mod code;
mod docs;
mod empty;
mod length;
mod markers;
mod modules;
mod names;
mod paths;
mod suites;
pub mod tree;
mod unsafety;
mod weight;
mod width;

use std::fmt;

use tree::Tree;

/// One thing that a rule found.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// Path relative to the top of the workspace.
    pub path: String,
    /// From 1; 0 when the whole file is meant.
    pub line: usize,
    /// What is wrong and what to do.
    pub text: String,
    /// Whether it fails the build; a warning otherwise.
    pub breach: bool,
}

impl Finding {
    pub fn breach(path: &str, line: usize, text: impl Into<String>) -> Finding {
        Finding {
            path: path.to_owned(),
            line,
            text: text.into(),
            breach: true,
        }
    }

    fn warning(path: &str, line: usize, text: impl Into<String>) -> Finding {
        Finding {
            path: path.to_owned(),
            line,
            text: text.into(),
            breach: false,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weight = if self.breach { "" } else { "warning: " };
        match self.line {
            0 => write!(f, "{}: {weight}{}", self.path, self.text),
            line => write!(f, "{}:{line}: {weight}{}", self.path, self.text),
        }
    }
}

/// Runs every rule over the workspace that holds the current folder. The error says what could not
/// be read.
pub fn check_workspace() -> Result<Vec<Finding>, String> {
    let mut findings = check(&Tree::read()?);
    findings.extend(weight::check()?);
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    Ok(findings)
}

fn check(tree: &Tree) -> Vec<Finding> {
    let rules: [fn(&Tree) -> Vec<Finding>; 12] = [
        arrows::check,
        length::check,
        names::check,
        modules::check,
        markers::check,
        unsafety::check,
        paths::check,
        suites::check,
        docs::check,
        empty::check,
        width::check,
        crate::words::check,
    ];
    rules.iter().flat_map(|rule| rule(tree)).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tree_is_tidy() {
        let findings = super::check_workspace().unwrap();
        let breaches: Vec<String> = findings
            .iter()
            .filter(|f| f.breach)
            .map(ToString::to_string)
            .collect();
        assert!(breaches.is_empty(), "\n{}", breaches.join("\n"));
    }
}
