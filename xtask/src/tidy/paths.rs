//! Paths that exist on one machine only.

use super::Finding;
use super::tree::Tree;

/// Written in halves, so that this file does not find itself. System paths such as `/proc` are
/// fine.
const PLACES: [&str; 5] = [
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Use", "rs/"),
    concat!("/wo", "rk/"),
    concat!("C:", "\\"),
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (at, line) in file.text.lines().enumerate() {
            for place in PLACES.iter().filter(|place| starts_a_path(line, place)) {
                let text = format!("{place}... is a path of one machine: hand it in instead");
                findings.push(Finding::breach(&file.path, at + 1, text));
            }
        }
    }
    findings
}

/// Whether the place begins a path here, and does not end or continue another.
fn starts_a_path(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-*}])~/".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_paths_count() {
        let lines = |text: &str| check(&Tree::from_files(&[("a.md", text)])).len();
        assert_eq!(lines(concat!("see /ho", "me/me/x")), 1);
        assert_eq!(lines(concat!("net/wo", "rk/x and /proc/self")), 0);
    }
}
